#!/usr/bin/env python3
"""Times whole ONNX models on a GPU beside PyTorch, in one run: the second table of `docs/measurements/hardware.md`.

usage: hardware_models.py [--binary monopour] [--only 'gpt2*,resnet50'] [--repeat 30] [--json FILE] [--write FILE.md] [--traces DIR]
Needs PyTorch with CUDA, onnx, onnxruntime and NumPy. The binary is MONOPOUR, or target/release/monopour; it compiles for the device
that it finds. Models are written, compiled and run by onnxruntime's CPU in as many processes as there are cores, then timed alone.

Results of ours are compared with onnxruntime's: f32 within 1e-3, f16 within 2e-2. Ours is the sum of the dispatches by the device's
timestamps, and the wall time of a run, inputs on the device. PyTorch's are of networks of the same sizes with random weights,
TF32 off, batch normalisation folded, images channels-last or not, whichever is faster, attention by its fused kernels: by events around
a replay of a CUDA graph of the launches, by the wall around a replay and the wait for it, and by the wall without a graph (eager)."""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import zlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "onnx-models"))

# Name: module of scripts/onnx-models, arguments of its `build`.
MODELS = {
    "resnet50": ("resnet50", {}),
    "resnet50_b32": ("resnet50", dict(batch=32)),
    "mobilenetv2": ("mobilenetv2", {}),
    "mobilenetv2_b32": ("mobilenetv2", dict(batch=32)),
    "vit_b16": ("vit", {}),
    "vit_b16_b16": ("vit", dict(batch=16)),
    "minilm_128": ("minilm", dict(seq=128)),
    "gpt2_prefill_128": ("gpt2", dict(mode="prefill", S=128)),
    "gpt2_prefill_1024": ("gpt2", dict(mode="prefill", S=1024)),
    "gpt2_step_128": ("gpt2", dict(mode="decode", P=128)),
    "llama_step_128": ("llama", dict(mode="decode", L=4)),
}
MINILM = dict(num_hidden_layers=6, hidden_size=384, num_attention_heads=12, intermediate_size=1536, layer_norm_eps=1e-12)


class RandomWeights(dict):
    """MiniLM's weights by name, random."""

    def __missing__(self, name):
        d, f = MINILM["hidden_size"], MINILM["intermediate_size"]
        random = np.random.default_rng(zlib.crc32(name.encode()))
        if "embeddings.weight" in name or name.endswith("embeddings.weight"):
            shape = (30522 if "word" in name else 512 if "position" in name else 2, d)
        elif name.endswith("bias") or "LayerNorm" in name:
            shape = (f if "intermediate" in name else d,)
        else:
            shape = (f, d) if "intermediate" in name else (d, f) if ".output.dense" in name and "attention" not in name else (d, d)
        scale = 0.02 if len(shape) == 1 else shape[1] ** -0.5
        return random.standard_normal(shape, dtype=np.float32) * scale + (1 if "LayerNorm.weight" in name else 0)


def parts(name):
    return (name[:-4], "f16") if name.endswith("_f16") else (name, "f32")


def build(name, folder):
    """Writes folder/{model.onnx, inputs, outputs}."""
    import importlib
    import onnx
    import onnxruntime as ort
    plain, dtype = parts(name)
    module, arguments = MODELS[plain]
    module = importlib.import_module(module)
    arguments = {"dtype": dtype, **arguments}
    graph = module.build(RandomWeights(), MINILM, **arguments) if module.__name__ == "minilm" else module.build(17, **arguments)
    graph.save(f"{folder}/model.onnx")
    random, feeds = np.random.default_rng(1), {}
    for given in onnx.load(f"{folder}/model.onnx", load_external_data=False).graph.input:
        shape = [d.dim_value for d in given.type.tensor_type.shape.dim]
        if given.type.tensor_type.elem_type != onnx.TensorProto.INT64:
            feeds[given.name] = random.standard_normal(shape).astype(np.float16 if dtype == "f16" else np.float32)
        elif given.name == "position_ids":
            feeds[given.name] = (np.arange(shape[1]) + (128 if shape[1] == 1 else 0)).astype(np.int64)[None]
        else:
            top = 2 if "type" in given.name or "mask" in given.name else 1000
            feeds[given.name] = random.integers(int("mask" in given.name), top, shape).astype(np.int64)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 4
    session = ort.InferenceSession(f"{folder}/model.onnx", options, providers=["CPUExecutionProvider"])
    results = dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))
    for kind, tensors in (("inputs", feeds), ("outputs", results)):
        os.makedirs(f"{folder}/{kind}")
        for tensor, value in tensors.items():
            np.save(f"{folder}/{kind}/{tensor.replace('/', '_')}.npy", value)


def prepare(name, root, binary, device):
    """The model, its results by onnxruntime, and our program for the device; the seconds of compiling, or an error."""
    folder = pathlib.Path(root, name)
    folder.mkdir()
    try:
        build(name, folder)
    except Exception as error:  # noqa: BLE001: any model that cannot be made is named in the table
        return f"not made: {error!r}"
    start = time.time()
    target = {"gpu": f"gpu:{root}/device.json" if device == "gpu" else "gpu", "cpu": "cpu"}[device]
    done = subprocess.run([binary, "compile", f"{folder}/model.onnx", "-o", f"{folder}/model.mpr", "--target", target, "--quiet"],
                          capture_output=True, text=True)
    return time.time() - start if done.returncode == 0 else done.stderr[-500:]


def ours(name, folder, args):
    tolerance = "2e-2" if name.endswith("_f16") else "1e-3"
    command = [args.binary, "run", f"{folder}/model.mpr", "--device", args.device, "--inputs", f"{folder}/inputs", "--quiet"]
    exact = ["--check", f"{folder}/outputs", "--rtol", tolerance, "--atol", tolerance]
    try:
        done = subprocess.run([*command, *exact, "--warmup", "5", "--repeat", str(args.repeat), "--stats=json"], capture_output=True, text=True, timeout=100)
        if args.traces:
            subprocess.run([*command, "--warmup", "5", "--repeat", "1", "--trace", f"{args.traces}/{name}.json"], capture_output=True, timeout=100)
    except subprocess.TimeoutExpired:
        return {"error": "took more than 100 s"}
    if "{" not in done.stdout:
        return {"error": done.stderr.strip()[-400:]}
    stats = json.JSONDecoder().raw_decode(done.stdout[done.stdout.index("{"):])[0]
    found = {"gpu_ms": stats.get("gpu_ms", {}).get("median"), "wall_ms": stats["run_ms"]["median"], "load_ms": stats["load_ms"]}
    found |= {key: stats[key] for key in ("dispatches", "copies", "planned_bytes", "peak_device_bytes")}
    return found | ({} if done.returncode == 0 else {"error": done.stderr.strip()[-400:]})


# What PyTorch runs.

def images(stages, head, dtype):
    """Convolutions with folded normalisation. A stage is a function of (convolution, x)."""
    import torch
    import torch.nn.functional as F
    kept = []

    def network(x, make):
        at = iter(kept)

        def convolve(x, out, k, stride=1, groups=1):
            if make:
                w = torch.randn(out, x.shape[1] // groups, k, k, device="cuda", dtype=dtype) * (1.4 / (x.shape[1] // groups * k * k) ** 0.5)
                kept.append((w.contiguous(memory_format=torch.channels_last) if x.is_contiguous(memory_format=torch.channels_last) else w,
                             torch.zeros(out, device="cuda", dtype=dtype)))
                w, b = kept[-1]
            else:
                w, b = next(at)
            return F.conv2d(x, w, b, stride, k // 2, 1, groups)
        x = stages(convolve, x)
        x = x.mean((2, 3))
        if make:
            kept.append((torch.randn(1000, head, device="cuda", dtype=dtype) * 0.02, torch.zeros(1000, device="cuda", dtype=dtype)))
        w, b = kept[-1]
        return F.linear(x, w, b)
    return network, kept


def resnet50(convolve, x):
    import torch.nn.functional as F
    x = F.max_pool2d(convolve(x, 64, 7, 2).relu_(), 3, 2, 1)
    for width, count, first in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for n in range(count):
            stride = first if n == 0 else 1
            y = convolve(convolve(convolve(x, width, 1).relu_(), width, 3, stride).relu_(), 4 * width, 1)
            x = (y.add_(convolve(x, 4 * width, 1, stride) if n == 0 else x)).relu_()
    return x


def mobilenetv2(convolve, x):
    import torch.nn.functional as F
    x = F.relu6(convolve(x, 32, 3, 2), True)
    for widen, out, count, first in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for n in range(count):
            stride, inner = first if n == 0 else 1, x.shape[1] * widen
            y = F.relu6(convolve(x, inner, 1), True) if widen != 1 else x
            y = convolve(F.relu6(convolve(y, inner, 3, stride, inner), True), out, 1)
            x = y.add_(x) if stride == 1 and x.shape[1] == out else y
    return F.relu6(convolve(x, 1280, 1), True)


def torch_images(plain, dtype):
    import torch
    batch = MODELS[plain][1].get("batch", 1)
    stages, head = (resnet50, 2048) if plain.startswith("resnet50") else (mobilenetv2, 1280)
    for layout in (torch.contiguous_format, torch.channels_last):
        x = torch.randn(batch, 3, 224, 224, device="cuda", dtype=dtype).contiguous(memory_format=layout)
        network, _ = images(stages, head, dtype)
        network(x, True)
        yield lambda x=x, network=network: network(x, False)


def torch_transformer(plain, dtype):
    import torch
    import torch.nn.functional as F

    def weight(*shape):
        return torch.randn(*shape, device="cuda", dtype=dtype) * shape[-1] ** -0.5

    def vector(n, mean=0.0):
        return torch.full((n,), mean, device="cuda", dtype=dtype)
    # batch, tokens, past, layers, width, heads, key heads, inner, vocabulary
    batch, s, past, layers, d, h, kv, f, vocabulary = {
        "vit_b16": (1, 197, 0, 12, 768, 12, 12, 3072, 1000), "vit_b16_b16": (16, 197, 0, 12, 768, 12, 12, 3072, 1000),
        "minilm_128": (1, 128, 0, 6, 384, 12, 12, 1536, 0), "gpt2_prefill_128": (1, 128, 0, 12, 768, 12, 12, 3072, 50257),
        "gpt2_prefill_1024": (1, 1024, 0, 12, 768, 12, 12, 3072, 50257), "gpt2_step_128": (1, 1, 128, 12, 768, 12, 12, 3072, 50257),
        "llama_step_128": (1, 1, 128, 4, 2048, 32, 4, 5632, 32000)}[plain]
    llama, after = plain.startswith("llama"), plain.startswith("minilm")
    size, wide = d // h, d + 2 * kv * (d // h)
    blocks = [dict(qkv=weight(wide, d), bias=vector(wide), out=weight(d, d), one=vector(d), up=weight((2 if llama else 1) * f, d), upb=vector(f),
                   down=weight(d, f), downb=vector(d), g1=vector(d, 1.0), b1=vector(d), g2=vector(d, 1.0), b2=vector(d),
                   k=torch.randn(batch, kv, past, size, device="cuda", dtype=dtype), v=torch.randn(batch, kv, past, size, device="cuda", dtype=dtype))
              for _ in range(layers)]
    table, places, last, lastb = weight(max(vocabulary, 30522), d), weight(1024, d), vector(d, 1.0), vector(d)
    head = weight(max(vocabulary, 1), d)
    ids = torch.randint(0, 1000, (batch, s), device="cuda")
    patches = weight(d, 3, 16, 16)
    image = torch.randn(batch, 3, 224, 224, device="cuda", dtype=dtype)
    at = torch.arange(past, past + s, device="cuda")
    cos, sin = (torch.randn(s, size, device="cuda", dtype=dtype) for _ in range(2))

    def norm(x, g, b):
        return F.rms_norm(x, (d,), g, 1e-5) if llama else F.layer_norm(x, (d,), g, b)

    def turned(x):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    def attend(block, x):
        q, k, v = F.linear(x, block["qkv"], None if llama else block["bias"]).split((d, kv * size, kv * size), -1)
        q, k, v = (t.view(batch, s, -1, size).transpose(1, 2) for t in (q, k, v))
        if llama:
            q, k = turned(q), turned(k)
        if past:
            k, v = torch.cat((block["k"], k), 2), torch.cat((block["v"], v), 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=plain.startswith("gpt2_prefill"), enable_gqa=kv != h)
        return F.linear(y.transpose(1, 2).reshape(batch, s, d), block["out"], None if llama else block["one"])

    def inner(block, x):
        if llama:
            gate, up = F.linear(x, block["up"]).chunk(2, -1)
            return F.linear(F.silu(gate) * up, block["down"])
        x = F.gelu(F.linear(x, block["up"], block["upb"]), approximate="tanh" if plain.startswith("gpt2") else "none")
        return F.linear(x, block["down"], block["downb"])

    def network():
        if plain.startswith("vit"):
            x = F.conv2d(image, patches, stride=16).flatten(2).transpose(1, 2)
            x = torch.cat((places[:1].expand(batch, 1, d), x), 1) + places[:s]
        else:
            x = F.embedding(ids, table) if llama else F.embedding(ids, table) + F.embedding(at, places)
        for block in blocks:
            if after:
                x = norm(x + attend(block, x), block["g1"], block["b1"])
                x = norm(x + inner(block, x), block["g2"], block["b2"])
            else:
                x = x + attend(block, norm(x, block["g1"], block["b1"]))
                x = x + inner(block, norm(x, block["g2"], block["b2"]))
        if after:
            return F.normalize(x.mean(1), dim=-1)
        return F.linear(norm(x[:, :1] if plain.startswith("vit") else x, last, lastb), head)
    yield network


def peers(name, args):
    """Milliseconds of PyTorch by a graph's events, by its wall time and by the wall time of eager mode."""
    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    plain, dtype = parts(name)
    dtype = torch.float16 if dtype == "f16" else torch.float32
    best = {}
    for network in (torch_images if plain.startswith(("resnet50", "mobilenetv2")) else torch_transformer)(plain, dtype):
        with torch.inference_mode():
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(3):
                    network()
            torch.cuda.synchronize()
            walls = []
            for _ in range(10):
                start = time.perf_counter()
                network()
                torch.cuda.synchronize()
                walls.append((time.perf_counter() - start) * 1e3)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                network()
            events, replays = [], []
            for n in range(args.repeat + 5):
                start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                began = time.perf_counter()
                start.record()
                graph.replay()
                end.record()
                torch.cuda.synchronize()
                replays.append((time.perf_counter() - began) * 1e3)
                events.append(start.elapsed_time(end))
        found = {"torch_ms": statistics.median(events[5:]), "torch_wall_ms": statistics.median(replays[5:]), "eager_ms": statistics.median(walls)}
        if not best or found["torch_ms"] < best["torch_ms"]:
            best = found
        del graph
    torch.cuda.empty_cache()
    return best


def table(rows):
    heads = ["model", "ours, ms", "PyTorch, ms", "ratio", "ours, wall", "PyTorch, wall", "eager, wall", "dispatches", "compile, s", "load, ms", ""]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for row in rows:
        def of(key, digits=3):
            return "" if row.get(key) is None else f"{row[key]:.{digits}g}"
        ratio = f"{row['gpu_ms'] / row['torch_ms']:.2f}" if row.get("gpu_ms") and row.get("torch_ms") else ""
        cells = [row["model"], of("gpu_ms"), of("torch_ms"), ratio, of("wall_ms"), of("torch_wall_ms"), of("eager_ms"), str(row.get("dispatches", "")),
                 of("compile_s", 2), of("load_ms"), row.get("error", "").replace("\n", " ")[:200]]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.environ.get("MONOPOUR", str(ROOT / "target" / "release" / "monopour")))
    parser.add_argument("--only", default="*", help="patterns of names, with commas")
    parser.add_argument("--device", default="gpu", choices=["gpu", "cpu"])
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--traces", metavar="DIR", help="a Chrome trace of one run of each")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--write", metavar="FILE.md")
    args = parser.parse_args()
    names = [n for plain in MODELS for n in (plain, f"{plain}_f16") if any(fnmatch.fnmatch(n, p) for p in args.only.split(","))]
    rows, began = [], time.time()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as root, concurrent.futures.ProcessPoolExecutor(max(1, os.cpu_count() // 2)) as pool:
        if args.device == "gpu":
            pathlib.Path(root, "device.json").write_text(subprocess.run([args.binary, "devices", "--json"], capture_output=True, text=True, check=True).stdout)
        prepared = {name: pool.submit(prepare, name, root, args.binary, args.device) for name in names}
        concurrent.futures.wait(prepared.values())
        print(f"{time.time() - began:6.1f} s: models made and compiled", flush=True)
        for name in names:
            seconds = prepared[name].result()
            row = {"model": name, **({"error": seconds} if isinstance(seconds, str) else {"compile_s": seconds, **ours(name, pathlib.Path(root, name), args)})}
            rows.append(row)
            print(f"{time.time() - began:6.1f} s {json.dumps(row)}", flush=True)
            if not args.ours_only:
                try:
                    row |= peers(name, args)
                except Exception as error:  # noqa: BLE001: ours stands without it
                    print(f"PyTorch, {name}: {error!r}"[:300], flush=True)
            if args.json:
                pathlib.Path(args.json).write_text(json.dumps(rows, indent=1))
    print(table(rows))
    if args.write:
        pathlib.Path(args.write).write_text(table(rows) + "\n")
    sys.exit(any("error" in row for row in rows))


if __name__ == "__main__":
    main()
