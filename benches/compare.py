#!/usr/bin/env python3
"""Times monopour beside onnxruntime and IREE on the programs that gen.py wrote, all in one run on one machine.

usage: compare.py DIR [--prog matmul_256,mlp] [--ours-only] [--write docs/measurements/common-op-set.md]
DIR is what gen.py wrote. The binary is MONOPOUR, or target/release/monopour. The peers need `make bench-peers`, which installs them.

Every cell is the median wall time of a run, inputs already on the device, first run excluded, after a check of the values. CPU columns use one
thread. GPU columns use the adapter that `--device gpu` takes. The columns of a program run one after the other, so that they see the same noise."""
import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The absolute error that each program is held to.
TOLERANCES = {p: "1e-3" for p in "matmul_256 matmul_512 matmul_1024 mlp mlp_const conv".split()}
TOLERANCES |= {p: "1e-5" for p in "ew8 softmax layernorm attn_128 attn_512".split()}
PROGRAMS = "matmul_256 matmul_512 matmul_1024 mlp mlp_const ew8 softmax layernorm attn_128 attn_512 conv".split()
BOUNDS = {"gpu": ("iree_vulkan", 1.0), "cpu": ("ort", 3.0)}  # whom we are held against, and by how much we may be slower


def binary():
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return os.environ.get("MONOPOUR", str(target / "release" / "monopour"))


def ours(directory, program, device, repeat):
    """One run of the command line; its statistics, or None with what it said on standard error."""
    data = pathlib.Path(directory).resolve() / "data"
    with tempfile.TemporaryDirectory() as scratch:
        inputs = sorted(data.glob(f"{program}.in*.npy"))
        for i in range(len(inputs)):
            os.symlink(data / f"{program}.in{i}.npy", f"{scratch}/arg{i}.npy")
        os.mkdir(f"{scratch}/check")
        os.symlink(data / f"{program}.ref.npy", f"{scratch}/check/result0.npy")
        command = [binary(), "run", f"{directory}/mlir/{program}.mlir", "--device", device, "--inputs", scratch]
        command += ["--check", f"{scratch}/check", "--rtol", "0", "--atol", TOLERANCES[program], "--warmup", "3", "--repeat", str(repeat), "--stats=json"]
        command += ["--threads", "1"] if device == "cpu" else []
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{device:12s} {program:12s} failed: {done.stderr.strip().splitlines()[-1:]}", flush=True)
        return None
    return json.loads(done.stdout)


def peer(directory, suite, program):
    """The median wall time of a peer in milliseconds, or None."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [sys.executable, str(ROOT / "benches" / "peers.py"), directory, "--suite", suite, "--prog", program, "--json", out.name]
        subprocess.run(command, check=False)
        try:
            return json.load(open(out.name))[f"{suite}/{program}"]["wall_ms"]
        except (ValueError, KeyError):
            return None


def cell(value):
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def measure(args):
    rows, adapters = [], {}
    for program in args.prog.split(","):
        row = {"program": program}
        for device, (rival, _) in BOUNDS.items():
            stats = ours(args.dir, program, device, args.repeat)
            row[device] = stats and stats["run_ms"]["median"]
            if stats:
                adapters[device] = stats["adapter"]
                print(f"{device:12s} {program:12s} wall {row[device]:9.3f} ms", flush=True)
            if not args.ours_only:
                row[rival] = peer(args.dir, rival, program)
        if not args.ours_only:
            row["iree_cpu"] = peer(args.dir, "iree_cpu", program)
        rows.append(row)
    return rows, adapters


def table(rows):
    columns = ["gpu", "iree_vulkan", "cpu", "ort", "iree_cpu"]
    titles = ["monopour gpu", "IREE Vulkan", "monopour cpu", "onnxruntime", "IREE cpu"]
    lines = ["| program | " + " | ".join(titles) + " | gpu / IREE | cpu / onnxruntime |", "|---" * 8 + "|"]
    for row in rows:
        ratios = [cell(row[d] / row[r]) if row.get(d) and row.get(r) else "-" for d, (r, _) in BOUNDS.items()]
        lines.append("| " + " | ".join([row["program"]] + [cell(row.get(c)) for c in columns] + ratios) + " |")
    return "\n".join(lines)


def head(adapters, load):
    cpu = next((l.split(": ")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.processor())
    return f"""# The common op set: the benchmark programs beside onnxruntime and IREE

Written by `make bench-peers` on {datetime.date.today()}; what the columns mean stands in [README.md](README.md).
Machine: {cpu}, {os.cpu_count()} cores. GPU: {adapters.get("gpu", "none")}. Load average before {load[0]}, after {load[1]}.
Median wall milliseconds per run; CPU columns on one thread; IREE 3.13.0 at -O3.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir")
    parser.add_argument("--prog", default=",".join(PROGRAMS))
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--write", metavar="FILE")
    args = parser.parse_args()
    before = os.getloadavg()[0]
    rows, adapters = measure(args)
    text = table(rows)
    print(text)
    if args.write:
        load = (f"{before:.1f}", f"{os.getloadavg()[0]:.1f}")
        pathlib.Path(args.write).write_text(head(adapters, load) + "\n" + text + "\n")
    slow = [f"{row['program']} on {d}" for row in rows for d, (r, bound) in BOUNDS.items() if row.get(d) and row.get(r) and row[d] > bound * row[r]]
    failed = [f"{row['program']} on {d}" for row in rows for d in BOUNDS if row[d] is None]
    for what, names in (("slower than allowed", slow), ("failed", failed)):
        if names:
            print(f"{what}: {', '.join(names)}")
    return 1 if slow or failed else 0


if __name__ == "__main__":
    sys.exit(main())
