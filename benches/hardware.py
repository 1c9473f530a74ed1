#!/usr/bin/env python3
"""Times monopour on a GPU beside PyTorch, in one run: the programs of `docs/measurements/hardware.md`.

usage: hardware.py [--binary monopour] [--prog softmax,matmul_f32_4096] [--repeat 30] [--json FILE] [--write FILE.md]
       hardware.py --texts DIR        on a machine without the device: the programs, to be compiled to DIR/NAME.mpr for what
                                      `monopour devices --json` printed on the machine with it; there: --artifacts DIR
Needs PyTorch with CUDA and NumPy. The binary is MONOPOUR, or target/release/monopour; without artifacts it compiles for the device
that it finds.

Both sides get the same inputs, of random numbers. Ours is the sum of the dispatches by the device's timestamps; PyTorch's is by
events around a graph of the launches, with the caches warm on both sides. Every result is compared with PyTorch's in f64 or, where
that takes too long, in f32 with TF32 off: |ours - theirs| / |theirs| in the Frobenius norm."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import torch.nn.functional as F

from linalg import empty, filled, function, generic, product, softmax_of, tensor

ROOT = pathlib.Path(__file__).resolve().parent.parent
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False


def narrowed(name, value, shape, loops):
    indices = ", ".join(loops.split())
    return empty(f"{name}e", shape, "f16") + generic(
        name, loops, [(value, shape, "f32", indices)], (f"{name}e", shape, indices), "%s = arith.truncf %a : f32 to f16", "f16")


def matmul(m, n, k, element):
    body = filled("%f", (m, n)) + product(
        "%r", "m n k!", ("%arg0", (m, k), "m, k"), ("%arg1", (k, n), "k, n"), ("%f", (m, n), "m, n"), element)
    result = ("%r", tensor((m, n)))
    if element != "f32":
        body, result = body + narrowed("%h", "%r", (m, n), "m n"), ("%h", tensor((m, n), element))
    inputs = [((m, k), element), ((k, n), element)]
    return function(inputs, result, body), inputs, lambda a, b: a @ b, {"flops": 2 * m * n * k}


def layer(m, n, k):
    """A product of halves with bias, GELU and residual."""
    constants = {"cube": 0.044715, "root": 0.7978845, "one": 1.0, "half": 0.5}
    body = "".join(f"  %{name} = arith.constant {value} : f32\n" for name, value in constants.items()) + filled("%f", (m, n))
    body += product("%r", "m n k!", ("%arg0", (m, k), "m, k"), ("%arg1", (k, n), "k, n"), ("%f", (m, n), "m, n"), "f16") + empty("%he", (m, n), "f16")
    steps = [("%x", "addf", "%a", "%bias"), ("%x2", "mulf", "%x", "%x"), ("%x3", "mulf", "%x2", "%x"), ("%x4", "mulf", "%x3", "%cube"),
             ("%x5", "addf", "%x4", "%x"), ("%x6", "mulf", "%x5", "%root"), ("%x8", "addf", "%x7", "%one"), ("%x9", "mulf", "%x8", "%x"),
             ("%g", "mulf", "%x9", "%half"), ("%sum", "addf", "%g", "%rest")]
    lines = ["%bias = arith.extf %b : f16 to f32", "%rest = arith.extf %c : f16 to f32"]
    lines += [f"{name} = arith.{op} {x}, {y} : f32" for name, op, x, y in steps] + ["%s = arith.truncf %sum : f32 to f16"]
    lines.insert(8, "%x7 = math.tanh %x6 : f32")
    reads = [("%r", (m, n), "f32", "m, n"), ("%arg2", (n,), "f16", "n"), ("%arg3", (m, n), "f16", "m, n")]
    body += generic("%h", "m n", reads, ("%he", (m, n), "m, n"), "; ".join(lines), "f16")
    inputs = [((m, k), "f16"), ((k, n), "f16"), ((n,), "f16"), ((m, n), "f16")]
    return function(inputs, ("%h", tensor((m, n), "f16")), body), inputs, lambda a, b, c, d: F.gelu(a @ b + c, approximate="tanh") + d, {"flops": 2 * m * n * k}


def matvec(n, element):
    body = filled("%f", (n,)) + product("%r", "m k!", ("%arg0", (n, n), "m, k"), ("%arg1", (n,), "k"), ("%f", (n,), "m"), element)
    inputs = [((n, n), element), ((n,), element)]
    wide = (lambda a, x: a @ x) if element == "f32" else (lambda a, x: (a @ x).float())
    return function(inputs, ("%r", tensor((n,))), body), inputs, wide, {"bytes": n * n * (4 if element == "f32" else 2)}


def packed(m, n, k, block=32):
    """Weights of four bits, two to a byte, [n, k / block, block / 2], with a scale per block, and their product with x."""
    stored, scales, whole = (n, k // block, block // 2), (n, k // block), (n, k // block, block // 2, 2)
    body = "  %mask = arith.constant 15 : i8\n  %four = arith.constant 4 : i8\n  %eight = arith.constant 8.0 : f32\n" + empty("%de", whole)
    unpack = ("%at = linalg.index 3 : index; %h = arith.index_cast %at : index to i8; %u = arith.muli %h, %four : i8; "
              "%r = arith.shrui %a, %u : i8; %q = arith.andi %r, %mask : i8; %x = arith.uitofp %q : i8 to f32; "
              "%y = arith.subf %x, %eight : f32; %s = arith.mulf %y, %b : f32")
    body += generic("%d", "n g j h", [("%arg1", stored, "i8", "n, g, j"), ("%arg2", scales, "f32", "n, g")], ("%de", whole, "n, g, j, h"), unpack)
    body += f"  %w = tensor.collapse_shape %d [[0], [1, 2, 3]] : {tensor(whole)} into {tensor((n, k))}\n" + filled("%f", (m, n))
    body += product("%r", "m n k!", ("%arg0", (m, k), "m, k"), ("%w", (n, k), "n, k"), ("%f", (m, n), "m, n"), "f32")
    inputs = [((m, k), "f32"), (stored, "i8"), (scales, "f32")]

    def reference(x, w, s):
        w = torch.stack([w & 15, (w >> 4) & 15], -1).to(x.dtype) - 8
        return x @ (w.reshape(n, k // block, block) * s[:, :, None]).reshape(n, k).T
    return function(inputs, ("%r", tensor((m, n))), body), inputs, reference, {"bytes": n * k // 2 + n * k // block * 4, "flops": 2 * m * n * k}


ROW, FULL = "i", "i, j"


def softmax(rows, columns):
    shape = (rows, columns)
    body = softmax_of("%arg0", shape, "i j", ROW, FULL, "%r")
    return function([(shape, "f32")], ("%r", tensor(shape)), body), [(shape, "f32")], lambda x: torch.softmax(x, -1), {"bytes": 8 * rows * columns}


def layernorm(rows, columns):
    shape, head, line = (rows, columns), (rows,), (columns,)
    body = f"  %n = arith.constant {columns}.0 : f32\n  %eps = arith.constant 1.0e-5 : f32\n" + filled("%zr", head) + empty("%e", shape)
    body += generic("%sum", "i j!", [("%arg0", shape, "f32", FULL)], ("%zr", head, ROW), "%s = arith.addf %o, %a : f32")
    body += generic("%xc", "i j", [("%arg0", shape, "f32", FULL), ("%sum", head, "f32", ROW)], ("%e", shape, FULL), "%m = arith.divf %b, %n : f32; %s = arith.subf %a, %m : f32")
    body += generic("%sq", "i j!", [("%xc", shape, "f32", FULL)], ("%zr", head, ROW), "%m = arith.mulf %a, %a : f32; %s = arith.addf %m, %o : f32")
    reads = [("%xc", shape, "f32", FULL), ("%sq", head, "f32", ROW), ("%arg1", line, "f32", "j"), ("%arg2", line, "f32", "j")]
    body += generic("%r", "i j", reads, ("%e", shape, FULL), "%v = arith.divf %b, %n : f32; %w = arith.addf %v, %eps : f32; %q = math.rsqrt %w : f32; "
                    "%m = arith.mulf %a, %q : f32; %g = arith.mulf %m, %c : f32; %s = arith.addf %g, %d : f32")
    inputs = [(shape, "f32"), (line, "f32"), (line, "f32")]
    return function(inputs, ("%r", tensor(shape)), body), inputs, lambda x, g, b: F.layer_norm(x, (columns,), g, b), {"bytes": 8 * rows * columns}


def chain(n):
    """Six ops on each element, of one input."""
    shape = (n,)
    body = "  %h = arith.constant 0.5 : f32\n  %c = arith.constant 0.044715 : f32\n  %k = arith.constant 0.7978845 : f32\n  %one = arith.constant 1.0 : f32\n" + empty("%e", shape)
    steps = [("%t1", ["%arg0"], "%m = arith.mulf %a, %a : f32; %q = arith.mulf %m, %a : f32; %s = arith.mulf %q, %c : f32"),
             ("%t2", ["%t1", "%arg0"], "%s = arith.addf %a, %b : f32"), ("%t3", ["%t2"], "%m = arith.mulf %a, %k : f32; %s = math.tanh %m : f32"),
             ("%t4", ["%t3"], "%s = arith.addf %a, %one : f32"), ("%t5", ["%t4", "%arg0"], "%s = arith.mulf %a, %b : f32"),
             ("%t6", ["%t5"], "%s = arith.mulf %a, %h : f32")]
    for name, reads, text in steps:
        # `%c` is a constant here.
        body += generic(name, "i", [(r, shape, "f32", "i") for r in reads], ("%e", shape, "i"), text)
    return function([(shape, "f32")], ("%t6", tensor(shape)), body), [(shape, "f32")], lambda x: F.gelu(x, approximate="tanh"), {"bytes": 8 * n}


def copy(n):
    shape = (n,)
    body = empty("%e", shape) + generic("%r", "i", [("%arg0", shape, "f32", "i")], ("%e", shape, "i"), "%s = arith.negf %a : f32")
    return function([(shape, "f32")], ("%r", tensor(shape)), body), [(shape, "f32")], lambda x: -x, {"bytes": 8 * n}


def transpose(rows, columns):
    shape, turned = (rows, columns), (columns, rows)
    body = empty("%e", turned) + generic("%r", "i j", [("%arg0", shape, "f32", "j, i")], ("%e", turned, FULL), "%s = arith.negf %a : f32")
    return function([(shape, "f32")], ("%r", tensor(turned)), body), [(shape, "f32")], lambda x: (-x.T).contiguous(), {"bytes": 8 * rows * columns}


def column_sum(rows, columns):
    shape = (rows, columns)
    body = filled("%f", (columns,)) + generic("%r", "j i!", [("%arg0", shape, "f32", "i, j")], ("%f", (columns,), "j"), "%s = arith.addf %o, %a : f32")
    return function([(shape, "f32")], ("%r", tensor((columns,))), body), [(shape, "f32")], lambda x: x.sum(0), {"bytes": 4 * rows * columns}


def attention(heads, queries, width, element, causal):
    q, s = (heads, queries, width), (heads, queries, queries)
    body = f"  %scale = arith.constant {width ** -0.5} : f32\n  %never = arith.constant -1.0e9 : f32\n" + filled("%f", s) + empty("%se", s)
    body += product("%qk", "b m n k!", ("%arg0", q, "b, m, k"), ("%arg1", q, "b, n, k"), ("%f", s, "b, m, n"), element)
    body += generic("%sc", "b m n", [("%qk", s, "f32", "b, m, n")], ("%se", s, "b, m, n"), "%s = arith.mulf %a, %scale : f32")
    scores = "%sc"
    if causal:
        scores = "%masked"
        body += generic(scores, "b m n", [("%sc", s, "f32", "b, m, n")], ("%se", s, "b, m, n"), "%i = linalg.index 1 : index; %j = linalg.index 2 : index; "
                        "%c = arith.cmpi ule, %j, %i : index; %s = arith.select %c, %a, %never : f32")
    body += softmax_of(scores, s, "b m n", "b, m", "b, m, n", "%p") + filled("%of", q)
    if element == "f32":
        body += product("%r", "b m c n!", ("%p", s, "b, m, n"), ("%arg2", q, "b, n, c"), ("%of", q, "b, m, c"), "f32")
        result = ("%r", tensor(q))
    else:
        # Weights are f16, as in models of halves, and in PyTorch's kernels.
        mixed = ("%w = arith.truncf %a : f32 to f16; %x = arith.extf %w : f16 to f32; %y = arith.extf %b : f16 to f32; "
                 "%m = arith.mulf %x, %y : f32; %s = arith.addf %o, %m : f32")
        body += generic("%r", "b m c n!", [("%p", s, "f32", "b, m, n"), ("%arg2", q, "f16", "b, n, c")], ("%of", q, "b, m, c"), mixed)
        body += narrowed("%h", "%r", q, "b m c")
        result = ("%h", tensor(q, "f16"))
    flops = 4 * heads * queries * queries * width // (2 if causal else 1)

    def reference(a, b, c):
        return F.scaled_dot_product_attention(a[None], b[None], c[None], is_causal=causal)[0]
    return function([(q, element)] * 3, result, body), [(q, element)] * 3, reference, {"flops": flops}


def convolution(batch, size, channels):
    x, f, y = (batch, size + 2, size + 2, channels), (3, 3, channels, channels), (batch, size, size, channels)
    attributes = "{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}"
    body = filled("%i", y) + (f"  %r = linalg.conv_2d_nhwc_hwcf {attributes} ins(%arg0, %arg1 : {tensor(x)}, {tensor(f)}) outs(%i : {tensor(y)}) -> {tensor(y)}\n")

    def reference(a, b):
        a, b = a.permute(0, 3, 1, 2), b.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        return F.conv2d(a, b).permute(0, 2, 3, 1)
    return function([(x, "f32"), (f, "f32")], ("%r", tensor(y)), body), [(x, "f32"), (f, "f32")], reference, {"flops": 18 * batch * size * size * channels ** 2}


PROGRAMS = {
    "copy_64M": lambda: copy(1 << 26),
    "gelu_64M": lambda: chain(1 << 26),
    "softmax_32768x4096": lambda: softmax(32768, 4096),
    "layernorm_32768x4096": lambda: layernorm(32768, 4096),
    "transpose_16384x8192": lambda: transpose(16384, 8192),
    "column_sum_32768x4096": lambda: column_sum(32768, 4096),
    "matvec_f32_8192": lambda: matvec(8192, "f32"),
    "matvec_f16_8192": lambda: matvec(8192, "f16"),
    "matvec_i4_8192": lambda: packed(1, 8192, 8192),
    "matmul_f32_1024": lambda: matmul(1024, 1024, 1024, "f32"),
    "matmul_f32_4096": lambda: matmul(4096, 4096, 4096, "f32"),
    "matmul_f32_4093": lambda: matmul(4093, 4099, 4091, "f32"),
    "matmul_f16_1024": lambda: matmul(1024, 1024, 1024, "f16"),
    "matmul_f16_4096": lambda: matmul(4096, 4096, 4096, "f16"),
    "matmul_f16_8192": lambda: matmul(8192, 8192, 8192, "f16"),
    "layer_f16_4096": lambda: layer(4096, 4096, 4096),
    "matmul_i4_512x4096": lambda: packed(512, 4096, 4096),
    "attention_f32_12x512x64": lambda: attention(12, 512, 64, "f32", False),
    "attention_f32_64x2048x128": lambda: attention(64, 2048, 128, "f32", False),
    "attention_f16_256x2048x128": lambda: attention(256, 2048, 128, "f16", False),
    "attention_f16_256x2048x128_causal": lambda: attention(256, 2048, 128, "f16", True),
    "conv_f32_32x56x64": lambda: convolution(32, 56, 64),
    "conv_f32_32x28x128": lambda: convolution(32, 28, 128),
    "conv_f32_32x14x256": lambda: convolution(32, 14, 256),
    "conv_f32_32x7x512": lambda: convolution(32, 7, 512),
}


def values(shape, element, index):
    random = torch.Generator(device="cuda").manual_seed(index + 1)
    if element == "i8":
        return torch.randint(-128, 128, shape, dtype=torch.int8, device="cuda", generator=random)
    numbers = torch.randn(shape, device="cuda", generator=random)
    return numbers.half() if element == "f16" else numbers


def timed(run, inputs, repeat=20):
    """The median milliseconds of a graph of the launches."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            run(*inputs)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run(*inputs)
    graph.replay()
    spans = []
    for _ in range(repeat):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        spans.append(start.elapsed_time(end))
    return float(np.median(spans))


def peers(reference, inputs, name):
    found = {"eager": timed(reference, inputs)}
    if any(name.startswith(p) for p in ("gelu", "softmax", "layernorm", "column", "transpose", "copy")):
        found["compiled"] = timed(torch.compile(reference), inputs)
    return found


def expected(reference, inputs, name):
    wide = not name.startswith(("attention", "conv"))
    with torch.no_grad():
        kind = torch.float64 if wide else torch.float32
        return reference(*[x if x.dtype == torch.int8 else x.to(kind) for x in inputs])


def ours(binary, text, inputs, repeat, directory, artifact=None):
    """The statistics of a run, and the result; or what it said on standard error."""
    (directory / "in").mkdir()
    model = artifact or directory / "program.mlir"
    if artifact is None:
        model.write_text(text)
    for i, x in enumerate(inputs):
        np.save(directory / "in" / f"arg{i}.npy", x.cpu().numpy())
    command = [binary, "run", str(model), "--device", "gpu", "--inputs", str(directory / "in"), "--outputs", str(directory / "out")]
    command += ["--warmup", "3", "--repeat", str(repeat), "--stats=json", "--quiet"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return None, "took more than 60 s"
    if done.returncode != 0:
        return None, done.stderr.strip()[-600:]
    result = np.load(directory / "out" / "result0.npy")
    return json.loads(done.stdout), torch.from_numpy(result).cuda()


def measure(name, args):
    text, shapes, reference, size = PROGRAMS[name]()
    inputs = [values(shape, element, i) for i, (shape, element) in enumerate(shapes)]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as scratch:
        artifact = args.artifacts and pathlib.Path(args.artifacts, f"{name}.mpr")
        stats, result = ours(args.binary, text, inputs, args.repeat, pathlib.Path(scratch), artifact)
    row = {"program": name, **size}
    if stats is None:
        row["error"] = result
    else:
        want = expected(reference, inputs, name)
        row["difference"] = float((result.double() - want.double()).norm() / want.double().norm())
        row |= {"gpu_ms": stats.get("gpu_ms", {}).get("median"), "wall_ms": stats["run_ms"]["median"], "compile_ms": stats.get("compile_ms"),
                "load_ms": stats["load_ms"], "dispatches": stats["dispatches"]}
    if not args.ours_only:
        row |= peers(reference, inputs, name)
    torch.cuda.empty_cache()
    return row


def cell(value):
    return "" if value is None else value if isinstance(value, str) else f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def rates(row):
    """TB/s or TFLOP/s."""
    t = row.get("gpu_ms")
    if not t:
        return ""
    per_second = row["flops"] / t / 1e9 if "flops" in row else row["bytes"] / t / 1e9
    return f"{per_second:.3g} {'TFLOP/s' if 'flops' in row else 'TB/s'}"


def table(rows):
    lines = ["| program | ms | rate | wall ms | PyTorch ms | compiled ms | ours / PyTorch | difference | dispatches |", "|---" * 9 + "|"]
    for row in rows:
        best = min([row[k] for k in ("eager", "compiled") if row.get(k)], default=None)
        ratio = row["gpu_ms"] / best if best and row.get("gpu_ms") else None
        cells = [row["program"], cell(row.get("gpu_ms")), rates(row), cell(row.get("wall_ms")), cell(row.get("eager")), cell(row.get("compiled")), cell(ratio)]
        lines.append("| " + " | ".join(cells + [row["error"][:160].replace("\n", " ") if "error" in row else f"{row['difference']:.1e}", cell(row.get("dispatches"))]) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.environ.get("MONOPOUR", str(ROOT / "target" / "release" / "monopour")))
    parser.add_argument("--prog", default=",".join(PROGRAMS))
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--texts", metavar="DIR", help="write the programs there, and run nothing")
    parser.add_argument("--artifacts", metavar="DIR", help="run DIR/NAME.mpr; programs without one are left out")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--write", metavar="FILE.md")
    args = parser.parse_args()
    names = [n for n in PROGRAMS if any(n.startswith(p) for p in args.prog.split(","))]
    if args.texts:
        for name in names:
            pathlib.Path(args.texts, f"{name}.mlir").write_text(PROGRAMS[name]()[0])
        return
    if args.artifacts:
        names = [n for n in names if pathlib.Path(args.artifacts, f"{n}.mpr").exists()]
    rows, began = [], time.time()
    for name in names:
        rows.append(measure(name, args))
        print(f"{time.time() - began:6.1f} s {json.dumps(rows[-1])}", flush=True)
        if args.json:
            pathlib.Path(args.json).write_text(json.dumps(rows, indent=1))
    print(table(rows))
    if args.write:
        pathlib.Path(args.write).write_text(table(rows) + "\n")
    sys.exit(any("error" in row for row in rows))


if __name__ == "__main__":
    main()
