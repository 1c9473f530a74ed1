"""Compares whole ONNX models with onnxruntime: values on both devices, and times on as many CPU threads as asked for.

usage: compare.py DIR [NAME ...] [--devices cpu,gpu] [--threads 1,2] [--repeat 5] [--rounds 3]
A time is the median of so many runs, onnxruntime's right before ours; a ratio is the median of the rounds'. DIR is what write.py wrote. The binary is MONOPOUR, or target/release/monopour. Values are within 1e-3 in f32, 2e-2 in f16, relative,
and absolute near zero. Of quantised models the root mean square of the difference is at most 5e-2 of the result's: a sum that rounds
to another integer moves an element by a step, and theirs are as far from the floats as ours. One row per model as Markdown; the exit status is 1 if a value or a run is wrong. Also: GPT-2's step after
a prefill of 128 tokens has the results of a prefill of 129."""
import argparse, json, os, pathlib, statistics, subprocess, sys, tempfile, time

import numpy as np
import theirs

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("MONOPOUR", str(ROOT / "target/release/monopour"))


def run(model, device, *more, threads=1):
    """A run's statistics, or None with its errors on standard error."""
    threads = ["--threads", str(threads)] if device == "cpu" else []
    command = [BINARY, "run", str(model / "model.onnx"), "--device", device, "--stats=json", "--quiet", *threads, *more]
    # The first run builds its kernels.
    cold = {**os.environ, "MONOPOUR_CACHE_DIR": "", "MESA_SHADER_CACHE_DISABLE": "true"}
    done = subprocess.run(command, capture_output=True, text=True, env=cold)
    if done.returncode != 0:
        print(f"{model.name} on {device}: {done.stdout[-500:]}{done.stderr[-1000:]}", file=sys.stderr)
        return None
    return json.JSONDecoder().raw_decode(done.stdout[done.stdout.index("{"):])[0]


def peer_ms(model, repeat, threads):
    """Median time of onnxruntime on so many threads."""
    session = theirs.session(model / "model.onnx", threads)
    feeds = {i.name: np.load(model / f"inputs/{i.name.replace('/', '_')}.npy") for i in session.get_inputs()}
    session.run(None, feeds)
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        session.run(None, feeds)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def distance(expected, results):
    """The largest of the results' relative differences, by root mean squares."""
    def of(path):
        value, found = (np.load(folder / path.name).astype(np.float64) for folder in (expected, results))
        return np.sqrt(np.mean((found - value) ** 2) / np.mean(value**2))
    return max(of(path) for path in expected.iterdir())


def checked(model, device, repeat, threads):
    """Statistics of runs whose results are right, or None."""
    tolerance = "2e-2" if model.name.endswith("_f16") else "1e-3"
    quantised = model.name.endswith(("_i8", "_qdq", "_level4"))
    with tempfile.TemporaryDirectory() as results:
        exact = ["--check", str(model / "outputs"), "--rtol", tolerance, "--atol", tolerance]
        given = ["--inputs", str(model / "inputs"), *(["--outputs", results] if quantised else exact)]
        stats = run(model, device, *given, "--warmup", "1", "--repeat", str(repeat if device == "cpu" else 2), threads=threads)
        if stats and quantised and distance(model / "outputs", pathlib.Path(results)) > 5e-2:
            print(f"{model.name} on {device}: {distance(model / 'outputs', pathlib.Path(results)):.2e} apart", file=sys.stderr)
            return None
    return stats


def row(model, devices, given, ratios):
    """One row of the table, and whether all is right. The ratios of each number of threads are added to `ratios`."""
    cells, right = [], True
    counts = ("compile_ms", "first_run_ms", "dispatches", "copies")
    for threads in given.threads if "cpu" in devices else []:
        pairs = []
        for _ in range(given.rounds):
            peer = peer_ms(model, given.repeat, threads)
            stats = checked(model, "cpu", given.repeat, threads)
            right = right and stats is not None
            pairs += [(peer, stats["run_ms"]["median"])] if stats else []
        if not pairs:
            cells += ["wrong"] * 3
            continue
        peer, ours = (statistics.median(p[of] for p in pairs) for of in (0, 1))
        ratios[threads].append(statistics.median(ours / peer for peer, ours in pairs))
        cells += [f"{peer:.1f}", f"{ours:.1f}", f"{ratios[threads][-1]:.2f}"]
    for device in devices:
        stats = stats if device == "cpu" else checked(model, device, given.repeat, 1)
        right = right and stats is not None
        first = [] if device == "cpu" else ["wrong" if stats is None else f"{stats['run_ms']['median']:.1f}"]
        cells += first + (["wrong"] * len(counts) if stats is None else [f"{stats[key]:.0f}" for key in counts])
    print(f"| {model.name} | {' | '.join(cells)} |", flush=True)
    return right


def steps(root, device):
    """Whether GPT-2's step after 128 tokens has the logits of a prefill of 129."""
    tokens = np.random.default_rng(2).integers(0, 1000, (1, 129)).astype(np.int64)
    places = np.arange(129, dtype=np.int64)[None]
    with tempfile.TemporaryDirectory() as folder:
        def logits(name, at, *more):
            for given, values in (("input_ids", tokens), ("position_ids", places)):
                np.save(f"{folder}/{given}.npy", np.ascontiguousarray(values[:, at]))
            names = [f"--input={given}={folder}/{given}.npy" for given in ("input_ids", "position_ids")]
            os.makedirs(f"{folder}/{name}")
            run(root / name, device, *names, *more, "--outputs", f"{folder}/{name}")
            return np.load(f"{folder}/{name}/logits.npy")[0, -1]
        whole = logits("gpt2_prefill129", slice(0, 129))
        logits("gpt2_prefill128", slice(0, 128))
        pairs = [(layer, kind) for layer in range(12) for kind in ("key", "value")]
        cache = [f"--input=past.{n}.{k}={folder}/gpt2_prefill128/present.{n}.{k}.npy" for n, k in pairs]
        step = logits("gpt2_decode_p128", slice(128, 129), *cache)
    distance = np.abs(whole - step).max() / np.abs(whole).max()
    print(f"\nGPT-2 on {device}: 128 tokens and a step against 129 tokens: {distance:.1e} of the largest logit", flush=True)
    return distance < 1e-3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--devices", default="cpu,gpu")
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=[1])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    devices = given.devices.split(",")
    heads = [h for n in given.threads if "cpu" in devices for h in (f"onnxruntime, {n} threads, ms", "ours, ms", "ratio")]
    for device in devices:
        heads += [*(["GPU, ms"] if device == "gpu" else []), "compile, ms", "first run, ms", "dispatches", "copies"]
    print(f"| model | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 1)}")
    ratios = {n: [] for n in given.threads}
    names = given.names or sorted(p.name for p in given.dir.iterdir() if (p / "model.onnx").exists())
    right = [row(given.dir / name, devices, given, ratios) for name in names]
    if {"gpt2_prefill128", "gpt2_prefill129", "gpt2_decode_p128"} <= set(names):
        right += [steps(given.dir, device) for device in devices]
    for threads, of in ratios.items():
        if of:
            print(f"\n{threads} threads: geometric mean {statistics.geometric_mean(of):.3f} of {len(of)}, largest {max(of):.2f}", flush=True)
    sys.exit(0 if all(right) else 1)


if __name__ == "__main__":
    main()
