"""A vision transformer's tokens: how many come before the patches, how the patches lie, what each block attends to.

For the methods that follow attention. They need one sequence of tokens that every block attends over as a whole; a
model that attends within windows (Swin) or has none is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.cam.engine.attention import attentions
from inspector.cam.engine.capture import Place, capture
from inspector.cam.engine.replay import Replay
from inspector.cam.engine.scene import Scene, own_scores
from inspector.cam.engine.tensors import working_precision
from inspector.cam.engine.trace import trace
from inspector.cam.layers.proposals import propose_layers
from inspector.cam.report import LayerProposal
from inspector.errors import ExplainError


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """One forward of all blocks.

    weights: per block, (N, heads, tokens, tokens), rows add up to 1. gradients: of the score, likewise, () if not
    asked. layer: the token layout.
    """

    weights: tuple[Tensor, ...]
    gradients: tuple[Tensor, ...]
    layer: LayerProposal

    def patches(self, relevance: Tensor) -> Tensor:
        """(N, tokens) as the map (N, h, w); class and register tokens are left out."""
        return relevance[:, self.layer.prefix_tokens :].reshape(-1, *self.layer.grid)


def token_layer(scene: Scene) -> LayerProposal:
    """The suggested token layer. Raises ExplainError for a model without one."""
    _, channels, height, width = scene.batch.shape
    layer = propose_layers(scene.model, (channels, height, width))[0]
    if layer.layout != "NLC":
        raise ExplainError(
            "This method follows attention over patches, and this model has none over the whole picture.",
            hint="It is for vision transformers (ViT, DeiT, DINO); use Grad-CAM here.",
        )
    return layer


def follow_attention(scene: Scene, *, gradients: bool) -> Attention:
    """Run the batch once more and keep every block's attention. Raises ExplainError where there is none."""
    layer = token_layer(scene)
    count, tokens = scene.batch.shape[0], layer.prefix_tokens + layer.grid[0] * layer.grid[1]
    with attentions(tokens) as found, torch.set_grad_enabled(gradients):
        logits = scene.again(scene.batch).logits
        if not found:
            raise ExplainError(
                f"No attention over all {tokens} tokens was seen in this model.",
                hint="It may attend within windows, or compute attention in a way of its own; use Grad-CAM here.",
            )
        made: tuple[Tensor | None, ...] = ()
        if gradients:
            score = own_scores(logits, scene.targets).sum()
            made = torch.autograd.grad(score, found, allow_unused=True)
    with torch.no_grad():
        weights = tuple(_by_head(w.detach(), count) for w in found)
        slopes = tuple(
            _by_head(torch.zeros_like(w) if g is None else g, count) for w, g in zip(found, made, strict=False)
        )
    return Attention(weights=weights, gradients=slopes, layer=layer)


def read_out(attention: Attention, relevance: Tensor) -> Tensor:
    """What the answer reads of (N, tokens, tokens): the class token's row, or the mean over all where there is none.

    Returns (N, h, w).
    """
    rows = relevance[:, 0] if attention.layer.prefix_tokens else relevance.mean(dim=1)
    return attention.patches(rows)


def _by_head(weights: Tensor, count: int) -> Tensor:
    tokens = weights.shape[-1]
    return working_precision(weights).reshape(count, -1, tokens, tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """weights: (1, heads, tokens, tokens) or (heads, tokens, tokens). output: (1, tokens, C), in the weights' graph."""

    weights: Tensor
    output: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The blocks of one forward of one picture. behind: what follows the last block."""

    found: tuple[Block, ...]
    behind: Replay
    layer: LayerProposal

    def layer_map(self, relevance: Tensor) -> Tensor:
        """(tokens,) as the map (h, w)."""
        return relevance[self.layer.prefix_tokens :].reshape(self.layer.grid)


@contextmanager
def block_attentions(scene: Scene, index: int) -> Iterator[Blocks]:
    """Each block's attention and what the block puts out, for one picture of the batch; valid inside.

    Raises ExplainError where attention and blocks do not come in pairs.
    """
    layer = token_layer(scene)
    picture = scene.batch[index : index + 1]
    tokens = layer.prefix_tokens + layer.grid[0] * layer.grid[1]
    places = [Place(path) for path in _blocks(scene, layer)]
    if not places:
        raise ExplainError(
            "The blocks of this model do not put out tokens, so their attention cannot be followed one by one."
        )
    # Recorded before the layers are held: its own hooks are not to be recorded with it.
    behind = Replay(scene.model, places[-1], picture, index, scene.read)
    with capture(scene.model, places, read=lambda answer, _: scene.read(answer, [index])) as lent:
        with attentions(tokens) as found:
            lent.forward(picture)
        outputs = [lent.outputs[place] for place in places]
        if len(found) != len(outputs):
            raise ExplainError(
                f"{len(found)} attentions were seen in {len(outputs)} blocks, so they cannot be told apart."
            )
        pairs = zip(found, outputs, strict=True)
        yield Blocks(found=tuple(Block(weights=w, output=o) for w, o in pairs), behind=behind, layer=layer)


def _blocks(scene: Scene, layer: LayerProposal) -> list[str]:
    """The outermost module around each attention that has no other in it and puts out all tokens, in order."""
    _, channels, height, width = scene.batch.shape
    seen = trace(scene.model, (channels, height, width))
    inside = [call.path for call in seen.calls if call.attention]
    tokens = layer.prefix_tokens + layer.grid[0] * layer.grid[1]
    whole = {call.path for call in seen.calls if len(call.shape) == 3 and call.shape[1] == tokens}
    found = []
    for path in inside:
        parts = path.split(".")
        around = [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
        alone = [a for a in around if sum(p == a or p.startswith(f"{a}.") for p in inside) == 1 and a in whole]
        if not alone:
            return []
        found.append(alone[0])
    return found
