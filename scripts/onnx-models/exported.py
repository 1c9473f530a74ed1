"""Writes models as PyTorch exports them, with random weights and small sizes: what users have, beside the forms of write.py.

usage: exported.py DIR [NAME ...] [--legacy]
Each is DIR/NAME/{model.onnx, inputs/<name>.npy, outputs/<name>.npy}, as compare.py takes it; the outputs are PyTorch's own. --legacy exports
by TorchScript and operator set 17. A model that PyTorch does not export is named, and left out.
needs: pip install torch torchvision timm transformers diffusers onnxscript onnx numpy"""
import argparse, logging, pathlib, shutil, warnings

import numpy as np
import onnx
import torch

import families
from families import GROUPED, SMALL, image, mask, tokens

VISION = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4)
TIMM = {
    "resnet18": {}, "convnext_atto": {}, "efficientnet_b0": {}, "mobilenetv3_small_100": {}, "regnetx_002": {}, "mixer_s32_224": {},
    "coatnet_0_rw_224": {}, "levit_128s": {}, "densenet121": {}, "hrnet_w18_small": {}, "nf_resnet50": {}, "repvgg_a0": {},
    "maxvit_nano_rw_256": {"size": 256}, "mobilevit_xxs": {"size": 256}, "inception_v3": {"size": 299},
    "swin_tiny_patch4_window7_224": {"depths": (1, 1, 2, 1)}, "vit_tiny_patch16_224": {"depth": 3},
    "deit_tiny_distilled_patch16_224": {"depth": 2}, "eva02_tiny_patch14_224": {"depth": 2},
}
TORCHVISION = ["shufflenet_v2_x0_5", "googlenet", "squeezenet1_1", "mnasnet0_5"]


# Model, configuration, its values, inputs by name, and the implementation of attention.
HUGGING_FACE = {
    "bert": ("BertModel", "BertConfig", SMALL, {"input_ids": tokens, "attention_mask": mask}),
    "roberta": ("RobertaModel", "RobertaConfig", SMALL, {"input_ids": tokens, "attention_mask": mask}),
    "distilbert": ("DistilBertForSequenceClassification", "DistilBertConfig", dict(dim=64, n_layers=2, n_heads=4, hidden_dim=128, vocab_size=1000),
                   {"input_ids": tokens, "attention_mask": mask}),
    "deberta": ("DebertaV2Model", "DebertaV2Config", dict(SMALL, relative_attention=True, position_buckets=16, pos_att_type=["c2p", "p2c"],
                norm_rel_ebd="layer_norm", share_att_key=True), {"input_ids": tokens, "attention_mask": mask}, "eager"),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", dict(n_embd=64, n_layer=2, n_head=4, vocab_size=1000), {"input_ids": tokens}),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED, {"input_ids": tokens}),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", GROUPED, {"input_ids": tokens}),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", dict(GROUPED, head_dim=16), {"input_ids": tokens}),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", dict(GROUPED, pad_token_id=0), {"input_ids": tokens}),
    "t5_encoder": ("T5EncoderModel", "T5Config", dict(d_model=64, num_layers=2, num_heads=4, d_ff=128, d_kv=16, vocab_size=1000), {"input_ids": tokens}),
    "clip_vision": ("CLIPVisionModel", "CLIPVisionConfig", dict(VISION, intermediate_size=128, image_size=64, patch_size=16),
                    {"pixel_values": lambda: image(64)}),
    "dinov2": ("Dinov2Model", "Dinov2Config", dict(VISION, image_size=56, patch_size=14), {"pixel_values": lambda: image(56)}),
    "segformer": ("SegformerForSemanticSegmentation", "SegformerConfig", dict(depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 40, 64], decoder_hidden_size=32),
                  {"pixel_values": lambda: image(64)}, "eager"),
    "whisper_encoder": ("WhisperForAudioClassification", "WhisperConfig", dict(d_model=64, encoder_layers=2, encoder_attention_heads=4,
                        encoder_ffn_dim=128, num_mel_bins=16, max_source_positions=50), {"input_features": lambda: torch.randn(1, 16, 100)}),
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2Config", dict(VISION, intermediate_size=128, conv_dim=(32,) * 7), {"input_values": lambda: torch.randn(1, 4000)}),
    "mamba": ("MambaForCausalLM", "MambaConfig", dict(hidden_size=32, num_hidden_layers=1, vocab_size=1000, state_size=8),
              {"input_ids": lambda: tokens(8)}, "eager"),
}


class FirstResult(torch.nn.Module):
    """A model of transformers with positional inputs."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs):
        return self.model(**dict(zip(self.names, inputs))).to_tuple()[0]


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(16, 32, 2, bidirectional=True, batch_first=True)
        self.gru = torch.nn.GRU(64, 16, batch_first=True)

    def forward(self, x):
        return self.gru(self.lstm(x)[0])[0]


def made(name):
    """The model and its inputs."""
    if name == "recurrent":
        return Recurrent(), (torch.randn(2, 12, 16),)
    if name in TORCHVISION:
        import torchvision
        return torchvision.models.get_model(name, weights=None), (image(224),)
    if name in TIMM:
        import timm
        values = dict(TIMM[name])
        size = values.pop("size", 224)
        return timm.create_model(name, pretrained=False, **values), (image(size),)
    if found := families.made(name):
        return found
    import transformers
    model, config, values, inputs, *attention = {**HUGGING_FACE, **families.FAMILIES}[name]
    if "backbone_config" in values:
        values = dict(values, backbone_config=families.backbone(values["backbone_config"]))
    config = getattr(transformers, config)(**values)
    config.use_cache, config.return_dict = False, True
    model = getattr(transformers, model)._from_config(config, attn_implementation=(attention or ["sdpa"])[0])
    return FirstResult(model, list(inputs)), tuple(value() for value in inputs.values())


def write(folder, name, legacy):
    model, inputs = made(name)
    model.eval()
    folder.mkdir(parents=True)
    path = folder / "model.onnx"
    with torch.no_grad():
        if legacy:
            torch.onnx.export(model, inputs, str(path), dynamo=False, opset_version=17)
        else:
            torch.onnx.export(model, inputs, str(path), dynamo=True, external_data=False, verbose=False)
        results = model(*inputs)
    graph = onnx.load(path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    given = [value.name for value in graph.input if value.name not in weights]
    results = results if isinstance(results, tuple) else (results,)
    for kind, names, values in [("inputs", given, inputs), ("outputs", [value.name for value in graph.output], results)]:
        (folder / kind).mkdir()
        for tensor, value in zip(names, values):
            np.save(folder / kind / f"{tensor.replace('/', '_')}.npy", value.numpy())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--legacy", action="store_true")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    for name in args.names or [*TIMM, *TORCHVISION, *HUGGING_FACE, *families.FAMILIES, *families.DIFFUSERS, *families.TORCHVISION, "recurrent"]:
        torch.manual_seed(0)
        folder = args.folder / name
        if folder.exists():
            continue
        try:
            write(folder, name, args.legacy)
        except Exception as error:  # whatever an exporter raises
            shutil.rmtree(folder, ignore_errors=True)
            print(f"{name}: not exported: {type(error).__name__}: {str(error).splitlines()[0][:120]}")


if __name__ == "__main__":
    main()
