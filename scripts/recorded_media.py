"""Which models for pictures, sound and diffusion are recorded for the tests; as in `recorded_models`."""

from __future__ import annotations

from typing import Any

Model = tuple[str, str, dict[str, Any]]

_TEXT = {"hidden_size": 36, "num_attention_heads": 3, "intermediate_size": 52, "num_hidden_layers": 3}
_TEXT |= {"vocab_size": 101, "max_position_embeddings": 41, "projection_dim": 20}
_VISION = {"hidden_size": 28, "num_attention_heads": 2, "intermediate_size": 44, "num_hidden_layers": 2}
_VISION |= {"image_size": 30, "patch_size": 6, "projection_dim": 20}
_LARGE = {"hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096, "num_hidden_layers": 24}
_CLIP_L = {
    "text_config": {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072, "projection_dim": 768},
    "vision_config": {**_LARGE, "patch_size": 14, "projection_dim": 768},
    "projection_dim": 768,
}
_VIT = {key: value for key, value in _VISION.items() if key != "projection_dim"}
_DINO = {key: value for key, value in _VIT.items() if key != "intermediate_size"} | {"mlp_ratio": 2}
_SWIN = {"image_size": 48, "patch_size": 4, "embed_dim": 12, "depths": [2, 2, 3], "num_heads": [2, 3, 6]}
_SWIN |= {"window_size": 3, "mlp_ratio": 2.0}
_WHISPER = {"vocab_size": 101, "num_mel_bins": 20, "d_model": 36, "encoder_layers": 3, "decoder_layers": 2}
_WHISPER |= {"encoder_attention_heads": 3, "decoder_attention_heads": 3, "encoder_ffn_dim": 52, "decoder_ffn_dim": 44}
_WHISPER |= {"max_source_positions": 30, "max_target_positions": 41, "pad_token_id": 0}
_SOUND = {"hidden_size": 36, "num_attention_heads": 3, "intermediate_size": 52, "num_hidden_layers": 3}
_SOUND |= {"vocab_size": 33, "conv_dim": [16, 16, 18], "conv_kernel": [10, 3, 2], "conv_stride": [5, 2, 2]}
_SOUND |= {"num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4, "codevector_dim": 24}
_SOUND |= {"proj_codevector_dim": 28, "num_codevectors_per_group": 10, "num_codevector_groups": 2}
_SOUND |= {"classifier_proj_size": 22, "tdnn_dim": [8, 8], "tdnn_kernel": [5, 3], "tdnn_dilation": [1, 1]}
_LAYERED = {"feat_extract_norm": "layer", "conv_bias": True, "do_stable_layer_norm": True}
_SD2 = {"attention_head_dim": [5, 10, 20, 20], "cross_attention_dim": 1024, "use_linear_projection": True}
_XL = {
    "sample_size": 128,
    "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
    "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
    "block_out_channels": [320, 640, 1280],
    "attention_head_dim": [5, 10, 20],
    "cross_attention_dim": 2048,
    "use_linear_projection": True,
    "transformer_layers_per_block": [1, 2, 10],
    "addition_embed_type": "text_time",
    "addition_time_embed_dim": 256,
    "projection_class_embeddings_input_dim": 2816,
}
_REFINER = {
    **_XL,
    "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"],
    "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
    "block_out_channels": [384, 768, 1536, 1536],
    "attention_head_dim": [6, 12, 24, 24],
    "cross_attention_dim": 1280,
    "transformer_layers_per_block": 4,
    "projection_class_embeddings_input_dim": 2560,
}
_UNET = {"block_out_channels": [32, 64, 96], "cross_attention_dim": 40, "attention_head_dim": 8}
_UNET |= {"down_block_types": ["CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"]}
_UNET |= {"up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"]}
_VAE = {
    "down_block_types": ["DownEncoderBlock2D"] * 4,
    "up_block_types": ["UpDecoderBlock2D"] * 4,
    "block_out_channels": [128, 256, 512, 512],
    "layers_per_block": 2,
}
_NO_QUANT = {"use_quant_conv": False, "use_post_quant_conv": False}
_SMALL_VAE = {
    "down_block_types": ["DownEncoderBlock2D"] * 3,
    "up_block_types": ["UpDecoderBlock2D"] * 3,
    "block_out_channels": [32, 64, 96],
    "layers_per_block": 1,
    "latent_channels": 3,
}


def _heads(prefix: str, config: dict[str, Any], *tasks: str) -> list[Model]:
    return [(f"{prefix.removesuffix('For').lower()} small {task}", f"{prefix}{task}", config) for task in tasks]


MODELS: dict[str, list[Model]] = {
    "clip": [
        ("clip-vit-base-patch32", "CLIPModel", {}),
        ("clip-vit-large-patch14", "CLIPModel", _CLIP_L),
        ("clip-vit-large-patch14 text", "CLIPTextModel", _CLIP_L["text_config"]),  # type: ignore[list-item]
        ("clip small", "CLIPModel", {"text_config": _TEXT, "vision_config": _VISION, "projection_dim": 20}),
        ("clip small text", "CLIPTextModel", _TEXT),
        ("clip small text projection", "CLIPTextModelWithProjection", _TEXT),
        ("clip small vision", "CLIPVisionModel", _VISION),
        ("clip small vision projection", "CLIPVisionModelWithProjection", _VISION),
    ],
    "vit": [
        ("vit-base-patch16-224", "ViTForImageClassification", {"num_labels": 1000}),
        ("vit-large-patch16-224 model", "ViTModel", _LARGE),
        ("vit small", "ViTModel", _VIT),
        ("vit small without pooler", "ViTModel", {**_VIT, "add_pooling_layer": False}),
        ("vit small classes", "ViTForImageClassification", {**_VIT, "num_labels": 5, "num_channels": 1}),
        ("vit small no bias", "ViTForImageClassification", {**_VIT, "num_labels": 5, "qkv_bias": False}),
    ],
    "deit": [
        ("deit-base-distilled", "DeiTForImageClassificationWithTeacher", {"num_labels": 1000}),
        ("deit small", "DeiTModel", _VIT),
        ("deit small classes", "DeiTForImageClassification", {**_VIT, "num_labels": 5}),
        ("deit small teacher", "DeiTForImageClassificationWithTeacher", {**_VIT, "num_labels": 5}),
    ],
    "dinov2": [
        (
            "dinov2-base",
            "Dinov2Model",
            {"image_size": 518, "patch_size": 14, "hidden_size": 768, "num_attention_heads": 12},
        ),
        (
            "dinov2-giant",
            "Dinov2Model",
            {
                "image_size": 518,
                "patch_size": 14,
                "hidden_size": 1536,
                "num_attention_heads": 24,
                "num_hidden_layers": 40,
                "use_swiglu_ffn": True,
            },
        ),
        ("dinov2 small", "Dinov2Model", _DINO),
        ("dinov2 small classes", "Dinov2ForImageClassification", {**_DINO, "num_labels": 5}),
        ("dinov2 small gated", "Dinov2Model", {**_DINO, "use_swiglu_ffn": True}),
        ("dinov2 registers", "Dinov2WithRegistersModel", {**_DINO, "num_register_tokens": 4}),
    ],
    "beit": [
        (
            "beit-base-patch16-224",
            "BeitForImageClassification",
            {
                "num_labels": 1000,
                "use_relative_position_bias": True,
                "use_mask_token": False,
            },
        ),
        ("beit small", "BeitModel", {**_VIT, "use_relative_position_bias": True}),
        ("beit small shared", "BeitModel", {**_VIT, "use_shared_relative_position_bias": True}),
        ("beit small classes", "BeitForImageClassification", {**_VIT, "num_labels": 5}),
    ],
    "swin": [
        (
            "swin-tiny-patch4-window7-224",
            "SwinForImageClassification",
            {"num_labels": 1000, "embed_dim": 96, "depths": [2, 2, 6, 2], "num_heads": [3, 6, 12, 24]},
        ),
        ("swin small", "SwinModel", _SWIN),
        ("swin small classes", "SwinForImageClassification", {**_SWIN, "num_labels": 5}),
    ],
    "whisper": [
        (
            "whisper-tiny",
            "WhisperForConditionalGeneration",
            {
                "d_model": 384,
                "encoder_layers": 4,
                "decoder_layers": 4,
                "encoder_attention_heads": 6,
                "decoder_attention_heads": 6,
                "encoder_ffn_dim": 1536,
                "decoder_ffn_dim": 1536,
                "vocab_size": 51865,
            },
        ),
        (
            "whisper-large-v3",
            "WhisperModel",
            {
                "d_model": 1280,
                "encoder_layers": 32,
                "decoder_layers": 32,
                "encoder_attention_heads": 20,
                "decoder_attention_heads": 20,
                "encoder_ffn_dim": 5120,
                "decoder_ffn_dim": 5120,
                "vocab_size": 51866,
                "num_mel_bins": 128,
            },
        ),
        ("whisper small model", "WhisperModel", _WHISPER),
        ("whisper small", "WhisperForConditionalGeneration", _WHISPER),
        ("whisper small classes", "WhisperForAudioClassification", {**_WHISPER, "num_labels": 5}),
    ],
    "wav2vec2": [
        ("wav2vec2-base-960h", "Wav2Vec2ForCTC", {}),
        ("wav2vec2-base", "Wav2Vec2ForPreTraining", {}),
        ("wav2vec2-large-xlsr", "Wav2Vec2Model", {**_LARGE, **_LAYERED}),
        ("hubert-base", "HubertModel", {}),
        *_heads("Wav2Vec2For", _SOUND, "PreTraining", "CTC"),
        *_heads("Wav2Vec2For", {**_SOUND, "num_labels": 5}, "SequenceClassification", "AudioFrameClassification"),
        *_heads("HubertFor", {**_SOUND, "num_labels": 5}, "CTC", "SequenceClassification"),
        ("wav2vec2 small", "Wav2Vec2Model", _SOUND),
        ("wav2vec2 small layered", "Wav2Vec2Model", {**_SOUND, **_LAYERED}),
        ("wav2vec2 small layered ctc", "Wav2Vec2ForCTC", {**_SOUND, **_LAYERED}),
        ("wav2vec2 small conv bias", "Wav2Vec2Model", {**_SOUND, "conv_bias": True}),
    ],
    "diffusers_unet": [
        ("sd-1.5 unet", "UNet2DConditionModel", {"cross_attention_dim": 768}),
        ("sd-1.5 inpainting unet", "UNet2DConditionModel", {"cross_attention_dim": 768, "in_channels": 9}),
        ("sd-2.1 unet", "UNet2DConditionModel", _SD2),
        ("sdxl unet", "UNet2DConditionModel", _XL),
        ("sdxl refiner unet", "UNet2DConditionModel", _REFINER),
        ("small unet", "UNet2DConditionModel", _UNET),
        ("small unet one block", "UNet2DConditionModel", {**_UNET, "layers_per_block": 1}),
        ("small unet linear", "UNet2DConditionModel", {**_UNET, "use_linear_projection": True, "in_channels": 5}),
    ],
    "diffusers_vae": [
        ("sd vae", "AutoencoderKL", _VAE),
        ("small vae", "AutoencoderKL", _SMALL_VAE),
        (
            "vae without quantisation layers",
            "AutoencoderKL",
            {**_VAE, "latent_channels": 16, "use_quant_conv": False, "use_post_quant_conv": False},
        ),
    ],
}
