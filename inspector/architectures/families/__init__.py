"""Parametric families: architectures whose sizes are solved from the file, one file each."""

from inspector.architectures.families.bert import FAMILY as BERT
from inspector.architectures.families.cifar_resnet import BOTTLENECK as CIFAR_BOTTLENECK
from inspector.architectures.families.cifar_resnet import FOUR_STAGES, THREE_STAGES
from inspector.architectures.families.cifar_vgg import FAMILY as CIFAR_VGG
from inspector.architectures.families.clip import FAMILIES as CLIP
from inspector.architectures.families.clip_openai import FAMILIES as CLIP_OPENAI
from inspector.architectures.families.convnext import ORIGINAL as CONVNEXT_ORIGINAL
from inspector.architectures.families.convnext import TORCHVISION as CONVNEXT
from inspector.architectures.families.densenet import FAMILY as DENSENET
from inspector.architectures.families.diffusion_unet import FAMILIES as DIFFUSION_UNETS
from inspector.architectures.families.diffusion_vae import FAMILIES as DIFFUSION_VAES
from inspector.architectures.families.distilbert import FAMILY as DISTILBERT
from inspector.architectures.families.efficientnet import FAMILY as EFFICIENTNET
from inspector.architectures.families.electra import FAMILY as ELECTRA
from inspector.architectures.families.entry import Family
from inspector.architectures.families.gpt2 import FAMILY as GPT2
from inspector.architectures.families.gpt_neox import FAMILY as GPT_NEOX
from inspector.architectures.families.llama import FAMILY as LLAMA
from inspector.architectures.families.llama_meta import FAMILY as LLAMA_META
from inspector.architectures.families.mixtral import FAMILY as MIXTRAL
from inspector.architectures.families.mobilenet_v2 import FAMILY as MOBILENET_V2
from inspector.architectures.families.nanogpt import FAMILY as NANOGPT
from inspector.architectures.families.qwen2 import FAMILY as QWEN2
from inspector.architectures.families.qwen3 import FAMILY as QWEN3
from inspector.architectures.families.resnet import BOTTLENECK as RESNET_BOTTLENECK
from inspector.architectures.families.resnet import PLAIN as RESNET
from inspector.architectures.families.roberta import FAMILY as ROBERTA
from inspector.architectures.families.stable_diffusion import FAMILIES as STABLE_DIFFUSION
from inspector.architectures.families.swin import ORIGINAL as SWIN_ORIGINAL
from inspector.architectures.families.swin import TIMM as SWIN_TIMM
from inspector.architectures.families.t5 import FAMILY as T5
from inspector.architectures.families.unet import FAMILY as UNET
from inspector.architectures.families.vgg import FAMILY as VGG
from inspector.architectures.families.vit_timm import FAMILY as VIT_TIMM
from inspector.architectures.families.vit_torchvision import FAMILY as VIT
from inspector.architectures.families.vit_transformers import FAMILIES as TRANSFORMERS_VITS
from inspector.architectures.families.wav2vec2 import FAMILIES as WAV2VEC2
from inspector.architectures.families.whisper import FAMILY as WHISPER
from inspector.architectures.families.whisper_openai import FAMILY as WHISPER_OPENAI
from inspector.architectures.families.yolo import FAMILY as YOLO

# In this order families with the same names are offered; more special ones stand before more general ones.
FAMILIES: tuple[Family, ...] = (
    RESNET,
    RESNET_BOTTLENECK,
    VGG,
    DENSENET,
    MOBILENET_V2,
    EFFICIENTNET,
    CONVNEXT,
    CONVNEXT_ORIGINAL,
    VIT,
    VIT_TIMM,
    SWIN_ORIGINAL,
    SWIN_TIMM,
    YOLO,
    CIFAR_VGG,
    THREE_STAGES,
    FOUR_STAGES,
    CIFAR_BOTTLENECK,
    UNET,
    BERT,
    ROBERTA,
    ELECTRA,
    DISTILBERT,
    GPT2,
    NANOGPT,
    GPT_NEOX,
    LLAMA,
    QWEN2,
    QWEN3,
    MIXTRAL,
    LLAMA_META,
    T5,
    *CLIP,
    *CLIP_OPENAI,
    WHISPER,
    WHISPER_OPENAI,
    *WAV2VEC2,
    *TRANSFORMERS_VITS,
    *STABLE_DIFFUSION,
    *DIFFUSION_UNETS,
    *DIFFUSION_VAES,
)


def find_family(library: str, name: str) -> Family | None:
    """The family of a spec, None when it is none."""
    return next((family for family in FAMILIES if (family.library, family.name) == (library, name)), None)
