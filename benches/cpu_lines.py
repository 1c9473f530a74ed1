#!/usr/bin/env python3
"""The CPU figures that monopour is held to, each with its bound and whether it holds, measured in interleaved rounds on one machine.

usage: cpu_lines.py DIR [--only NAMES] [--rounds 5] [--write docs/measurements/cpu-lines.md]
DIR is what gen.py wrote; programs, results and caches of this script go into DIR/lines. NAMES are groups, with commas:
bench    the programs of gen.py on one thread beside onnxruntime, IREE, candle and tract
peak     matrix products beside the multiply-adds of registers; softmax, layer norm and ew8 beside a copy and a loop by hand
matvec   a vector times 4096 x 4096 weights, beside the bandwidth of reads; 4-bit weights beside onnxruntime
attn     kernels and memory of attention, causal beside full, grouped heads beside equal ones
threads  two threads beside one, and what a second one adds to tiny programs
compile  CPU time of `monopour compile`, without a cache and with one
v3       matrix products for x86-64-v3 beside x86-64-v4
The binary is MONOPOUR, or target/release/monopour; that of candle, tract and the machine's measures is PEERS_RUST, or
target/peers-rust/release/monopour-peers (`make bench-cpu` builds it). A round measures the machine, then ours, then each peer, and
so every ratio is one of a round; what stands in a table is the median over the rounds. The exit status is 1 if a value is wrong or a
run fails. needs: pip install numpy ml_dtypes onnx onnxruntime iree-base-compiler==3.13.0 iree-base-runtime==3.13.0"""
import argparse
import datetime
import json
import math
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

import numpy as np
import onnxruntime as ort

import cpu_programs
import ops
import peers

RUST = os.environ.get("PEERS_RUST", str(ops.ROOT / "target/peers-rust/release/monopour-peers"))
PEERS = {"ort": "onnxruntime", "iree": "IREE", "candle": "candle", "tract": "tract"}
ONE_THREAD = {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
PRODUCTS = ["matmul_256", "matmul_512", "matmul_1024"]
# Bytes of the weights in memory, with their scales.
MATVECS = {"matvec_1x4096x4096": ("f32", 4 << 24), "f16_matvec_1x4096x4096": ("f16", 2 << 24), "bf16_matvec_1x4096x4096": ("bf16", 2 << 24),
           "i8_matvec_1x4096x4096": ("i8", (1 << 24) + (4 << 12))}
AGAINST_ORT = {"int4_matvec_1x4096x4096": 0.8, "i8_dynamic_matvec_1x4096x4096": None}
ATTENTION = {"attn_12x2048_full": (12, 2048, "full"), "attn_12x2048_causal": (12, 2048, "causal"), "attn_12x512_equal": (12, 512, "full"),
             "attn_12x512_divided": (12, 512, "divided"), "attn_12x512_grouped": (12, 512, "grouped")}
THREADED = """gpt2_up_128x768x3072 gpt2_step_qkv_1x768x2304 vit_up_197x768x3072 resnet_56_3x3 resnet_14_3x3 mobilenet_depthwise_32_at_112s1
 matvec_1x4096x4096 int4_matvec_1x4096x4096 attention_12x197x64 softmax_12x128x128 layernorm_197x768 gelu_128x3072 residual_add_256x56x56
 transpose_2048""".split()
TINY = "tiny_add_16 tiny_softmax_8x64 tiny_mlp_1x32x32x8 resnet_average_pool heads_1x128x12x64 mobilenet_depthwise_960_at_7s1".split()
COMPUTE = ("matmul", "mlp", "conv", "attn", "attention", "gpt2_up", "vit", "resnet_56", "resnet_14")
READ = 512 << 20  # bytes that memory's bandwidth is measured with
ACROSS = 16 << 20  # bytes that softmax and layer norm read, and write


class Failed(Exception):
    """A run failed or gave a wrong value; what it said is on standard error."""


def machine(*words):
    done = subprocess.run([RUST, "machine", *map(str, words)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def gflops(*words):
    return machine("fma", *words)["gflops"]


def gbytes(size=READ, threads=1):
    return machine("read", size, "--threads", threads)["gbytes"]


class Programs:
    """Folders of programs, and how often each runs in a round."""

    def __init__(self, directory):
        # What is made once: sessions of onnxruntime, arguments of IREE, artifacts.
        self.directory, self.root, self.runs, self.sessions = directory, directory / "lines", {}, {}

    def folder(self, name):
        """The program's, written where it is missing."""
        folder = self.root / name
        if name in peers.PROGRAMS:
            cpu_programs.bench(folder, self.directory, name)
        elif not any(folder.glob("outputs/*.npy")):
            note(f"writes {name}")
            if name in ATTENTION:
                cpu_programs.attention(folder, *ATTENTION[name])
            else:
                cpu_programs.op(folder, name)
        return folder

    def statistics(self, name, threads=1, model=None):
        runs = self.runs.get(name)
        folder = self.root / name if runs else self.folder(name)
        model = model or ("model.mlir" if (folder / "model.mlir").exists() else "model.onnx")
        if runs is None:
            first = ops.statistics_of(ops.BINARY, folder, ops.RUNS, 1, model)
            runs = self.runs[name] = ops.runs_of(first["run_ms"]["median"]) if first else ops.RUNS
        found = ops.statistics_of(ops.BINARY, folder, runs, threads, model)
        if found is None:
            raise Failed(name)
        return found

    def ours(self, name, threads=1, model=None):
        return self.statistics(name, threads, model)["run_ms"]["median"]

    def ort(self, name):
        """onnxruntime; on programs of gen.py after a check of the values."""
        if name not in self.sessions:
            folder = self.root / name / "onnx" if name in peers.PROGRAMS else self.root / name
            peer = self.sessions[name] = ops.Peer(folder)
            if name in peers.PROGRAMS:
                peer.time(1)
                expected, found = np.load(self.root / name / "outputs/result0.npy"), peer.binding.copy_outputs_to_cpu()[0]
                difference = np.abs((found.transpose(0, 2, 3, 1) if name == "conv" else found) - expected).max()
                if not difference <= 1e-3:
                    raise Failed(f"onnxruntime {name}: wrong values, max error {difference}")
        return self.sessions[name].time(self.runs.get(name, ops.RUNS))

    def iree(self, name):
        if ("iree", name) not in self.sessions:
            module = self.root / name / "iree.vmfb"
            peers.iree_compile(str(self.directory), "iree_cpu", name, str(module))
            inputs, expected = peers.inputs(str(self.directory), name)
            self.sessions["iree", name] = peers.iree_checked(str(self.directory), "iree_cpu", name, 1, len(inputs), expected, module)[0]
        times = peers.iree_times(self.sessions["iree", name], 3, 0.07)
        return statistics.median(t["real_time"] for t in times)

    def rust(self, peer, name):
        done = subprocess.run([RUST, peer, str(self.directory), name], capture_output=True, text=True, env=os.environ | ONE_THREAD)
        if done.returncode != 0:
            raise Failed(f"{peer} {name}: {done.stderr.strip()}")
        return json.loads(done.stdout)["wall_ms"]


def note(text):
    print(text, file=sys.stderr, flush=True)


class Samples:
    """What each round measured, by task and column."""

    def __init__(self):
        self.rounds, self.failed = {}, set()

    def measure(self, task, columns):
        found = {}
        for column, run in columns.items():
            if (task, column) in self.failed:
                continue
            try:
                found[column] = run()
            except (Failed, SystemExit, subprocess.CalledProcessError, OSError) as error:
                self.failed.add((task, column))
                note(f"{task}, {column}: {error}")
        self.rounds.setdefault(task, []).append(found)

    def median(self, task, of):
        """The median over the rounds of a column, or of a function of a round; NaN where nothing was measured."""
        take = (lambda r: r[of]) if isinstance(of, str) else of
        values = []
        for found in self.rounds[task]:
            try:
                values.append(take(found))
            except (KeyError, ValueError):
                continue
        return statistics.median(values) if values else math.nan

    def ratio(self, task, over, under):
        return self.median(task, lambda r: r[over] / r[under])


class Report:
    """Markdown, and the lines that fail."""

    def __init__(self):
        self.parts, self.held, self.fails = [], 0, []

    def at_most(self, what, value, bound, digits=3):
        return self.judged(what, value, bound, value <= bound, f"<= {bound:.{digits}g}")

    def at_least(self, what, value, bound, digits=3):
        return self.judged(what, value, bound, value >= bound, f">= {bound:.{digits}g}")

    def judged(self, what, value, bound, holds, text):
        """Two cells. A figure that could not be measured fails."""
        if holds:
            self.held += 1
        else:
            self.fails.append(f"{what} {number(value)} ({text})")
        return [text, "holds" if holds else "**fails**"]

    def table(self, title, columns, rows, *notes):
        lines = [f"## {title}", "", *notes, ""] if notes else [f"## {title}", ""]
        lines += ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
        lines += ["| " + " | ".join(c if isinstance(c, str) else number(c) for c in row) + " |" for row in rows]
        self.parts.append("\n".join(lines))

    def end(self):
        text = f"{self.held + len(self.fails)} figures with a bound: {self.held} hold, {len(self.fails)} fail"
        return text + (": " + "; ".join(self.fails) + "." if self.fails else ".")


def number(value):
    return "-" if value is None or math.isnan(value) else f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def geometric(values):
    values = list(values)
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan


def bench_tasks(p):
    for name in peers.PROGRAMS:
        columns = {"ours": lambda n=name: p.ours(n), "ort": lambda n=name: p.ort(n), "iree": lambda n=name: p.iree(n)}
        columns |= {peer: lambda n=name, peer=peer: p.rust(peer, n) for peer in ("candle", "tract")}
        yield f"bench/{name}", columns


def bench_report(s, report):
    rows, best, over_ort = [], [], []
    for name in peers.PROGRAMS:
        task = f"bench/{name}"
        best.append(s.median(task, lambda r: r["ours"] / min(r[peer] for peer in PEERS if peer in r)))
        over_ort.append(s.ratio(task, "ours", "ort"))
        rows.append([name, s.median(task, "ours"), *(s.median(task, peer) for peer in PEERS), best[-1], over_ort[-1]])
    report.table("Eleven programs, one thread, milliseconds", ["program", "monopour", *PEERS.values(), "over the best", "over onnxruntime"], rows)
    lines = [["geometric mean over the best of each", geometric(best), 0.88], ["largest over the best", float(np.max(best)), 1.03],
             ["geometric mean over onnxruntime", geometric(over_ort), 0.72]]
    report.table("Eleven programs, the bounds", ["figure", "is", "bound", ""], [[*line[:2], *report.at_most(*line)] for line in lines])


def peak_tasks(p):
    for name in PRODUCTS[1:]:
        yield f"peak/{name}", {"fma": gflops, "ours": lambda n=name: p.ours(n)}
    for name in ("softmax", "layernorm"):
        yield f"peak/{name}", {"machine": lambda: machine("copy", ACROSS), "ours": lambda n=name: p.ours(n)}
    yield "peak/ew8", {"machine": lambda: machine("chain", 1 << 24), "ours": lambda: p.ours("ew8")}


def peak_report(s, report):
    rows = []
    for name in PRODUCTS[1:]:
        task, work = f"peak/{name}", 2e-6 * int(name.split("_")[1]) ** 3
        share = s.median(task, lambda r: 100 * work / r["ours"] / r["fma"])
        rate = s.median(task, lambda r: work / r["ours"])
        rows.append([name, s.median(task, "ours"), rate, s.median(task, "fma"), share, *report.at_least(f"{name}, % of the FMA peak", share, 93)])
    report.table("Products beside the FMA peak of one core", ["program", "ms", "GFLOP/s", "FMA peak, GFLOP/s", "%", "bound", ""], rows)
    rows, forms = [], ("plain_ms", "streaming_ms")
    for name, by, bound in (("softmax", "a copy of its bytes", 1.1), ("layernorm", "a copy of its bytes", 1.1), ("ew8", "the loop by hand", 1.05)):
        task = f"peak/{name}"
        ratio = s.median(task, lambda r: r["ours"] / min(r["machine"][f] for f in forms))
        times = [s.median(task, lambda r, f=form: r["machine"][f]) for form in forms]
        rows.append([name, s.median(task, "ours"), by, *times, ratio, *report.at_most(f"{name} over {by}", ratio, bound)])
    columns = ["program", "ms", "beside", "through the caches, ms", "past them, ms", "ratio", "bound", ""]
    report.table("Passes over memory beside the faster of the machine's", columns, rows)


def matvec_tasks(p):
    for name, (_, size) in MATVECS.items():
        yield f"matvec/{name}", {"read": gbytes, "again": lambda s=size: gbytes(s), "ours": lambda n=name: p.ours(n)}
    for name in AGAINST_ORT:
        yield f"matvec/{name}", {"ours": lambda n=name: p.ours(n), "ort": lambda n=name: p.ort(n)}


def matvec_report(s, report):
    rows = []
    for name, (element, size) in MATVECS.items():
        task = f"matvec/{name}"
        share, warm = (s.median(task, lambda r, c=column: 100 * size / r["ours"] / r[c] * 1e-6) for column in ("read", "again"))
        rows.append([element, s.median(task, "ours"), s.median(task, lambda r: size / r["ours"] * 1e-6), s.median(task, "read"), share,
                     *report.at_least(f"{element} weights, % of the read bandwidth", share, 85), s.median(task, "again"), warm])
    columns = ["weights", "ms", "stored GB/s", "reads of 512 MB, GB/s", "%", "bound", "", "reads of the same size, GB/s", "%"]
    report.table("A vector times 4096 x 4096 weights, one thread", columns, rows,
                 "Weights stay in a cache in part, and so may pass the bandwidth of memory; the last two columns, without a bound, have reads that stay there too.")
    rows = []
    for name, bound in AGAINST_ORT.items():
        task = f"matvec/{name}"
        ratio = s.ratio(task, "ours", "ort")
        rows.append([name, s.median(task, "ours"), s.median(task, "ort"), ratio, *(report.at_most(name, ratio, bound) if bound else ["", ""])])
    report.table("Quantised weights beside onnxruntime", ["op", "monopour, ms", "onnxruntime, ms", "ratio", "bound", ""], rows)


def attn_tasks(p):
    for heads, forms in (("12x2048", ("full", "causal")), ("12x512", ("equal", "divided", "grouped"))):
        yield f"attn/{heads}", {form: lambda n=f"attn_{heads}_{form}": p.ours(n) for form in forms}
    yield "attn/attn_512", {field: lambda f=field: p.statistics("attn_512")[f] for field in ("dispatches", "planned_bytes")}


def attn_report(s, report):
    rows = []
    for field, bound in (("dispatches", 1), ("planned_bytes", 0)):
        value = s.median("attn/attn_512", field)
        rows.append([f"attn_512, {field.replace('_', ' ')}", value, *report.at_most(f"attn_512 {field}", value, bound)])
    lines = [("12x2048", "causal", "full", 0.6), ("12x512", "grouped", "equal", 1.1), ("12x512", "divided", "equal", 1.1)]
    for heads, form, other, bound in lines:
        ratio = s.ratio(f"attn/{heads}", form, other)
        times = f"{number(s.median(f'attn/{heads}', form))} of {number(s.median(f'attn/{heads}', other))} ms"
        rows.append([f"{heads}x64, {form} over {other}: {times}", ratio, *report.at_most(f"attention {heads} {form} over {other}", ratio, bound)])
    report.table("Attention", ["figure", "is", "bound", ""], rows,
                 "Grouped: loops over groups of three heads that share keys. Divided: `head floordiv 3` in the maps of keys and values.")


def threads_tasks(p):
    yield "threads/machine", {"fma1": gflops, "fma2": lambda: gflops("--threads", 2), "read1": gbytes, "read2": lambda: gbytes(threads=2)}
    for name in (*peers.PROGRAMS, *THREADED, *TINY):
        yield f"threads/{name}", {"one": lambda n=name: p.ours(n), "two": lambda n=name: p.ours(n, 2)}


def threads_report(s, report):
    rows = []
    for name in (*peers.PROGRAMS, *THREADED):
        task = f"threads/{name}"
        one, gain = s.median(task, "one"), s.ratio(task, "one", "two")
        bound = 1.9 if one > 1 and name.startswith(COMPUTE) else 1.7 if one > 0.2 else 0.98
        rows.append([name, one, s.median(task, "two"), gain, *report.at_least(f"{name} on two threads", gain, bound)])
    gains = [number(s.ratio("threads/machine", f"{what}2", f"{what}1")) for what in ("fma", "read")]
    report.table("Two threads over one", ["program", "one, ms", "two, ms", "speed-up", "bound", ""], rows,
                 f"The machine's own speed-up in the same rounds: {gains[0]} in multiply-adds of registers, {gains[1]} in reads of memory.")
    rows = []
    for name in TINY:
        task = f"threads/{name}"
        added = s.median(task, lambda r: 1e3 * (r["two"] - r["one"]))
        rows.append([name, 1e3 * s.median(task, "one"), 1e3 * s.median(task, "two"), added, *report.at_most(f"{name}, us added", added, 5)])
    report.table("What a second thread adds to tiny programs", ["program", "one, us", "two, us", "added, us", "bound", ""], rows)


def compiled(p, name, cache, target="cpu", out="compiled.mpr"):
    """CPU seconds of the command line, of all its threads."""
    folder = p.folder(name)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [ops.BINARY, "compile", str(folder / "model.mlir"), "-o", str(folder / out), "--target", target, "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"MONOPOUR_CACHE_DIR": cache})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise Failed(f"{name}: {done.stderr.strip()[-500:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compiled_again(p, name):
    """With the objects of an earlier compilation on disk."""
    cache = str(p.root / "objects")
    if ("objects", name) not in p.sessions:
        p.sessions["objects", name] = compiled(p, name, cache)
    return compiled(p, name, cache)


def compile_tasks(p):
    for name in peers.PROGRAMS:
        yield f"compile/{name}", {"new": lambda n=name: compiled(p, n, ""), "again": lambda n=name: compiled_again(p, n)}


def compile_report(s, report):
    rows = []
    for name in peers.PROGRAMS:
        new, again = s.median(f"compile/{name}", "new"), s.median(f"compile/{name}", "again")
        rows.append([name, new, *report.at_most(f"compile {name}, s", new, 0.12), again, *report.at_most(f"compile {name} from the cache, s", again, 0.05)])
    report.table("CPU seconds of `monopour compile`", ["program", "no cache", "bound", "", "objects on disk", "bound", ""], rows)


def ours_for(p, name, level):
    """The time of code for a level of x86-64."""
    model = f"{level}.mpr"
    if (level, name) not in p.sessions:
        p.sessions[level, name] = compiled(p, name, "", f"cpu:x86-64-{level}", model)
    return p.ours(name, model=model)


def v3_tasks(p):
    for name in PRODUCTS:
        columns = {"narrow": lambda: gflops("--narrow"), "wide": gflops}
        yield f"v3/{name}", columns | {level: lambda n=name, l=level: ours_for(p, n, l) for level in ("v3", "v4")}


def v3_report(s, report):
    rows = []
    for name in PRODUCTS:
        ratio = s.ratio(f"v3/{name}", "v3", "v4")
        rows.append([name, s.median(f"v3/{name}", "v3"), s.median(f"v3/{name}", "v4"), ratio, *report.at_most(f"{name}, v3 over v4", ratio, 1.15)])
    peaks = [s.median(f"v3/{PRODUCTS[0]}", column) for column in ("narrow", "wide")]
    report.table("Products for x86-64-v3 beside x86-64-v4", ["program", "v3, ms", "v4, ms", "ratio", "bound", ""], rows,
                 f"The FMA peak is {number(peaks[0])} GFLOP/s in registers of 256 bits, {number(peaks[1])} in the widest: a ratio of {number(peaks[1] / peaks[0])}.")


GROUPS = {"bench": (bench_tasks, bench_report), "peak": (peak_tasks, peak_report), "matvec": (matvec_tasks, matvec_report),
          "attn": (attn_tasks, attn_report), "threads": (threads_tasks, threads_report), "compile": (compile_tasks, compile_report),
          "v3": (v3_tasks, v3_report)}


def measured(names, programs, rounds):
    """All rounds of all groups. The first round also compiles and checks what is kept, before it times it."""
    samples, tasks = Samples(), []
    for name in names:
        tasks += GROUPS[name][0](programs)
    for count in range(rounds):
        start = time.monotonic()
        for task, columns in tasks:
            samples.measure(task, columns)
        note(f"round {count + 1} of {rounds}: {time.monotonic() - start:.0f} s")
    return samples


def head(before, rounds):
    cpu = next(line.split(": ")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    return f"""# The CPU figures and their bounds

Written by `make bench-cpu` on {datetime.date.today()}; what is measured, and how, stands at the head of `benches/cpu_lines.py`.
Machine: {cpu}, {os.cpu_count()} cores. Load average before {before:.1f}, after {os.getloadavg()[0]:.1f}. Medians over {rounds} rounds.
onnxruntime {ort.__version__}, IREE 3.13.0 at -O3 for this machine; candle and tract as `benches/peers-rust/Cargo.toml` names them.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--only", default=",".join(GROUPS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", metavar="FILE")
    args = parser.parse_args()
    names = [name for name in GROUPS if name in args.only.split(",")]
    if unknown := set(args.only.split(",")) - set(GROUPS):
        parser.error(f"no group {', '.join(sorted(unknown))}; there are {', '.join(GROUPS)}")
    ort.set_default_logger_severity(4)
    os.environ["MONOPOUR_CACHE_DIR"] = str(args.dir / "lines/objects")
    before = os.getloadavg()[0]
    samples, report = measured(names, Programs(args.dir), args.rounds), Report()
    for name in names:
        GROUPS[name][1](samples, report)
    text = head(before, args.rounds) + report.end() + "\n\n" + "\n\n".join(report.parts) + "\n"
    print(text)
    if args.write:
        pathlib.Path(args.write).write_text(text)
    if samples.failed:
        print("failed: " + "; ".join(f"{column} in {task}" for task, column in sorted(samples.failed)))
    return 1 if samples.failed else 0


if __name__ == "__main__":
    sys.exit(main())
