#!/usr/bin/env python3
"""Single ops as models have them, on one CPU thread, beside onnxruntime: values checked, times in turns.

usage: ops.py DIR [--only NAME,..] [--rounds 5] [--against BINARY] [--write FILE]
DIR keeps the programs, their inputs and onnxruntime's results; NAME may end in *. The binary is MONOPOUR, or target/release/monopour.
--against takes another build of monopour in onnxruntime's place. Weights are constants of the program, everything else is an input.
A round times one, then the other; the ratio is the median of the rounds' ratios, ours over theirs. The exit status is 1 if a value
or a run is wrong. needs: pip install numpy onnx onnxruntime"""
import argparse
import datetime
import fnmatch
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "onnx-models"))
from theirs import session

BINARY = os.environ.get("MONOPOUR", str(ROOT / "target/release/monopour"))
# What a round of one side takes, in seconds, with at least this many runs.
ROUND, RUNS = 0.2, 5
OPS = {}


class Program:
    """A graph of a few nodes; `t` is the element type of its floats."""

    def __init__(self, name, t=np.float32):
        self.name, self.t, self.nodes, self.inits, self.inputs, self.feeds = name, t, [], [], [], {}
        self.rng = np.random.default_rng(sum(name.encode()))

    def given(self, *shape, values=None):
        values = self.rng.standard_normal(shape).astype(self.t) if values is None else values
        name = f"x{len(self.feeds)}"
        self.feeds[name] = values
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(values.dtype), values.shape))
        return name

    def const(self, *shape, values=None, scale=1.0):
        values = (self.rng.standard_normal(shape) * scale).astype(self.t) if values is None else np.asarray(values)
        name = f"c{len(self.inits)}"
        self.inits.append(numpy_helper.from_array(values, name))
        return name

    def __call__(self, op, *operands, domain="", **attributes):
        result = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, operands, [result], domain=domain, **attributes))
        return result

    def save(self, folder, result):
        out = helper.make_value_info(result, onnx.TypeProto())
        graph = helper.make_graph(self.nodes, self.name, self.inputs, [out], self.inits)
        sets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=sets, ir_version=9)
        os.makedirs(folder / "inputs", exist_ok=True)
        os.makedirs(folder / "outputs", exist_ok=True)
        # The result's type, from the session, which needs none.
        path = str(folder / "model.onnx")
        onnx.save(model, path)
        value = session(path, 1).run(None, self.feeds)[0]
        out.CopyFrom(helper.make_tensor_value_info(result, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
        graph.output[0].CopyFrom(out)
        model.graph.CopyFrom(graph)
        onnx.save(model, path)
        for name, values in self.feeds.items():
            np.save(folder / f"inputs/{name}.npy", values)
        np.save(folder / f"outputs/{result}.npy", value)


def program(name, t=np.float32):
    def add(build):
        OPS[name] = (t, build)
    return add


def conv(name, channels, filters, kernel, stride, size, group=1):
    """A convolution without dilation, padded to keep the size, with bias and clipped below."""
    @program(name)
    def build(p):
        weights = p.const(filters, channels // group, kernel, kernel, scale=(channels // group * kernel**2) ** -0.5)
        x = p("Conv", p.given(1, channels, size, size), weights, p.const(filters), strides=[stride] * 2, pads=[kernel // 2] * 4, group=group)
        return p("Relu", x)


# ResNet-50: each different convolution, by its place.
conv("resnet_stem_7x7s2", 3, 64, 7, 2, 224)
for size, width, before in ((56, 64, 64), (28, 128, 256), (14, 256, 512), (7, 512, 1024)):
    if size == 56:
        conv("resnet_56_1x1_first", 64, 64, 1, 1, 56)
    else:
        conv(f"resnet_{size}_1x1_first", before, width, 1, 1, 2 * size)
        conv(f"resnet_{size}_3x3s2", width, width, 3, 2, 2 * size)
    if size != 56:
        conv(f"resnet_{size}_1x1s2_skip", before, 4 * width, 1, 2, 2 * size)
    conv(f"resnet_{size}_3x3", width, width, 3, 1, size)
    conv(f"resnet_{size}_1x1_widen", width, 4 * width, 1, 1, size)
    conv(f"resnet_{size}_1x1_narrow", 4 * width, width, 1, 1, size)
# MobileNetV2: likewise.
conv("mobilenet_stem_3x3s2", 3, 32, 3, 2, 224)
for channels, stride, size in ((32, 1, 112), (96, 2, 112), (144, 1, 56), (144, 2, 56), (192, 1, 28), (384, 1, 14), (576, 2, 14), (960, 1, 7)):
    conv(f"mobilenet_depthwise_{channels}_at_{size}s{stride}", channels, channels, 3, stride, size, channels)
for channels, filters, size in ((16, 96, 112), (144, 24, 56), (192, 32, 28), (576, 96, 14), (160, 960, 7), (320, 1280, 7)):
    conv(f"mobilenet_1x1_{channels}_{filters}_at_{size}", channels, filters, 1, 1, size)


@program("resnet_max_pool_3x3s2")
def _(p):
    return p("MaxPool", p.given(1, 64, 112, 112), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)


@program("resnet_average_pool")
def _(p):
    return p("GlobalAveragePool", p.given(1, 2048, 7, 7))


def product(name, m, k, n, t=np.float32):
    @program(name, t)
    def build(p):
        return p("Add", p("MatMul", p.given(m, k), p.const(k, n, scale=k**-0.5)), p.const(n))


product("resnet_classes_1x2048x1000", 1, 2048, 1000)
product("gpt2_qkv_128x768x2304", 128, 768, 2304)
product("gpt2_projection_128x768x768", 128, 768, 768)
product("gpt2_up_128x768x3072", 128, 768, 3072)
product("gpt2_down_128x3072x768", 128, 3072, 768)
product("gpt2_step_qkv_1x768x2304", 1, 768, 2304)
product("gpt2_step_down_1x3072x768", 1, 3072, 768)
product("gpt2_logits_1x768x50257", 1, 768, 50257)
product("llama_step_1x2048x8192", 1, 2048, 8192)
product("llama_step_1x8192x2048", 1, 8192, 2048)
product("vit_qkv_197x768x2304", 197, 768, 2304)
product("vit_up_197x768x3072", 197, 768, 3072)
product("matvec_1x4096x4096", 1, 4096, 4096)
product("f16_product_512", 512, 512, 512, np.float16)
product("f16_matvec_1x4096x4096", 1, 4096, 4096, np.float16)


@program("u8_i8_product_512")
def _(p):
    left = p.given(values=p.rng.integers(0, 256, (512, 512)).astype(np.uint8))
    right = p.const(values=p.rng.integers(-128, 128, (512, 512)).astype(np.int8))
    return p("MatMulInteger", left, right, p.const(values=np.uint8(128)))


@program("i8_dynamic_128x768x768")
def _(p):
    right = p.const(values=p.rng.integers(-128, 128, (768, 768)).astype(np.int8))
    return p("DynamicQuantizeMatMul", p.given(128, 768), right, p.const(values=np.float32(0.01)), domain="com.microsoft")


def quantised_convolution(channels_in, channels_out, window, size):
    def build(p):
        image = p.given(values=p.rng.integers(0, 256, (1, channels_in, size, size)).astype(np.uint8))
        weights = p.const(values=p.rng.integers(-128, 128, (channels_out, channels_in, window, window)).astype(np.int8))
        bias = p.const(values=p.rng.integers(-1000, 1000, channels_out).astype(np.int32))
        scale, zero = (lambda value: p.const(values=np.float32(value))), p.const(values=np.uint8(128))
        operands = [image, scale(0.02), zero, weights, scale(0.01), p.const(values=np.int8(0)), scale(2.0), zero, bias]
        return p("QLinearConv", *operands, pads=[window // 2] * 4)

    return build


program("u8_i8_conv_3x3_64_at_56")(quantised_convolution(64, 64, 3, 56))
program("u8_i8_conv_1x1_256_64_at_56")(quantised_convolution(256, 64, 1, 56))


@program("int4_matvec_1x4096x4096")
def _(p):
    weights = p.const(values=p.rng.integers(0, 256, (4096, 128, 16)).astype(np.uint8))
    scales = p.const(values=p.rng.random(4096 * 128).astype(np.float32) * 0.01)
    return p("MatMulNBits", p.given(1, 4096), weights, scales, domain="com.microsoft", K=4096, N=4096, bits=4, block_size=32)


@program("softmax_12x128x128")
def _(p):
    return p("Softmax", p.given(1, 12, 128, 128), axis=-1)


@program("layernorm_197x768")
def _(p):
    return p("LayerNormalization", p.given(197, 768), p.const(768), p.const(768), axis=-1)


@program("attention_12x197x64")
def _(p):
    q, k, v = p.given(1, 12, 197, 64), p.given(1, 12, 64, 197), p.given(1, 12, 197, 64)
    return p("MatMul", p("Softmax", p("Mul", p("MatMul", q, k), p.const(values=np.float32(0.125))), axis=-1), v)


@program("gelu_128x3072")
def _(p):
    x = p.given(128, 3072)
    erf = p("Erf", p("Div", x, p.const(values=np.float32(math.sqrt(2)))))
    return p("Mul", p("Mul", x, p("Add", erf, p.const(values=np.float32(1)))), p.const(values=np.float32(0.5)))


@program("silu_times_128x8192")
def _(p):
    x = p.given(128, 8192)
    return p("Mul", p("Mul", x, p("Sigmoid", x)), p.given(128, 8192))


@program("residual_add_256x56x56")
def _(p):
    return p("Relu", p("Add", p.given(1, 256, 56, 56), p.given(1, 256, 56, 56)))


@program("transpose_2048")
def _(p):
    return p("Transpose", p.given(2048, 2048), perm=[1, 0])


@program("heads_1x128x12x64")
def _(p):
    return p("Transpose", p.given(1, 128, 12, 64), perm=[0, 2, 1, 3])


@program("gather_128_of_50257x768")
def _(p):
    return p("Gather", p.const(50257, 768), p.given(values=p.rng.integers(0, 50257, 128)))


@program("concat_channels_28")
def _(p):
    return p("Concat", *(p.given(1, c, 28, 28) for c in (64, 128, 32, 32)), axis=1)


@program("slice_channels_56")
def _(p):
    bounds = [p.const(values=np.array([v], np.int64)) for v in (32, 160, 1)]
    return p("Slice", p.given(1, 192, 56, 56), *bounds)


@program("resize_2x_64_at_56")
def _(p):
    scales = p.const(values=np.array([1, 1, 2, 2], np.float32))
    return p("Resize", p.given(1, 64, 56, 56), "", scales, mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric")


@program("reduce_mean_64x3136")
def _(p):
    return p("ReduceMean", p.given(64, 56, 56), p.const(values=np.array([1, 2])), keepdims=0)


def write(folder, name):
    t, build = OPS[name]
    p = Program(name, t)
    p.save(folder, build(p))


def statistics_of(binary, folder, runs, threads=1, model="model.onnx"):
    """The statistics of `run`, after a check of the values; None, with its errors on standard error, where one is wrong."""
    half = any(np.load(f, mmap_mode="r").dtype == np.float16 for f in (folder / "outputs").iterdir())
    bound = "2e-2" if half else "1e-3"
    command = [binary, "run", str(folder / model), "--device", "cpu", "--threads", str(threads), "--stats=json", "--quiet", "--warmup", "3"]
    command += ["--inputs", str(folder / "inputs"), "--check", str(folder / "outputs"), "--rtol", bound, "--atol", bound, "--repeat", str(runs)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{folder.name}: {done.stdout[-500:]}{done.stderr[-1000:]}", file=sys.stderr)
        return None
    return json.JSONDecoder().raw_decode(done.stdout[done.stdout.index("{"):])[0]


def ours(binary, folder, runs):
    """Median time of a run in milliseconds, or None where a value is wrong."""
    found = statistics_of(binary, folder, runs)
    return found and found["run_ms"]["median"]


class Peer:
    """onnxruntime, with inputs and result bound."""

    def __init__(self, folder):
        self.session = session(folder / "model.onnx", 1)
        self.binding = self.session.io_binding()
        for given in self.session.get_inputs():
            self.binding.bind_cpu_input(given.name, np.load(folder / f"inputs/{given.name}.npy"))
        for out in self.session.get_outputs():
            self.binding.bind_output(out.name, "cpu")

    def time(self, runs):
        for _ in range(3):
            self.session.run_with_iobinding(self.binding)
        times = []
        for _ in range(runs):
            start = time.perf_counter()
            self.session.run_with_iobinding(self.binding)
            times.append((time.perf_counter() - start) * 1e3)
        return statistics.median(times)


def runs_of(milliseconds):
    """How many runs of so long a round has."""
    return max(RUNS, min(2000, int(ROUND * 1e3 / max(milliseconds, 1e-3))))


def row(root, name, rounds, against):
    """Median times of both sides and the ratio, or None where a value is wrong."""
    folder = root / name
    if not (folder / "outputs").exists() or not any((folder / "outputs").iterdir()):
        write(folder, name)
    peer = None if against else Peer(folder)
    theirs = (lambda runs: ours(against, folder, runs)) if against else peer.time
    first = theirs(RUNS)
    if first is None:
        return None
    runs = runs_of(first)
    pairs = [(ours(BINARY, folder, runs), theirs(runs)) for _ in range(rounds)]
    if any(None in pair for pair in pairs):
        return None
    mine, other = (statistics.median(side) for side in zip(*pairs))
    return mine, other, statistics.median(a / b for a, b in pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--only", default="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--against", metavar="BINARY")
    parser.add_argument("--write", metavar="FILE")
    args = parser.parse_args()
    names = [name for name in OPS if any(fnmatch.fnmatch(name, wanted) for wanted in args.only.split(","))]
    lines = [f"| op | monopour, ms | {'the other build' if args.against else 'onnxruntime'}, ms | ratio |", "|---|---|---|---|"]
    print("\n".join(lines))
    before, ratios, wrong = os.getloadavg()[0], [], []
    for name in names:
        found = row(args.dir, name, args.rounds, args.against)
        if found is None:
            wrong.append(name)
            continue
        ratios.append(found[2])
        lines.append(f"| {name} | {found[0]:.4g} | {found[1]:.4g} | {found[2]:.2f} |")
        print(lines[-1], flush=True)
    mean = math.exp(statistics.fmean(map(math.log, ratios))) if ratios else math.nan
    above = sum(ratio > 1.1 for ratio in ratios)
    end = f"{len(ratios)} ops: geometric mean {mean:.3f}, largest {max(ratios, default=math.nan):.2f}, {above} above 1.1."
    print(f"\n{end}" + (f" Wrong: {', '.join(wrong)}" if wrong else ""))
    if args.write and not wrong:
        cpu = next(line.split(": ")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
        head = f"# Single ops on one CPU thread, beside onnxruntime {ort.__version__}\n\nWritten by `make bench-ops` on {datetime.date.today()}. Machine: {cpu}, {os.cpu_count()} cores. Load average before {before:.1f}, after {os.getloadavg()[0]:.1f}.\nMedian milliseconds of a run, inputs in place; the ratio is the median of {args.rounds} rounds in turns.\n{end}\n"
        pathlib.Path(args.write).write_text(head + "\n" + "\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
