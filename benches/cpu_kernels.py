#!/usr/bin/env python3
"""The longest kernels of whole models on one CPU thread, each beside what bounds it: multiply-adds, or the bytes of its buffers.

usage: cpu_kernels.py DIR [NAME ...] [--most 10] [--repeat 9] [--write docs/measurements/cpu-kernels.md]
DIR is what scripts/onnx-models/write.py wrote. What a kernel computes is read from the IR of the phase outline: a task's iterations
of each op times the tasks of a dispatch. A multiplication whose result is added is one multiply-add; any other op of a body takes
as long as one. Its bytes are those of its buffers, each once (too many for a gather, which reads some rows). The bound is the longer of both at the machine's rates, measured before: FMAs of
f32 in registers (four for integers of 8 bits), and reads, of memory where the model's buffers together exceed the last cache, else
of a buffer that stays there. Kernels with tasks of several sizes have no bound here, and models of such kernels alone are left out. The binary is MONOPOUR, or target/release/monopour;
that of the machine's measures is PEERS_RUST, or target/peers-rust/release/monopour-peers (`make bench-cpu` builds it)."""
import argparse
import collections
import datetime
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import ops

RUST = os.environ.get("PEERS_RUST", str(ops.ROOT / "target/peers-rust/release/monopour-peers"))
LAST_CACHE = 32 << 20
BITS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16, "i64": 64, "index": 64, "i32": 32, "ui8": 8, "i8": 8, "i4": 4, "i1": 8, "i16": 16}
PLAIN = ("fill", "copy", "transpose", "broadcast", "yield", "index")
MOVES = ("yield", "constant", "ext", "trunc", "fp", "index", "extract", "cast", "sitofp", "uitofp", "select", "cmp")


def said(*words, **options):
    return subprocess.run([ops.BINARY, *words], capture_output=True, text=True, check=True, **options).stdout


def machine(*words):
    return json.loads(subprocess.run([RUST, "machine", *map(str, words)], capture_output=True, text=True, check=True).stdout)


def shape(memref):
    """Extents and element of a type like `memref<2x?x4xf32, strided<...>>` or `vector<..>`; an extent that is not known is None."""
    *extents, element = re.match(r"\w+<([^,>]*)", memref)[1].split("x")
    return [None if e == "?" else int(e) for e in extents], element


def size(memref):
    extents, element = shape(memref)
    return math.prod(extents) * BITS[element] / 8


def body_cost(lines):
    """Multiply-adds of one iteration."""
    names = [m[1] for line in lines if (m := re.search(r"(?:= )?(?:arith|math)\.(\w+)", line))]
    names = [n for n in names if not n.startswith(MOVES)]
    pairs = min(sum(n.startswith("mul") for n in names), sum(n.startswith("add") for n in names))
    return len(names) - pairs


def iterations(line, maps):
    """Trip count of a linalg.generic: each loop's extent is that of a dimension that it alone indexes."""
    listed = re.search(r"indexing_maps = \[([^\]]*)\]", line)
    if not listed:
        return None
    names = listed[1].split(", ")
    types = re.findall(r"memref<[^>]*?(?:strided<[^>]*>)?>", line[line.index("ins(") if "ins(" in line else line.index("outs("):])
    found = {}
    for name, ty in zip(names, types):
        for result, extent in zip(maps[name], shape(ty)[0]):
            if re.fullmatch(r"d\d+", result):
                found[result] = extent
    loops = {d for name in names for result in maps[name] for d in re.findall(r"d\d+", result)}
    extents = [found.get(d) for d in loops]
    return None if None in extents else math.prod(extents)


def products(line):
    """Multiply-adds of a matmul or batch_matmul."""
    types = re.findall(r"memref<[^>]*?(?:strided<[^>]*>)?>", line[line.index("ins("):])
    extents = shape(types[0])[0] + shape(types[1])[0][-1:]
    return None if None in extents else math.prod(extents)


def kernels(text):
    """Per kernel: multiply-adds of a task and the bytes of its buffers; None where a size is not known."""
    maps = {"affine_map<() -> ()>": []} | {m[1]: re.split(r", (?![^(]*\))", m[2]) for m in re.finditer(r"^(#map\d*) = affine_map<\([^)]*\) -> \((.*)\)>$", text, re.M)}
    found = {}
    for part in re.split(r"^  func\.func private @", text, flags=re.M)[1:]:
        name = re.match(r"\w+", part)[0]
        head, *lines = part.split("\n")
        arguments = re.findall(r"%arg\d+: (memref<[^>]*?(?:strided<[^>]*>)?>)", head)
        fmas, narrow, n = 0, False, 0
        while n < len(lines):
            line = lines[n]
            if line.lstrip().startswith("linalg.generic"):
                end = next(i for i in range(n, len(lines)) if lines[i].strip().startswith("}"))
                count = iterations(line, maps)
                cost = body_cost(lines[n + 1:end])
                fmas = None if fmas is None or count is None else fmas + count * cost
                narrow |= "xi8" in line and "reduction" in line
                n = end
            elif named := re.match(r"\s*linalg\.(\w+)", line):
                count = products(line) if named[1] in ("matmul", "batch_matmul") else 0 if named[1] in PLAIN else None
                fmas = None if fmas is None or count is None else fmas + count
            n += 1
        known = fmas is not None and all(None not in shape(a)[0] for a in arguments)
        found[name] = (fmas, narrow, sum(size(a) for a in arguments)) if known else None
    return found


def grids(host):
    """Tasks of a dispatch of each kernel; None where a run decides."""
    names = re.findall(r"^  kernel (\w+) ", host, re.M)
    found = collections.defaultdict(set)
    for index, grid in re.findall(r"\bdispatch\((\d+), ([^)]*)\)", host):
        parts = grid.split(", ")
        found[names[int(index)]].add(math.prod(map(int, parts)) if all(p.isdigit() for p in parts) else None)
    return {name: next(iter(tasks)) if len(tasks) == 1 else None for name, tasks in found.items()}


def measured(model, repeat):
    """Per kernel the median microseconds of a dispatch, and its dispatches in a run."""
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "trace.json"
        said("run", str(model / "model.onnx"), "--device", "cpu", "--threads", "1", "-q", "--inputs", str(model / "inputs"), "--warmup", "2",
             "--repeat", str(repeat), "--trace", str(trace))
        events = json.loads(trace.read_text())
    times = collections.defaultdict(list)
    for event in events["traceEvents"] if isinstance(events, dict) else events:
        if "dispatch" in event["name"] and "dur" in event:
            times[event["name"]].append(event["dur"])
    runs = repeat + 3
    return {name: (statistics.median(all_), max(1, round(len(all_) / runs))) for name, all_ in times.items() if len(all_) >= runs}


def table(model, most, repeat, rates):
    """The rows of a model's longest kernels and the share of its time that its bounds explain; None where a size is not known."""
    times = measured(model, repeat)
    known = kernels(said("compile", str(model / "model.onnx"), "--target", "cpu", "--emit", "outline"))
    with tempfile.TemporaryDirectory() as folder:
        artifact = str(pathlib.Path(folder) / "model.mpr")
        said("compile", str(model / "model.onnx"), "--target", "cpu", "-q", "-o", artifact)
        tasks = grids(said("inspect", artifact, "--host"))
    all_bytes = sum(known[name][2] for name in times if known.get(name))
    read = rates["memory"] if all_bytes > LAST_CACHE else rates["cache"]
    total = sum(us * n for us, n in times.values())
    longest = sorted(times, key=lambda name: -times[name][0] * times[name][1])[:most]
    is_known = lambda name: known.get(name) is not None and tasks.get(name) is not None
    if not any(map(is_known, longest)):
        return None
    rows, bound_us, spent = [], 0, 0
    for name in longest:
        us, n = times[name]
        if not is_known(name):
            rows.append(f"| {name} | {n} | {us * n / total:.0%} | {us:.1f} | | | | sizes that a task decides | |")
            continue
        fmas, narrow, held = known[name]
        compute = fmas * tasks[name] / (rates["fma"] * (4 if narrow else 1)) / 1e3
        memory = held / read / 1e3
        bound = max(compute, memory)
        bound_us, spent = bound_us + bound * n, spent + us * n
        by = "multiply-adds" if compute >= memory else "bytes"
        rows.append(f"| {name} | {n} | {us * n / total:.0%} | {us:.1f} | {fmas * tasks[name] / 1e6:.1f} | {held / 1e6:.2f} | {bound:.1f} | {by} | {bound / us:.0%} |")
    return rows, bound_us / spent, spent / total


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("directory", type=pathlib.Path)
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--most", type=int, default=10)
    arguments.add_argument("--repeat", type=int, default=9)
    arguments.add_argument("--write", type=pathlib.Path)
    given = arguments.parse_args()
    models = [m for m in sorted(given.directory.iterdir()) if (m / "model.onnx").is_file() and (not given.names or m.name in given.names)]
    rates = {"fma": machine("fma")["gflops"] / 2, "memory": machine("read", 512 << 20, "--threads", 1)["gbytes"],
             "cache": machine("read", 16 << 20, "--threads", 1)["gbytes"]}
    out = ["# The longest kernels of whole models beside their bounds", "",
           f"Written by `benches/cpu_kernels.py` on {datetime.date.today()}; what is measured, and how, stands at its head. One thread.",
           f"{rates['fma']:.0f} G multiply-adds of f32 a second in registers; reads {rates['memory']:.0f} GB/s of memory, {rates['cache']:.0f} of a buffer in the last cache."]
    left_out = []
    for model in models:
        print(model.name, file=sys.stderr)
        found = table(model, given.most, given.repeat, rates)
        if found is None:
            left_out.append(model.name)
            continue
        rows, reached, share = found
        out += ["", f"## {model.name}", "", f"Those with a bound take {share:.0%} of the time of all kernels, and their bounds {reached:.0%} of that.", "",
                "| kernel | dispatches | of the time | us | M multiply-adds | MB | bound, us | by | reached |", "|---|---|---|---|---|---|---|---|---|", *rows]
    if left_out:
        out += ["", f"Of dynamic sizes, left out: {', '.join(left_out)}."]
    text = "\n".join(out) + "\n"
    print(text)
    if given.write:
        given.write.write_text(text)


if __name__ == "__main__":
    main()
