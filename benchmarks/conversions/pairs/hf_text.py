"""Language models: transformers beside nanoGPT, Llama, fairseq, torch.nn and each other; CLIP beside open_clip."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.conversions import published
from benchmarks.conversions.pairs.hf_vision import HF, epsilon, hf
from benchmarks.conversions.sides import Pair, Side, tokens

_WORDS = 61


def _published(make: Callable[[], nn.Module], value: float = 1e-6) -> Callable[[], nn.Module]:
    return lambda: epsilon(make(), value)


def _gpt2() -> Side:
    build = hf(
        "GPT2LMHeadModel", "GPT2Config", vocab_size=_WORDS, n_positions=32, n_embd=48, n_layer=3, n_head=4, n_ctx=32
    )
    return Side(library=HF, build=build)


def _bert() -> Side:
    return Side(library=HF, build=bert_body)


def bert_body() -> nn.Module:
    import transformers

    settings = transformers.BertConfig(
        vocab_size=_WORDS,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=192,
        max_position_embeddings=32,
    )
    return epsilon(transformers.BertModel(settings, add_pooling_layer=False))


def _roberta() -> Side:
    build = hf(
        "RobertaForMaskedLM",
        "RobertaConfig",
        vocab_size=_WORDS,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=192,
        max_position_embeddings=34,
        type_vocab_size=1,
    )

    # fairseq has no segment embedding: its converter fills zeros.
    def randomise(model: Any, seed: int) -> None:
        from benchmarks.conversions.weights import randomise as usual

        usual(model, seed)
        with torch.no_grad():
            model.roberta.embeddings.token_type_embeddings.weight.zero_()

    return Side(library=HF, build=build, randomise=randomise)


def _llama(tied: bool = False) -> Side:
    build = hf(
        "LlamaForCausalLM",
        "LlamaConfig",
        vocab_size=_WORDS,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=80,
        max_position_embeddings=64,
        rope_theta=10000.0,
        rms_norm_eps=1e-6,
    )
    return Side(library=HF, build=build)


def _clips(width: int) -> tuple[Side, Side]:
    """width: of what both towers are projected to."""

    def build_open() -> nn.Module:
        import open_clip

        vision = {"layers": 2, "width": 48, "head_width": 12, "patch_size": 8, "image_size": 32}
        text = {"context_length": 16, "vocab_size": _WORDS, "width": 36, "heads": 3, "layers": 2}
        return epsilon(open_clip.CLIP(width, vision, text))

    def run_open(model: Any, pixels: Tensor) -> Tensor:
        ids = clip_ids()
        return model.encode_image(pixels) @ model.encode_text(ids).T * model.logit_scale.exp()

    def build_hf() -> nn.Module:
        import transformers

        settings = transformers.CLIPConfig(
            projection_dim=width,
            vision_config={
                "hidden_size": 48,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "intermediate_size": 192,
                "patch_size": 8,
                "image_size": 32,
                "hidden_act": "gelu",
            },
            text_config={
                "hidden_size": 36,
                "num_hidden_layers": 2,
                "num_attention_heads": 3,
                "intermediate_size": 144,
                "vocab_size": _WORDS,
                "max_position_embeddings": 16,
                "hidden_act": "gelu",
                "eos_token_id": 2,
            },
        )
        return epsilon(transformers.CLIPModel(settings))

    def run_hf(model: Any, pixels: Tensor) -> Tensor:
        ids = clip_ids()
        image = model.visual_projection(model.vision_model(pixel_values=pixels)[1])
        text = model.text_projection(model.text_model(input_ids=ids)[1])
        return image @ text.T * model.logit_scale.exp()

    return Side(library=HF, build=build_hf, run=run_hf), Side(library="open_clip", build=build_open, run=run_open)


def _save_openai(model: Any, folder: Path) -> Path:
    """The state dict of OpenAI's archives (here in float32): three numbers of the network as buffers."""
    sizes = {"input_resolution": 32, "context_length": 16, "vocab_size": _WORDS}
    state = model.state_dict() | {name: torch.tensor(number) for name, number in sizes.items()}
    torch.save(state, folder / "openai.pt")
    return folder / "openai.pt"


def clip_ids() -> Tensor:
    ids = torch.randint(3, _WORDS - 1, (2, 16), generator=torch.Generator().manual_seed(9))
    ids[:, 11] = _WORDS - 1  # the end of the text has the largest number
    return ids


def pairs() -> Iterator[Pair]:
    from benchmarks.conversions.sides import picture

    ids = {"input": tokens(_WORDS), "same": "epsilon of the norms"}
    nano = Side(library="nanoGPT", build=_published(published.NanoGPT), own=False)
    split = Side(library="own code, q k v apart", build=_published(published.SplitGPT), own=False)
    accept = ("tied-weights", "fused-attention")
    yield Pair(id="GPT-2", ours=_gpt2(), theirs=nano, accept=accept, **ids)
    yield Pair(id="GPT-2", ours=_gpt2(), theirs=split, accept=accept, **ids)
    yield Pair(id="GPT-2", ours=nano, theirs=split, accept=accept, **ids)
    torch_bert = Side(library="torch.nn", build=_published(published.TorchBert), own=False)
    yield Pair(id="BERT, body", ours=_bert(), theirs=torch_bert, accept=accept, **ids)
    yield Pair(
        id="RoBERTa",
        ours=Side(library="fairseq", build=_published(published.FairseqRoberta), own=False),
        theirs=_roberta(),
        accept=accept,
        **ids,
    )
    meta = Side(library="Meta", build=_published(published.MetaLlama), own=False)
    yield Pair(id="Llama", ours=_llama(), theirs=meta, answers={"rotary-halves": "heads-of-12"}, rounds=1e-5, **ids)
    for name, width in (("CLIP", 40), ("CLIP, square projection", 36)):
        one, two = _clips(width)
        same = {"input": picture(32), "accept": accept, "same": "epsilon of the norms, GELU"}
        yield Pair(id=name, ours=one, theirs=two, **same)
        openai = replace(two, library="OpenAI", save=_save_openai, own=False, can_be_target=False)
        yield Pair(id=name, ours=openai, theirs=one, both=False, **same)
        yield Pair(id=name, ours=openai, theirs=two, both=False, **same)
