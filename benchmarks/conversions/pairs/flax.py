"""Flax networks beside their torch twins: one way, since none of them is a torch module.

transformers 4 is the last that has both: `pip install "transformers<5" flax jax`. Its Flax classes write
flax_model.msgpack, which is named and not opened here; what is opened is what its hint says (the arrays saved with
numpy.savez), and the model.safetensors that the same classes write with `safe_serialization=True`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.conversions.pairs.hf_vision import HF, epsilon, hf_pixels
from benchmarks.conversions.sides import Pair, Side, picture, plainly, tokens
from benchmarks.conversions.weights import random_like

os.environ.setdefault("JAX_PLATFORMS", "cpu")
FLAX = "transformers, Flax"
_WORDS = 61


@dataclass(frozen=True, kw_only=True)
class FlaxModel:
    """A Flax class of transformers and its numbers, which are in no module. call: what it is called with."""

    make: Callable[[Any], Any]
    params: dict[str, Any]
    call: Callable[[Any, np.ndarray], Any]
    double: bool = False

    def answer(self, x: Tensor) -> Tensor:
        import jax
        from flax.traverse_util import flatten_dict, unflatten_dict

        kind = np.float64 if self.double else np.float32
        flat = {k: v.astype(kind) for k, v in flatten_dict(self.params).items()}
        made = self.call(self.make(kind), x.numpy())(unflatten_dict(flat))
        return torch.from_numpy(np.array(jax.device_get(made)))


def _flax(name: str, config: str, call: Callable[..., Any], **options: Any) -> Callable[[], FlaxModel]:
    """A network of transformers' Flax classes."""

    def build() -> FlaxModel:
        import jax
        import transformers

        jax.config.update("jax_enable_x64", True)
        settings = getattr(transformers, config)(**options)
        kind = getattr(transformers, name)
        code = sys.modules[kind.__module__]
        if config == "T5Config":
            code.jnp = _OlderNumpy()

        def make(dtype: Any) -> Any:
            return kind(settings, seed=0, dtype=dtype)

        params = jax.device_get(make(np.float32).params)
        return FlaxModel(make=make, params=params, call=lambda model, x: lambda p: call(model, x, p))

    return build


def _randomise(model: FlaxModel, seed: int) -> None:
    """In place, by the rules of `weights.py`, with matrices and kernels as wide as torch's would be."""
    from flax.traverse_util import flatten_dict

    for path, array in flatten_dict(model.params).items():
        tree = model.params
        for segment in path[:-1]:
            tree = tree[segment]
        tree[path[-1]] = random_array(path, array, seed)


_LEAVES = {"kernel": "weight", "scale": "weight", "embedding": "weight", "mean": "running_mean", "var": "running_var"}
_LEAVES |= {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var"}


def random_array(path: tuple[str, ...], array: np.ndarray, seed: int) -> np.ndarray:
    """Numbers for one array under its name as torch would call it; of a kernel the last axis is the output's."""
    *above, last = path
    name = ".".join((*above, _LEAVES.get(last, last)))
    turned = last == "kernel"
    like = torch.empty(array.shape[::-1] if turned else array.shape)
    made = random_like(name, like, seed).numpy()
    return np.ascontiguousarray(made.T if turned else made)


def _double(model: FlaxModel) -> FlaxModel:
    return FlaxModel(make=model.make, params=model.params, call=model.call, double=True)


def _save_npz(model: FlaxModel, folder: Path) -> Path:
    """The numbers of flax_model.msgpack, as the hint about such a file says: read by flax, saved by NumPy."""
    from flax import serialization
    from flax.traverse_util import flatten_dict

    packed = folder / "flax_model.msgpack"
    packed.write_bytes(serialization.to_bytes(model.params))
    state = flatten_dict(serialization.msgpack_restore(packed.read_bytes()), sep="/")
    np.savez(folder / "flax_model.npz", **state)
    return folder / "flax_model.npz"


def _save_safetensors(model: FlaxModel, folder: Path) -> Path:
    """model.safetensors as transformers' own save_pretrained writes it."""
    made = model.make(np.float32)
    made.save_pretrained(folder, params=model.params, safe_serialization=True)
    return folder / "model.safetensors"


def _side(build: Callable[[], FlaxModel], *, npz: bool = False) -> Side:
    return Side(
        library=f"{FLAX}, {'npz' if npz else 'safetensors'}",
        build=build,
        run=lambda model, x: model.answer(x),
        save=_save_npz if npz else _save_safetensors,
        can_be_target=False,
        randomise=_randomise,
        double=_double,
    )


def _twin(name: str, config: str, value: float, run: Any = plainly, **options: Any) -> Side:
    """The torch class of the same network. value: the epsilon of its norms."""

    def build() -> nn.Module:
        import transformers

        return epsilon(getattr(transformers, name)(getattr(transformers, config)(**options)), value)

    return Side(library=HF, build=build, run=run)


def _both(
    ident: str,
    name: str,
    config: str,
    options: Mapping[str, Any],
    *,
    call: Callable[..., Any],
    run: Any = plainly,
    value: float = 1e-6,
    **more: Any,
) -> Iterator[Pair]:
    """The pair from either file. name: of the torch class; Flax's has Flax before it."""
    build = _flax(f"Flax{name}", config, call, **options)
    for npz in (False, True):
        yield Pair(
            id=ident,
            ours=_side(build, npz=npz),
            theirs=_twin(name, config, value, run, **options),
            both=False,
            same="epsilon of the norms",
            **more,
        )


def _pixels(model: Any, x: np.ndarray, params: Any) -> Any:
    return model(pixel_values=x, params=params).logits


def _single(size: int) -> Callable[[], Tensor]:
    """A picture in float32: transformers' Flax classes take no other."""
    return lambda: picture(size)().float().double()


def _ids(model: Any, x: np.ndarray, params: Any) -> Any:
    made = model(input_ids=x, params=params)
    return made.logits if hasattr(made, "logits") else made.last_hidden_state


class _OlderNumpy:
    """jax.numpy with the keyword a_max of `clip`, which JAX 0.4 had and transformers 4 still uses."""

    def __getattr__(self, name: str) -> Any:
        import jax.numpy as jnp

        return getattr(jnp, name)

    def clip(self, x: Any, a_min: Any = None, a_max: Any = None) -> Any:
        import jax.numpy as jnp

        return jnp.clip(x, a_min, a_max)


def _t5_flax(model: Any, x: np.ndarray, params: Any) -> Any:
    return model(input_ids=x, decoder_input_ids=x[:, ::-1].copy(), params=params).logits


def _t5_torch(model: Any, ids: Tensor) -> Tensor:
    return model(input_ids=ids, decoder_input_ids=ids.flip(1)).logits


_BERT = {
    "vocab_size": _WORDS,
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 192,
    "max_position_embeddings": 34,
    "layer_norm_eps": 1e-6,
}
_VIT = {
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 192,
    "image_size": 32,
    "patch_size": 8,
    "num_labels": 7,
    "layer_norm_eps": 1e-6,
}
_T5 = {"vocab_size": _WORDS, "d_model": 48, "d_kv": 12, "d_ff": 96, "num_layers": 2, "num_decoder_layers": 2}
_T5 |= {"num_heads": 4, "decoder_start_token_id": 0}
_GPT = {"vocab_size": _WORDS, "n_positions": 32, "n_embd": 48, "n_layer": 3, "n_head": 4, "layer_norm_epsilon": 1e-6}


def _resnet(deep: bool) -> dict[str, Any]:
    return {
        "hidden_sizes": [256, 512, 1024, 2048] if deep else [64, 128, 256, 512],
        "depths": [3, 4, 6, 3] if deep else [2, 2, 2, 2],
        "layer_type": "bottleneck" if deep else "basic",
        "num_labels": 7,
    }


def pairs() -> Iterator[Pair]:
    ids = {"call": _ids, "input": tokens(_WORDS)}
    pixels = {"call": _pixels, "run": hf_pixels}
    yield from _both("ViT", "ViTForImageClassification", "ViTConfig", _VIT, input=_single(32), **pixels)
    for deep in (False, True):
        yield from _both(
            "ResNet-50" if deep else "ResNet-18",
            "ResNetForImageClassification",
            "ResNetConfig",
            _resnet(deep),
            value=1e-5,
            input=_single(64),
            **pixels,
        )
    yield from _both("BERT, with pooler", "BertModel", "BertConfig", _BERT, **ids)
    yield from _both("BERT, masked words", "BertForMaskedLM", "BertConfig", _BERT, **ids)
    roberta = _BERT | {"type_vocab_size": 1}
    yield from _both("RoBERTa, masked words", "RobertaForMaskedLM", "RobertaConfig", roberta, **ids)
    yield from _both("GPT-2", "GPT2LMHeadModel", "GPT2Config", _GPT, **ids)
    for name, options in (
        ("T5", _T5),
        ("T5 v1.1", _T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    ):
        yield from _both(
            name,
            "T5ForConditionalGeneration",
            "T5Config",
            options,
            call=_t5_flax,
            run=_t5_torch,
            input=tokens(_WORDS),
            rounds=1e-5,  # torch's T5 takes the mean square in float32
        )
