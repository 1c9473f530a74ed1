"""The package onnx's light models with seeded weights in place of ConstantOfShape(0.02), which make every output constant.

Convolutions and products are scaled as He's, batch norms are sane, and the last product so that the results spread by about 1.
The softmax at the end is dropped: what it reads is the result."""
import collections, glob, os

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

DATA = os.path.join(os.path.dirname(onnx.__file__), "backend/test/data/light")


def drawn(shape, reader, operand, rng):
    """Weights for the operand of a reader."""
    if reader == "BatchNormalization":
        noise = rng.standard_normal(shape)
        return {1: 1 + 0.05 * noise, 2: 0.05 * noise, 3: 0.05 * noise, 4: 1 + 0.1 * np.abs(noise)}[operand]
    if reader in ("Conv", "Gemm") and operand == 1:
        return rng.standard_normal(shape) * (1.6 / max(1, np.prod(shape[1:]))) ** 0.5
    if reader == "Mul":
        return 1 + 0.05 * rng.standard_normal(shape)
    return 0.02 * rng.standard_normal(shape)


def with_weights(graph, rng):
    """Replaces the nodes that make constants by initialisers."""
    given = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    readers = collections.defaultdict(list)
    for node in graph.node:
        for at, name in enumerate(node.input):
            readers[name].append((node, at))
    made = []
    for node in [n for n in graph.node if n.op_type == "ConstantOfShape"]:
        shape = tuple(int(n) for n in given[node.input[0]])
        reader, at = readers[node.output[0]][0]
        while reader.op_type in ("Unsqueeze", "Reshape") and at == 0:
            reader, at = readers[reader.output[0]][0]
        values = drawn(shape, reader.op_type, at, rng).astype(np.float32)
        made.append(numpy_helper.from_array(values, node.output[0]))
    kept = [n for n in graph.node if n.op_type != "ConstantOfShape"]
    used = {name for node in kept for name in node.input}
    made = [i for i in graph.initializer if i.name in used] + made
    inputs = [i for i in graph.input if i.name not in given]
    for field, values in ((graph.node, kept), (graph.initializer, made), (graph.input, inputs)):
        del field[:]
        field.extend(values)


def results(model, feeds):
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)[0]


def write(name, path):
    """Writes a model; returns inputs for it."""
    model = onnx.load(glob.glob(f"{DATA}/light_{name}.onnx")[0])
    graph, rng = model.graph, np.random.default_rng(0)
    with_weights(graph, rng)
    model.ir_version = max(4, model.ir_version)
    ends = [n for n in graph.node if n.op_type == "Softmax"]
    if ends:
        del graph.output[:]
        graph.output.append(onnx.helper.make_tensor_value_info(ends[-1].input[0], 1, None))
        graph.node.remove(ends[-1])
    given = graph.input[0]
    shape = [d.dim_value for d in given.type.tensor_type.shape.dim]
    feeds = {given.name: rng.standard_normal(shape).astype(np.float32)}
    last = [n for n in graph.node if n.op_type in ("Gemm", "Conv")][-1].input[1]
    # Some models compute their last weights from others, and keep their scale.
    for weights in [i for i in graph.initializer if i.name == last] * 2:
        scale = 1 / max(float(results(model, feeds).std()), 1e-6)
        weights.CopyFrom(numpy_helper.from_array((numpy_helper.to_array(weights) * scale).astype(np.float32), last))
    onnx.save(model, path)
    return feeds
