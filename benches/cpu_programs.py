"""The programs of `cpu_lines.py` beside those of `gen.py` and `ops.py`: each a folder with its program, inputs and expected results."""
import os

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

import ops
from linalg import empty, filled, function, generic, product, softmax_of, tensor

WIDTH = 64  # elements of a head
SIZE = 4096  # of the matrix in a product with a vector


def write(folder, text, inputs, expected):
    """A linalg program; `expected` is a function of the inputs, in f64."""
    os.makedirs(folder / "inputs", exist_ok=True)
    os.makedirs(folder / "outputs", exist_ok=True)
    (folder / "model.mlir").write_text(text)
    for i, values in enumerate(inputs):
        np.save(folder / f"inputs/arg{i}.npy", values)
    # Written last: a folder with a result is whole.
    np.save(folder / "outputs/result0.npy", expected(*inputs).astype(np.float32))


def linked(path, to):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(to)


def bench(folder, directory, name):
    """A program of `gen.py`, as monopour takes it, and below `onnx` as onnxruntime does."""
    linked(folder / "model.mlir", directory / f"mlir/{name}.mlir")
    linked(folder / "outputs/result0.npy", directory / f"data/{name}.ref.npy")
    linked(folder / "onnx/model.onnx", directory / f"onnx/{name}.onnx")
    # The ONNX program has ONNX's layouts, NCHW and FCHW; the data is NHWC and HWCF.
    turned = [(0, 3, 1, 2), (3, 2, 0, 1)] if name == "conv" else None
    (folder / "onnx/inputs").mkdir(exist_ok=True)
    for i, given in enumerate(onnx.load(folder / "onnx/model.onnx", load_external_data=False).graph.input):
        data = directory / f"data/{name}.in{i}.npy"
        linked(folder / f"inputs/arg{i}.npy", data)
        if turned:
            np.save(folder / f"onnx/inputs/{given.name}.npy", np.ascontiguousarray(np.load(data).transpose(turned[i])))
        else:
            linked(folder / f"onnx/inputs/{given.name}.npy", data)


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def attended(q, k, v, causal=False):
    """One head at a time, for the memory of the scores."""
    out = np.empty_like(q)
    group = len(q) // len(k)
    for head in range(len(q)):
        scores = q[head].astype(np.float64) @ k[head // group].T * WIDTH**-0.5
        if causal:
            scores = np.where(np.tri(*scores.shape, dtype=bool), scores, -1e9)
        out[head] = softmax(scores) @ v[head // group]
    return out


def attention_of(q, k, s, loops, indices, mask=None):
    """The text of attention; `indices` are those of queries, keys, scores and values, `loops` those of the scores' elements."""
    of_q, of_k, of_s, of_v = indices
    body = f"  %scale = arith.constant {WIDTH ** -0.5} : f32\n  %never = arith.constant -1.0e9 : f32\n" + filled("%f", s) + empty("%se", s)
    body += product("%qk", f"{loops} k!", ("%arg0", q, of_q), ("%arg1", k, of_k), ("%f", s, of_s), "f32")
    scaled = "%s = arith.mulf %a, %scale : f32"
    body += generic("%sc", loops, [("%qk", s, "f32", of_s)], ("%se", s, of_s), scaled)
    if mask:
        body += generic("%sm_in", loops, [("%sc", s, "f32", of_s)], ("%se", s, of_s), mask)
    rows = of_s.rsplit(", ", 1)[0]
    body += softmax_of("%sm_in" if mask else "%sc", s, loops, rows, of_s, "%p") + filled("%of", q)
    of_r = of_q.replace("k", "c")
    heads = loops.rsplit(" ", 1)[0]
    body += product("%r", f"{heads} c n!", ("%p", s, of_s), ("%arg2", k, of_v), ("%of", q, of_r), "f32")
    return function([(q, "f32"), (k, "f32"), (k, "f32")], ("%r", tensor(q)), body)


CAUSAL = ("%i = linalg.index 1 : index; %j = linalg.index 2 : index; %c = arith.cmpi ule, %j, %i : index; "
          "%s = arith.select %c, %a, %never : f32")


def attention(folder, heads, tokens, form):
    """`form` is full, causal, or for three heads of queries to each of keys divided (an affine map divides) or grouped (loops over groups)."""
    random = np.random.default_rng(heads + tokens)
    keys = heads // 3 if form in ("divided", "grouped") else heads
    q, k, v = (random.standard_normal((n, tokens, WIDTH)).astype(np.float32) for n in (heads, keys, keys))
    loops, indices = "b m n", ("b, m, k", "b, n, k", "b, m, n", "b, n, c")
    shapes = (heads, tokens, WIDTH), (keys, tokens, WIDTH), (heads, tokens, tokens)
    if form == "divided":
        indices = ("b, m, k", "b floordiv 3, n, k", "b, m, n", "b floordiv 3, n, c")
    elif form == "grouped":
        loops, indices = "h g m n", ("h, g, m, k", "h, n, k", "h, g, m, n", "h, n, c")
        shapes = (keys, 3, tokens, WIDTH), (keys, tokens, WIDTH), (keys, 3, tokens, tokens)
        q = q.reshape(shapes[0])
    text = attention_of(*shapes, loops, indices, CAUSAL if form == "causal" else None)

    def expected(q, k, v):
        return attended(q.reshape(heads, tokens, WIDTH), k, v, form == "causal").reshape(q.shape)
    write(folder, text, [q, k, v], expected)


@ops.program("bf16_matvec_1x4096x4096")
def _(p):
    weights = (p.rng.standard_normal((SIZE, SIZE)) * SIZE**-0.5).astype(ml_dtypes.bfloat16)
    p.inits.append(numpy_helper.from_array(weights, "weights"))
    return p("MatMul", p.given(1, SIZE), p("Cast", "weights", to=TensorProto.FLOAT))


@ops.program("i8_matvec_1x4096x4096")
def _(p):
    weights = p.const(values=p.rng.integers(-127, 128, (SIZE, SIZE)).astype(np.int8))
    scales = p.const(values=(p.rng.random(SIZE) * 4e-4).astype(np.float32))
    return p("MatMul", p.given(1, SIZE), p("DequantizeLinear", weights, scales, axis=1))


@ops.program("i8_dynamic_matvec_1x4096x4096")
def _(p):
    weights = p.const(values=p.rng.integers(-128, 128, (SIZE, SIZE)).astype(np.int8))
    return p("DynamicQuantizeMatMul", p.given(1, SIZE), weights, p.const(values=np.float32(0.01)), domain="com.microsoft")


@ops.program("tiny_add_16")
def _(p):
    return p("Add", p.given(16), p.given(16))


@ops.program("tiny_softmax_8x64")
def _(p):
    return p("Softmax", p.given(8, 64), axis=-1)


@ops.program("tiny_mlp_1x32x32x8")
def _(p):
    hidden = p("Relu", p("Add", p("MatMul", p.given(1, 32), p.const(32, 32)), p.const(32)))
    return p("Softmax", p("Add", p("MatMul", hidden, p.const(32, 8)), p.const(8)), axis=-1)


def op(folder, name):
    """An op of `ops.py`. onnxruntime quantises the vector of the product with 8-bit weights; its exact values take their place."""
    ops.write(folder, name)
    if name == "i8_matvec_1x4096x4096":
        stored = {i.name: numpy_helper.to_array(i) for i in onnx.load(folder / "model.onnx").graph.initializer}
        (out,), (given,) = (list((folder / part).iterdir()) for part in ("outputs", "inputs"))
        exact = np.load(given).astype(np.float64) @ (stored["c0"] * stored["c1"].astype(np.float64))
        np.save(out, exact.astype(np.float32))
