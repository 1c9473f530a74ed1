"""Write ONNX's backend test cases as files: usage: write_cases.py OUT. Needs the package onnx.

OUT/<category>/<case>/{model.onnx, test_data_set_<n>/{input,output}_<i>.pb}, and OUT/index.json: one record per case with its
category, tolerances, element types of inputs and outputs, and whether all of these are tensors. The package holds the model
files of four categories and makes the node cases in process.
"""
import json, os, shutil, sys, warnings

warnings.filterwarnings("ignore")
import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.loader import DATA_DIR, load_model_tests

FILES = ("pytorch-converted", "pytorch-operator", "simple")
TYPES = {number: name for name, number in TensorProto.DataType.items()}


def types(values):
    """Element types of tensors, and the kind of everything else."""
    kind = lambda t: TYPES[t.tensor_type.elem_type] if t.HasField("tensor_type") else t.WhichOneof("value")
    return [kind(value.type) for value in values]


def record(name, category, model, rtol=1e-3, atol=1e-7):
    return {"name": name, "category": category, "rtol": rtol, "atol": atol,
            "inputs": types(model.graph.input), "outputs": types(model.graph.output)}


def encoded(value, info):
    if isinstance(value, TensorProto):
        return value.SerializeToString()
    if info.type.HasField("tensor_type"):
        return numpy_helper.from_array(np.asarray(value), info.name).SerializeToString()
    if value is None:
        return b""
    if info.type.HasField("sequence_type"):
        return numpy_helper.from_list(list(value), info.name).SerializeToString()
    if info.type.HasField("map_type"):
        return numpy_helper.from_dict(value, info.name).SerializeToString()
    return numpy_helper.from_optional(value, info.name).SerializeToString()


def write_node(case, folder):
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data = os.path.join(folder, f"test_data_set_{number}")
        os.makedirs(data, exist_ok=True)
        for kind, values, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
            for index, (value, info) in enumerate(zip(values, infos)):
                with open(os.path.join(data, f"{kind}_{index}.pb"), "wb") as file:
                    file.write(encoded(value, info))
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(case.model.SerializeToString())


def main(out):
    # No case of another version of the package stays.
    for category in ("node", *FILES):
        shutil.rmtree(os.path.join(out, category), ignore_errors=True)
    index = []
    for case in load_model_tests(kind="node"):
        write_node(case, os.path.join(out, "node", case.name))
        index.append(record(case.name, "node", case.model, case.rtol, case.atol))
    for category in FILES:
        for name in sorted(os.listdir(os.path.join(DATA_DIR, category))):
            source = os.path.join(DATA_DIR, category, name)
            shutil.copytree(source, os.path.join(out, category, name), dirs_exist_ok=True)
            index.append(record(name, category, onnx.load(os.path.join(source, "model.onnx"))))
    with open(os.path.join(out, "index.json"), "w") as file:
        json.dump(index, file, indent=0)
    print(f"{len(index)} cases in {out}")


if __name__ == "__main__":
    main(sys.argv[1])
