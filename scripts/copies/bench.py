"""`monopour bench` on the programs of benches/copies: times beside greedy's, and the tables of docs/copy-elimination.md.

    python3 scripts/copies/bench.py times MONOPOUR cpu|gpu [REPEAT]   the time of minimal is at most 1.03 of greedy's
    python3 scripts/copies/bench.py table MONOPOUR                    copies, bytes and allocations are those of the page
    python3 scripts/copies/bench.py write MONOPOUR                    write both tables into the page, with times

Exit status 1: a bound does not hold.
"""

import json
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "copy-elimination.md"
PROGRAMS = sorted((ROOT / "benches" / "copies").glob("*.mlir"))
RATIO = 1.03
# Runs of one bench, and benches.
REPEAT = {"cpu": 300, "gpu": 100}
ROUNDS = 7
HEADINGS = {"cpu": "## CPU", "gpu": "## lavapipe"}
# Columns that no clock decides.
COUNTS = 8


def bench(monopour, device, repeat, programs=PROGRAMS):
    """The rows of each program; one thread, so that a CPU's times are of one kind."""
    command = [monopour, "bench", *programs, "--device", device, "--repeat", str(repeat), "--json"]
    command += ["--threads", "1"] if device == "cpu" else []
    measured = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["programs"]
    return {pathlib.Path(of["model"]).stem: {row["mode"]: row for row in of["modes"]} for of in measured}


def time_ms(row):
    return row.get("gpu_ms", row["run_ms"])


def times(monopour, device, repeat):
    """The modes take turns within a bench; the median of the ratios of some benches counts."""
    ratios = {}
    for _ in range(ROUNDS):
        for name, modes in bench(monopour, device, repeat).items():
            ratios.setdefault(name, []).append(time_ms(modes["minimal"]) / time_ms(modes["greedy"]))
    above = []
    for name, of in ratios.items():
        ratio = statistics.median(of)
        above += [name] if ratio > RATIO else []
        print(f"{name} on {device}: {ratio:.3f} of greedy's time ({min(of):.3f} to {max(of):.3f}), bound {RATIO}"
              + (": above it" if ratio > RATIO else ""))
    if above:
        print(f"above {RATIO}: {', '.join(above)}")
    return not above


def cells(name, modes):
    """A line of the page for each mode, as lists."""
    least = modes["minimal"]
    for mode, row in modes.items():
        if "refused" in row:
            yield [name, mode, f"refused: {row['refused']}"]
            continue
        counts = [row["copies"], row["copied_bytes"], least["lower_bound_copied_bytes"], row["allocations"],
                  row["peak_bytes"], least["lower_bound_bytes"]]
        yield [name, mode, *map(str, counts), f"{time_ms(row):.3f}"]


def lines(monopour, device, repeat):
    return [row for name, modes in bench(monopour, device, repeat).items() for row in cells(name, modes)]


def table_of(page, device):
    """Where the lines of a device's table are in the page."""
    start = page.index("\n", page.index("|---", page.index(HEADINGS[device]))) + 1
    return start, page.index("\n\n", start) + 1


def table(monopour):
    """The page's tables are those of this build but for times, and the page names the rows where copying is faster."""
    page, holds = PAGE.read_text(), True
    named = " ".join(re.findall(r"^- Copying is faster.*$", page, re.MULTILINE))
    for device in HEADINGS:
        start, end = table_of(page, device)
        written = [line.strip("| ").split(" | ") for line in page[start:end].splitlines()]
        found = lines(monopour, device, 2)
        differ = [row for row in found if row[:COUNTS] not in [other[:COUNTS] for other in written]]
        for row in differ:
            print(f"{device}: not on the page: {' | '.join(row)}")
        ms = {(row[0], row[1]): float(row[-1]) for row in written}
        slower = sorted(name for name, mode in ms if mode == "greedy" and ms[name, "minimal"] > RATIO * ms[name, mode])
        unnamed = [name for name in slower if f"`{name}`" not in named]
        print(f"{device}: {len(found) - len(differ)} of {len(found)} rows as on the page; copying is faster there in"
              f" {', '.join(slower) or 'none'}, {len(unnamed)} of them not named")
        holds &= len(written) == len(found) and not differ and not unnamed
    return holds


def write(monopour):
    page = PAGE.read_text()
    for device in HEADINGS:
        start, end = table_of(page, device)
        rows = lines(monopour, device, REPEAT[device])
        page = page[:start] + "".join(f"| {' | '.join(row)} |\n" for row in rows) + page[end:]
    PAGE.write_text(page)
    return True


def main():
    what, monopour = sys.argv[1:3]
    if what == "times":
        device = sys.argv[3]
        holds = times(monopour, device, int(sys.argv[4]) if len(sys.argv) > 4 else REPEAT[device])
    else:
        holds = {"table": table, "write": write}[what](monopour)
    sys.exit(not holds)


main()
