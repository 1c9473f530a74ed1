"""Arenas and CPU time of `monopour plan`, on a kind of traces.

    python3 scripts/copies/plan.py KIND MONOPOUR [MAKE_TRACE]

traces: those of MiniMalloc, each within its capacity. cut: rectangles of up to 500 buffers, without a gap. many: 40,000
buffers, by MAKE_TRACE. spread: 40,000 with lifetimes of 1 to 10,000. One second of CPU time each.
Exit status 1: a bound does not hold.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

SECONDS = 1.0
RATIO = 1.03
TRACES = pathlib.Path(__file__).parent / "minimalloc"
# What is alive at once, where that is less than the capacity of the name: no gap is left.
CAPACITIES = {"C": 1039360}


def plan(monopour, trace):
    """The summary, and CPU seconds of the process."""
    process = subprocess.Popen([monopour, "plan", trace, "--json"], stdout=subprocess.PIPE)
    summary = json.load(process.stdout)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{trace}: monopour ended with {process.returncode}")
    return summary, usage.ru_utime + usage.ru_stime


def judge(name, monopour, trace, capacity=None):
    """Prints a line; whether peak and time are within their bounds."""
    summary, seconds = plan(monopour, trace)
    peak, bound = summary["peak_bytes"], summary["lower_bound_bytes"]
    if capacity is None:
        fits, asked = peak <= RATIO * bound, f"{peak / bound:.4f} of the lower bound, bound {RATIO}"
    else:
        fits, asked = peak <= capacity, f"bound {capacity}"
    holds = fits and seconds <= SECONDS
    print(f"{name}: {summary['buffers']} buffers in {peak} bytes ({asked}), {seconds:.2f} s of CPU time, bound {SECONDS}"
          + ("" if holds else ": above it"), flush=True)
    return holds


def spread(path):
    """Lifetimes whose logarithms are uniform."""
    rng = random.Random(1)
    with open(path, "w") as file:
        print("id,lower,upper,size", file=file)
        for buffer in range(40000):
            first, length = rng.randrange(40000), round(10000 ** rng.random())
            print(f"{buffer},{first},{first + length},{256 * rng.randint(1, 4096)}", file=file)


def made(make_trace, kind, count, path):
    with open(path, "w") as file:
        subprocess.run([make_trace, kind, str(count)], stdout=file, check=True)


def main():
    kind, monopour = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.csv")
        if kind == "traces":
            traces = sorted(TRACES.glob("*.csv"))
            holds = [judge(t.name[0], monopour, t, CAPACITIES.get(t.name[0], int(t.name.split(".")[1]))) for t in traces]
        elif kind == "spread":
            spread(path)
            holds = [judge("lifetimes of 1 to 10,000", monopour, path)]
        else:
            holds = []
            cut = [("cut", count, 1 << 20) for count in (50, 100, 200, 300, 400, 500)]
            many = [(of, 40000, None) for of in ("layers", "uniform", "nested")]
            for of, count, capacity in cut if kind == "cut" else many:
                made(sys.argv[3], of, count, path)
                holds.append(judge(of, monopour, path, capacity))
    sys.exit(not (holds and all(holds)))


main()
