"""Runs upstream's own test files of the passes that monopour replaces, with `monopour opt` in the place of mlir-opt.

    run.py MLIR_TEST_DIR MONOPOUR [PATTERN]

MLIR_TEST_DIR is `mlir/test` of the LLVM 22.1.8 sources (a Debian source package holds them:
`apt-get source --download-only llvm-toolchain-22`). Nothing of it is kept here.
For every RUN line it prints how many decisions our own analysis made. Not one that names a pass of ours may have made
none, unless our pass refused the whole input: then it prints how many errors it reported.
Exit status 1 when a line made none, or when a file fails that `known.txt` does not list.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# Passes of ours, and the statistics that count what they decided; none: all of the pass's statistics do.
DECISIONS = {
    "one-shot-bufferize": ("num-tensor-in-place", "num-tensor-out-of-place"),
    "eliminate-empty-tensors": ("num-tensor-in-place", "num-tensor-out-of-place"),
    "expand-realloc": None,
    "ownership-based-buffer-deallocation": None,
    "buffer-deallocation-simplification": None,
    "bufferization-lower-deallocations": None,
    "convert-bufferization-to-memref": None,
    "buffer-hoisting": None,
    "buffer-loop-hoisting": None,
    "promote-buffers-to-stack": None,
    "buffer-results-to-out-params": None,
    "drop-equivalent-buffer-results": None,
    "optimize-allocation-liveness": None,
}
# What a pipeline runs of them.
PIPELINES = {
    "buffer-deallocation-pipeline": (
        "expand-realloc",
        "ownership-based-buffer-deallocation",
        "buffer-deallocation-simplification",
        "bufferization-lower-deallocations",
    ),
}


def name_of(passes):
    """A pattern for the names, each as a whole word."""
    return r"(?<!\w)(" + "|".join(passes) + r")(?![\w-])"


# Names in RUN and DEFINE lines that select a file. `empty-tensor-to-alloc-tensor` decides nothing.
SELECTED = name_of([*DECISIONS, *PIPELINES, "empty-tensor-to-alloc-tensor"])


def run_lines(path, kind="RUN"):
    """The RUN (or DEFINE) lines of a file, continuation lines joined."""
    lines, current = [], ""
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if match := re.match(rf"\s*//\s*{kind}:\s*(.*)", line):
                current += match[1].rstrip()
                if current.endswith("\\"):
                    current = current[:-1] + " "
                else:
                    lines.append(current)
                    current = ""
    return lines


def selected(root, pattern):
    """Files that run one of the passes and only compile: those below Integration/ run programs too, and those below
    Examples/ need passes that only upstream's own build of mlir-opt has."""
    files = []
    for file in sorted(glob.glob(os.path.join(root, "**", "*.mlir"), recursive=True)):
        name = os.path.relpath(file, root)
        lines = run_lines(file) + run_lines(file, "DEFINE") if pattern in name else []
        if not name.startswith(("Integration", "Examples")) and any(re.search(SELECTED, line) for line in lines):
            files.append(file)
    return files


def judge(line, run):
    """What to print of one mlir-opt of a RUN line, and whether it is all right."""
    given = [match[1] for match in re.finditer(name_of([*DECISIONS, *PIPELINES]), " ".join(run["args"]))]
    named = dict.fromkeys(name for word in given for name in PIPELINES.get(word, (word,)))
    if not named:
        return "no pass of ours", True
    counts = [run["passes"].get(name, {}) for name in named]
    decisions = sum(
        count
        for name, statistics in zip(named, counts)
        for statistic, count in statistics.items()
        if statistic != "num-errors" and statistic in (DECISIONS[name] or statistics)
    )
    errors = sum(c.get("num-errors", 0) for c in counts)
    if decisions:
        return f"{decisions} decisions", True
    return (f"0 decisions, {errors} errors of ours", True) if errors else ("0 decisions", False)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    root, binary = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    files = selected(root, sys.argv[3] if len(sys.argv) > 3 else "")
    if not files:
        sys.exit(f"{root} holds no test that runs the passes: give mlir/test of the LLVM 22.1.8 sources")
    work = os.path.join(os.environ.get("CARGO_TARGET_DIR", "target"), "upstream-suite")
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    work = os.path.abspath(work)
    # lit looks for its configuration beside the tests: a folder of ours stands there, with links to the files.
    links = os.path.join(work, "tests")
    linked = []
    for file in files:
        link = os.path.join(links, os.path.relpath(file, root))
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.symlink(file, link)
        linked.append(link)
    shutil.copy(os.path.join(HERE, "lit.cfg.py"), links)
    shutil.copy(os.path.join(HERE, "opt.py"), links)
    filecheck = next((f for f in ("FileCheck-22", "/usr/lib/llvm-22/bin/FileCheck", "FileCheck") if shutil.which(f)), None)
    if filecheck is None:
        sys.exit("FileCheck is missing: scripts/setup.sh installs it")
    results = os.path.join(work, "results.json")
    environment = dict(os.environ, UPSTREAM_TESTS=links, UPSTREAM_WORK=os.path.join(work, "out"),
                       UPSTREAM_MONOPOUR=binary, UPSTREAM_PYTHON=sys.executable, UPSTREAM_FILECHECK=filecheck)
    subprocess.run([sys.executable, "-c", "from lit.main import main; main()", "-v", "-o", results, *linked], env=environment,
                   stdout=open(os.path.join(work, "lit.log"), "w"), stderr=subprocess.STDOUT)
    report = {t["name"].split(" :: ", 1)[1]: t for t in json.load(open(results))["tests"]}
    known = set()
    for text in open(os.path.join(HERE, "known.txt")):
        if name := text.split("#")[0].strip():
            known.add(name)
    passed, undecided, unexpected = 0, 0, []
    for file in files:
        name = os.path.relpath(file, root)
        code = report[name]["code"]
        print(f"{code:5} {name}")
        passed += code == "PASS"
        if code != "PASS" and name not in known:
            unexpected.append(name)
        directory, base = os.path.split(os.path.join(work, "out", name))
        log = os.path.join(directory, "Output", base + ".tmp.runs")
        runs = [json.loads(line) for line in open(log)] if os.path.exists(log) else []
        for line, run in zip(run_lines(file), runs):
            text, fine = judge(line, run)
            undecided += not fine
            flags = [a for a in run["args"] if a.startswith("-") and not re.match("-+(split-input|verify-diag)", a)]
            print(f"        {text}: {' '.join(flags)[:120]}")
    print(f"{passed} of {len(files)} files pass; {undecided} RUN lines without a decision of ours")
    for name in unexpected:
        print(f"fails, and is not in known.txt: {name}; see {os.path.join(work, 'lit.log')}")
    return 1 if undecided or unexpected else 0


sys.exit(main())
