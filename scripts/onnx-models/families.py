"""More models for exported.py: families of transformers, and those of diffusers and torchvision.

A family is the model, its configuration, the configuration's values, inputs by name, and the implementation of attention, as in
exported.py; a backbone is named. needs, beside what exported.py needs: pip install diffusers"""

import torch

SMALL = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=1000)
GROUPED = dict(SMALL, num_key_value_heads=2)
VISION = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
DECODED = dict(d_model=64, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128)
SEQUENCES = dict(DECODED, encoder_layers=2, decoder_layers=2)
DETECTION = dict(DECODED, encoder_layers=1, decoder_layers=1, num_queries=10)


def tokens(count=32):
    return torch.randint(0, 1000, (1, count))


def mask(count=32):
    return (torch.arange(count) < count - 5).long()[None]


def image(size):
    return torch.randn(1, 3, size, size)


def decoded():
    return tokens(8)


FAMILIES = {
    "electra": ("ElectraModel", "ElectraConfig", dict(SMALL, embedding_size=32), {"input_ids": tokens, "attention_mask": mask}),
    "albert": ("AlbertModel", "AlbertConfig", dict(SMALL, embedding_size=32), {"input_ids": tokens, "attention_mask": mask}),
    "mobilebert": (
        "MobileBertModel",
        "MobileBertConfig",
        dict(SMALL, embedding_size=32, intra_bottleneck_size=32, true_hidden_size=32),
        {"input_ids": tokens, "attention_mask": mask},
        "eager",
    ),
    "mpnet": ("MPNetModel", "MPNetConfig", SMALL, {"input_ids": tokens, "attention_mask": mask}, "eager"),
    "modernbert": (
        "ModernBertModel",
        "ModernBertConfig",
        dict(SMALL, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, local_attention=16),
        {"input_ids": tokens, "attention_mask": mask},
    ),
    "bart": (
        "BartModel",
        "BartConfig",
        dict(
            SEQUENCES,
            vocab_size=1000,
        ),
        {"input_ids": tokens, "decoder_input_ids": decoded},
    ),
    "t5": (
        "T5ForConditionalGeneration",
        "T5Config",
        dict(d_model=64, num_layers=2, num_heads=4, d_ff=128, d_kv=16, vocab_size=1000, decoder_start_token_id=0),
        {"input_ids": tokens, "decoder_input_ids": decoded},
        "eager",
    ),
    "marian": (
        "MarianMTModel",
        "MarianConfig",
        dict(
            SEQUENCES,
            vocab_size=1000,
            pad_token_id=0,
            decoder_start_token_id=0,
        ),
        {"input_ids": tokens, "decoder_input_ids": decoded},
    ),
    "whisper": (
        "WhisperModel",
        "WhisperConfig",
        dict(
            SEQUENCES,
            num_mel_bins=16,
            max_source_positions=50,
            vocab_size=1000,
            pad_token_id=0,
            decoder_start_token_id=1,
            bos_token_id=1,
            eos_token_id=2,
        ),
        {"input_features": lambda: torch.randn(1, 16, 100), "decoder_input_ids": decoded},
    ),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", dict(GROUPED, head_dim=16), {"input_ids": tokens}),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", dict(GROUPED, head_dim=16, sliding_window=16), {"input_ids": tokens}, "eager"),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", dict(GROUPED, head_dim=16, sliding_window=16), {"input_ids": tokens}, "eager"),
    "mistral": ("MistralForCausalLM", "MistralConfig", dict(GROUPED, sliding_window=16), {"input_ids": tokens}),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Config", dict(GROUPED, pad_token_id=0), {"input_ids": tokens}),
    "granite": ("GraniteForCausalLM", "GraniteConfig", GROUPED, {"input_ids": tokens}),
    "starcoder2": ("Starcoder2ForCausalLM", "Starcoder2Config", GROUPED, {"input_ids": tokens}),
    "falcon": (
        "FalconForCausalLM",
        "FalconConfig",
        dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, vocab_size=1000),
        {"input_ids": tokens},
    ),
    "bloom": ("BloomForCausalLM", "BloomConfig", dict(hidden_size=64, n_layer=2, n_head=4, vocab_size=1000), {"input_ids": tokens}, "eager"),
    "opt": (
        "OPTForCausalLM",
        "OPTConfig",
        dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=128, vocab_size=1000, word_embed_proj_dim=64),
        {"input_ids": tokens},
    ),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", SMALL, {"input_ids": tokens}),
    "gptj": ("GPTJForCausalLM", "GPTJConfig", dict(n_embd=64, n_layer=2, n_head=4, rotary_dim=8, vocab_size=1000), {"input_ids": tokens}, "eager"),
    "phi": ("PhiForCausalLM", "PhiConfig", SMALL, {"input_ids": tokens}),
    "stablelm": ("StableLmForCausalLM", "StableLmConfig", GROUPED, {"input_ids": tokens}),
    "cohere": ("CohereForCausalLM", "CohereConfig", GROUPED, {"input_ids": tokens}),
    "mamba2": (
        "Mamba2ForCausalLM",
        "Mamba2Config",
        dict(hidden_size=32, num_hidden_layers=1, vocab_size=1000, state_size=8, num_heads=4, head_dim=16, n_groups=1, chunk_size=8),
        {"input_ids": lambda: tokens(16)},
        "eager",
    ),
    "rwkv": (
        "RwkvModel",
        "RwkvConfig",
        dict(hidden_size=64, num_hidden_layers=2, vocab_size=1000, context_length=16),
        {"input_ids": lambda: tokens(8)},
        "eager",
    ),
    "hubert": ("HubertModel", "HubertConfig", dict(VISION, conv_dim=(32,) * 7), {"input_values": lambda: torch.randn(1, 4000)}),
    "wavlm": ("WavLMModel", "WavLMConfig", dict(VISION, conv_dim=(32,) * 7), {"input_values": lambda: torch.randn(1, 4000)}, "eager"),
    "siglip": ("SiglipVisionModel", "SiglipVisionConfig", dict(VISION, image_size=64, patch_size=16), {"pixel_values": lambda: image(64)}),
    "beit": (
        "BeitModel",
        "BeitConfig",
        dict(VISION, image_size=64, patch_size=16, use_relative_position_bias=True),
        {"pixel_values": lambda: image(64)},
    ),
    "swinv2": (
        "Swinv2Model",
        "Swinv2Config",
        dict(image_size=64, patch_size=4, embed_dim=16, depths=[1, 2], num_heads=[2, 4], window_size=4),
        {"pixel_values": lambda: image(64)},
        "eager",
    ),
    "convnextv2": (
        "ConvNextV2Model",
        "ConvNextV2Config",
        dict(hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1]),
        {"pixel_values": lambda: image(64)},
        "eager",
    ),
    "dpt": (
        "DPTForDepthEstimation",
        "DPTConfig",
        dict(
            VISION,
            num_hidden_layers=4,
            image_size=64,
            patch_size=16,
            backbone_out_indices=[0, 1, 2, 3],
            neck_hidden_sizes=[16, 16, 32, 32],
            fusion_hidden_size=16,
            is_hybrid=False,
        ),
        {"pixel_values": lambda: image(64)},
    ),
    "yolos": (
        "YolosForObjectDetection",
        "YolosConfig",
        dict(VISION, image_size=[64, 64], patch_size=16, num_detection_tokens=10),
        {"pixel_values": lambda: image(64)},
    ),
    "videomae": (
        "VideoMAEModel",
        "VideoMAEConfig",
        dict(VISION, image_size=32, patch_size=16, num_frames=4),
        {"pixel_values": lambda: torch.randn(1, 4, 3, 32, 32)},
    ),
    "timesformer": (
        "TimesformerModel",
        "TimesformerConfig",
        dict(VISION, image_size=32, patch_size=16, num_frames=4),
        {"pixel_values": lambda: torch.randn(1, 4, 3, 32, 32)},
        "eager",
    ),
    "fnet": (
        "FNetModel",
        "FNetConfig",
        dict(hidden_size=64, num_hidden_layers=2, intermediate_size=128, vocab_size=1000),
        {"input_ids": tokens},
        "eager",
    ),
    "xlnet": ("XLNetModel", "XLNetConfig", dict(d_model=64, n_layer=2, n_head=4, d_inner=128, vocab_size=1000), {"input_ids": tokens}, "eager"),
    "perceiver": (
        "PerceiverModel",
        "PerceiverConfig",
        dict(
            num_latents=8,
            d_latents=32,
            d_model=32,
            num_blocks=1,
            num_self_attends_per_block=2,
            num_self_attention_heads=2,
            num_cross_attention_heads=2,
        ),
        {"inputs": lambda: torch.randn(1, 20, 32)},
        "eager",
    ),
    "esm": (
        "EsmModel",
        "EsmConfig",
        dict(
            SMALL, vocab_size=33, pad_token_id=1, mask_token_id=32, position_embedding_type="rotary", emb_layer_norm_before=False, token_dropout=False
        ),
        {"input_ids": lambda: torch.randint(4, 30, (1, 32)), "attention_mask": mask},
        "eager",
    ),
    "poolformer": (
        "PoolFormerModel",
        "PoolFormerConfig",
        dict(depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 48, 64]),
        {"pixel_values": lambda: image(64)},
        "eager",
    ),
    "focalnet": (
        "FocalNetModel",
        "FocalNetConfig",
        dict(image_size=64, embed_dim=16, depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 64, 128]),
        {"pixel_values": lambda: image(64)},
        "eager",
    ),
    "swin2sr": (
        "Swin2SRForImageSuperResolution",
        "Swin2SRConfig",
        dict(image_size=16, embed_dim=16, depths=[2], num_heads=[2], window_size=4, num_channels=3, upscale=2),
        {"pixel_values": lambda: image(16)},
        "eager",
    ),
    "sam_vision": (
        "SamVisionModel",
        "SamVisionConfig",
        dict(
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            image_size=64,
            patch_size=16,
            window_size=2,
            global_attn_indexes=[1],
            output_channels=16,
            mlp_dim=128,
        ),
        {"pixel_values": lambda: image(64)},
        "eager",
    ),
    "patchtst": (
        "PatchTSTForPrediction",
        "PatchTSTConfig",
        dict(
            d_model=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            ffn_dim=64,
            context_length=32,
            patch_length=8,
            patch_stride=8,
            prediction_length=8,
            num_input_channels=2,
        ),
        {"past_values": lambda: torch.randn(1, 32, 2)},
        "eager",
    ),
    "clip": (
        "CLIPModel",
        "CLIPConfig",
        dict(
            text_config=dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=1000),
            vision_config=dict(VISION, image_size=64, patch_size=16),
        ),
        {"input_ids": lambda: tokens(8), "pixel_values": lambda: image(64)},
    ),
    "blip_vision": ("BlipVisionModel", "BlipVisionConfig", dict(VISION, image_size=64, patch_size=16), {"pixel_values": lambda: image(64)}, "eager"),
    "detr": (
        "DetrForObjectDetection",
        "DetrConfig",
        dict(
            DETECTION,
            use_timm_backbone=False,
            use_pretrained_backbone=False,
            backbone=None,
            backbone_config="resnet",
        ),
        {"pixel_values": lambda: image(64)},
        "eager",
    ),
    "rt_detr": (
        "RTDetrForObjectDetection",
        "RTDetrConfig",
        dict(
            DETECTION,
            encoder_hidden_dim=64,
            encoder_in_channels=[32, 48, 64],
            decoder_in_channels=[64, 64, 64],
            backbone_config="rt_resnet",
        ),
        {"pixel_values": lambda: image(64)},
        "eager",
    ),
    "upernet": (
        "UperNetForSemanticSegmentation",
        "UperNetConfig",
        dict(hidden_size=32, pool_scales=[1, 2], use_auxiliary_head=False, backbone_config="convnext"),
        {"pixel_values": lambda: image(64)},
        "eager",
    ),
    "deit": ("DeiTModel", "DeiTConfig", dict(VISION, image_size=64, patch_size=16), {"pixel_values": lambda: image(64)}),
    "layoutlm": ("LayoutLMModel", "LayoutLMConfig", SMALL, {"input_ids": tokens}, "eager"),
}

# Models of torchvision by the size of an image, or the sizes of a video, and whether the result is named.
TORCHVISION = {
    "swin_v2_t": (224,),
    "efficientnet_v2_s": (224,),
    "mvit_v2_s": (16, 224, 224),
    "r3d_18": (8, 64, 64),
    "deeplabv3_mobilenet_v3_large": (128,),
    "fcn_resnet50": (128,),
    "lraspp_mobilenet_v3_large": (128,),
}
BLOCKS = dict(block_out_channels=(32, 64), layers_per_block=1, norm_num_groups=8)
COLUMNS = dict(block_out_channels=(16, 32), down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2, norm_num_groups=8)
UNET = dict(
    BLOCKS,
    sample_size=16,
    down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    cross_attention_dim=32,
    attention_head_dim=8,
)
PLAIN_UNET = dict(
    BLOCKS, sample_size=16, down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8
)
DIT = dict(num_attention_heads=4, attention_head_dim=16, num_layers=2, sample_size=8, patch_size=2, norm_num_groups=8, in_channels=4, out_channels=8)
SD3 = dict(
    sample_size=8,
    patch_size=2,
    in_channels=4,
    num_layers=2,
    attention_head_dim=16,
    num_attention_heads=4,
    joint_attention_dim=32,
    caption_projection_dim=64,
    pooled_projection_dim=32,
    out_channels=4,
    pos_embed_max_size=8,
)
FLUX = dict(
    patch_size=1,
    in_channels=4,
    num_layers=1,
    num_single_layers=1,
    attention_head_dim=16,
    num_attention_heads=2,
    joint_attention_dim=32,
    pooled_projection_dim=32,
    axes_dims_rope=(4, 4, 8),
)


def places(side):
    """The lines and columns of an image's patches."""
    along = torch.arange(float(side))
    return torch.stack(torch.meshgrid(torch.zeros(1), along, along, indexing="ij"), -1).reshape(side * side, 3)


def first(model, *inputs):
    return model(*inputs, return_dict=False)[0]


# Model, configuration, what of it is exported, and its inputs.
DIFFUSERS = {
    "sd_unet": ("UNet2DConditionModel", UNET, first, lambda: (torch.randn(1, 4, 16, 16), torch.tensor([7]), torch.randn(1, 8, 32))),
    "unet2d": ("UNet2DModel", PLAIN_UNET, first, lambda: (torch.randn(1, 3, 16, 16), torch.tensor([7]))),
    "vae_decoder": ("AutoencoderKL", COLUMNS, lambda model, x: model.decode(x, return_dict=False)[0], lambda: (torch.randn(1, 4, 8, 8),)),
    "vae_encoder": ("AutoencoderKL", COLUMNS, lambda model, x: model.encode(x).latent_dist.mean, lambda: (torch.randn(1, 3, 32, 32),)),
    "dit": ("DiTTransformer2DModel", DIT, first, lambda: (torch.randn(1, 4, 8, 8), torch.tensor([7]), torch.tensor([3]))),
    "sd3": ("SD3Transformer2DModel", SD3, first, lambda: (torch.randn(1, 4, 8, 8), torch.randn(1, 6, 32), torch.randn(1, 32), torch.tensor([7.0]))),
    "flux": (
        "FluxTransformer2DModel",
        FLUX,
        lambda model, x, texts, pooled, time, ids, at: first(model, x, texts, pooled, time, at, ids),
        lambda: (torch.randn(1, 16, 4), torch.randn(1, 6, 32), torch.randn(1, 32), torch.tensor([0.7]), torch.zeros(6, 3), places(4)),
    ),
}


class Part(torch.nn.Module):
    """A part of what a model does, of positional inputs."""

    def __init__(self, model, forward):
        super().__init__()
        self.model, self.part = model, forward

    def forward(self, *inputs):
        return self.part(self.model, *inputs)


def backbone(name):
    """The configuration of the network under a detector."""
    import transformers

    sizes = dict(depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 48, 64])
    if name == "resnet":
        return transformers.ResNetConfig(
            embedding_size=16, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], layer_type="basic", out_features=["stage4"]
        )
    if name == "rt_resnet":
        return transformers.RTDetrResNetConfig(**sizes, embedding_size=16, layer_type="basic", out_features=["stage2", "stage3", "stage4"])
    return transformers.ConvNextConfig(**sizes, out_features=["stage1", "stage2", "stage3", "stage4"])


def made(name):
    """A model of diffusers or torchvision and its inputs; None of others."""
    if name in DIFFUSERS:
        import diffusers

        model, values, forward, inputs = DIFFUSERS[name]
        return Part(getattr(diffusers, model)(**values), forward), inputs()
    if name not in TORCHVISION:
        return None
    import torchvision

    size, is_segmented = TORCHVISION[name], name.startswith(("deeplab", "fcn", "lraspp"))
    model = torchvision.models.get_model(name, weights=None, **({"weights_backbone": None} if is_segmented else {}))
    x = image(size[0]) if len(size) == 1 else torch.randn(1, 3, *size)
    return (Part(model, lambda model, x: model(x)["out"]) if is_segmented else model), (x,)
