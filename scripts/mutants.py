#!/usr/bin/env python3
"""Deliberate faults: for a fixed sample of those that cargo-mutants knows, does a test of the crate find it?

    mutants.py [CRATE...]           all six crates if none is named
    SHARD=1/26                      another sample; 0/200 is a quick one
    ONLY='makers.rs.* behind'       every fault whose name matches, in the sample or not
    JOBS=2                          how many faults at a time

cargo-mutants only lists the faults. All of a crate are built into one test program, each a copy of its function that an
environment variable turns on: one optimised build instead of hundreds. Without a fault each test runs by itself, which
says what it costs and which functions it enters. A fault is then given to the tests that enter its function, the quick
ones first, until one fails. What cannot be switched so (constant functions, opaque types, what does not compile) is
built by itself.

Works on a copy of the tree, target/mutants/tree. Writes target/mutants/CRATE.txt; fails when less than 90 % was found.
"""

import collections
import concurrent.futures
import fcntl
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

VERSION = "27.1.0"
ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOL = ROOT / "target/tools/bin/cargo-mutants"
WORK = ROOT / "target/mutants"
TREE = WORK / "tree"
# What to run of each crate: no documentation tests, and no test program that is empty.
TARGETS = {
    "program": ["--lib", "--test=program"],
    "split": ["--test=main"],
    "runtime": ["--lib", "--test=runtime"],
    "analysis": ["--lib"],
    "dealloc": ["--lib", "--test=main"],
    "bufferize": ["--lib", "--test=main"],
}
# Decisions whose tests are those of the pass that asks for them.
JUDGES = {"analysis/src/lifetimes": "dealloc"}
OURS = ["ir", "testkit", *TARGETS]
ENVIRONMENT = {
    **os.environ,
    "CARGO_TARGET_DIR": str(ROOT / "target"),  # what is not ours is built already
    "CARGO_INCREMENTAL": "1",
    "CARGO_TERM_COLOR": "never",
    "RUST_BACKTRACE": "0",
}
FILES = {}  # by name, what each held when this began
MEMORY_BYTES = 16 << 30  # a fault may ask for memory without end

# Behind each crate's lib.rs. `FAULT` is the one that is on; `FAULTS_MET` a file for those whose functions are entered.
SWITCH = """
#[allow(dead_code)]
pub(crate) fn fault_is_on(number: usize) -> bool {
    use std::io::Write;
    use std::sync::{LazyLock, atomic::{AtomicBool, Ordering}};
    static ON: LazyLock<Option<usize>> = LazyLock::new(|| std::env::var("FAULT").ok()?.parse().ok());
    static MET: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];
    if !MET[number].load(Ordering::Relaxed) && !MET[number].swap(true, Ordering::Relaxed)
        && let Some(path) = std::env::var_os("FAULTS_MET")
    {
        let mut file = std::fs::File::options().append(true).create(true).open(path).expect("a file of faults");
        file.write_all(format!("{number}\\n").as_bytes()).expect("written");
    }
    *ON == Some(number)
}
"""


class Fault:
    """A place in a file and what is put there instead."""

    def __init__(self, listed, number):
        self.name, self.file, self.number = listed["name"], listed["file"], number
        self.replacement = listed["replacement"]
        own = self.file.split("/")[0]
        self.judge = next((crate for part, crate in JUDGES.items() if self.file.startswith(part)), own)
        text = FILES[self.file].decode()
        starts = [0]
        for line in text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        at = lambda place: starts[place["line"] - 1] + place["column"] - 1
        range_of = lambda span: (at(span["start"]), at(span["end"]))
        self.span = range_of(listed["span"])
        self.function = range_of(listed["function"]["span"]) if listed["function"] else None
        self.body = body_of(text, *self.function) if self.function else None
        signature = text[self.function[0] : self.body[0]] if self.body else ""
        # Entering a constant function cannot be noted, and two copies of a body have two opaque types.
        self.is_noted = self.body is not None and not re.search(r"\bconst\s+(unsafe\s+)?fn\b", signature)
        self.is_switched = self.is_noted and not re.search(r"->[^{]*\bimpl\b", signature)

    def apply(self, text, start, end):
        """The text from `start` to `end` with the fault in it."""
        return text[start : self.span[0]] + self.replacement + " " + text[self.span[1] : end]


def body_of(text, start, end):
    """From the brace that opens a function's body to behind the one that closes it."""
    depth, i = 0, start
    while i < end:
        if text.startswith("//", i):
            i = text.index("\n", i)
        elif text[i] == '"':
            i += 1
            while text[i] != '"':
                i += 2 if text[i] == "\\" else 1
        elif text[i] == "{" and depth == 0:
            return i, end
        else:
            depth += (text[i] in "([") - (text[i] in ")]")
        i += 1
    return None


def sample(crate):
    """The chosen faults: by a hash of the name and of which place of that name it is, not by position, so that a
    change elsewhere in the code, or a fault that is left out, moves no other in or out."""
    command = [TOOL, "mutants", "-d", TREE, "--list", "--json", "-p", f"monopour-{crate}"]
    listed = json.loads(run(command, stdout=subprocess.PIPE))
    part, of = map(int, os.environ.get("SHARD", "0/26").split("/"))
    only, seen, chosen = os.environ.get("ONLY"), collections.Counter(), []
    for fault in listed:
        name = re.sub(r":\d+:\d+: ", ": ", fault["name"], count=1)
        seen[name] += 1
        value = 0
        for letter in f"{name} {seen[name]}":
            value = (value * 31 + ord(letter)) % 1_000_003
        if re.search(only, fault["name"]) if only else value % of == part:
            chosen.append(Fault(fault, len(chosen)))
    return chosen


def run(command, **options):
    return subprocess.run([str(part) for part in command], cwd=ROOT, check=True, text=True, **options).stdout


def take_files():
    """The tree as it is now, so that nobody has to wait with editing."""
    listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], stdout=subprocess.PIPE)
    FILES.update({name: (ROOT / name).read_bytes() for name in listed.split("\0") if (ROOT / name).is_file()})


def write(changed):
    """Makes the copy equal to the tree but for the given files; a file that is equal already keeps its time."""
    for name, own in FILES.items():
        wanted = changed[name].encode() if name in changed else own
        target = TREE / name
        if not target.is_file() or target.read_bytes() != wanted:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(wanted)


def switched(crate, faults):
    """The files of a crate with all faults in them, and for each file which lines hold which fault."""
    files, lines = {}, collections.defaultdict(list)
    by_file = collections.defaultdict(list)
    for fault in faults:
        if fault.is_noted:
            by_file[fault.file].append(fault)
    for file, inside in by_file.items():
        text, out = FILES[file].decode(), []
        length = lambda: sum(part.count("\n") for part in out) + 1

        def render(start, end, todo):
            """Copies of a function first, one per fault; then its own body, which may hold functions with faults."""
            while todo:
                outer = min(todo, key=lambda f: (f.function[0], -f.function[1]))
                opened, closed = outer.body
                of_it = [f for f in todo if f.function == outer.function]
                within = [f for f in todo if f.function != outer.function and f.function[1] <= closed]
                todo = [f for f in todo if f not in of_it and f not in within]
                out.append(text[start:opened] + "{ ")
                out.extend(f"crate::fault_is_on({fault.number}); " for fault in of_it if not fault.is_switched)
                for fault in filter(lambda fault: fault.is_switched, of_it):
                    out.append(f"if crate::fault_is_on({fault.number}) ")
                    first = length()
                    out.append(fault.apply(text, opened, closed) + " else ")
                    lines[file].append((first, length(), fault))
                out.append("{")
                render(opened + 1, closed, within)
                out.append(" }")
                start = closed
            out.append(text[start:end])

        render(0, len(text), inside)
        files[file] = "".join(out)
    root = f"{crate}/src/lib.rs"
    files[root] = files.get(root, FILES[root].decode()) + SWITCH.replace("COUNT", str(max(len(faults), 1)))
    return files, lines


def build(crates):
    """The test programs and whose they are, or the errors of the compiler as (file, lines, text)."""
    command = ["nice", "-n", "5", "cargo", "test", "--no-run", "--message-format=json"]
    for crate in crates:
        command += [f"--package=monopour-{crate}", *(target for target in TARGETS[crate] if target not in command)]
    for package in OURS:
        for profile in ("dev", "test"):
            command.append(f"--config=profile.{profile}.package.monopour-{package}.debug=0")
            command.append(f"--config=profile.{profile}.package.monopour-{package}.opt-level=1")
    done = subprocess.run(command, cwd=TREE, env=ENVIRONMENT, text=True, capture_output=True)
    programs, errors = [], []
    for line in done.stdout.splitlines():
        said = json.loads(line) if line.startswith("{") else {}
        if said.get("reason") == "compiler-artifact" and said.get("executable") and said["profile"]["test"]:
            programs.append((pathlib.Path(said["manifest_path"]).parent.name, said["executable"]))
        if said.get("reason") == "compiler-message" and said["message"]["level"] == "error":
            message, places = said["message"], []
            for part in [message, *message["children"]]:
                places += [(span["file_name"], span["line_start"], span["line_end"]) for span in part["spans"]]
            errors.append((places, message["rendered"]))
    if done.returncode and not errors:
        sys.exit(f"{crates} do not build:\n{done.stderr[-4000:]}")
    return programs, errors


def build_switched(crate, crates, faults):
    """Builds with as many faults as compile; the others are marked as not to be switched."""
    while True:
        files, lines = switched(crate, faults)
        write(files)
        programs, errors = build(crates)
        if not errors:
            return programs
        guilty = {
            fault
            for places, _ in errors
            for file, first, last in places
            for begin, end, fault in lines.get(file, [])
            if first <= end and begin <= last
        }
        if not guilty:
            sys.exit(f"{crate} does not build with the switches of faults:\n{errors[0][1]}")
        for fault in guilty:
            fault.is_switched = False


def execute(crate, program, tests, extra, cpu_s):
    """Runs tests of one program, one after the other, until one fails. How it ended, its CPU time, what it said."""
    environment = {**ENVIRONMENT, **extra, "RUSTC_BOOTSTRAP": "1", "CARGO_MANIFEST_DIR": str(TREE / crate)}

    def limits():
        os.setsid()
        os.nice(5)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    command = [program, "--exact", *tests, "--test-threads=1", "-Zunstable-options", "--fail-fast"]
    log = open(WORK / "log" / f"{extra.get('FAULT', 'none')}-{os.getpid()}-{hash(tests)}", "w+")
    child = subprocess.Popen(
        command, cwd=TREE / crate, env=environment, stdout=log, stderr=subprocess.STDOUT, preexec_fn=limits
    )
    # A deadlock takes no CPU time; the machine may be a busy one.
    deadline, used, status = time.monotonic() + 60 + 15 * cpu_s, None, None
    while status is None:
        pid, waited, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            status, used = waited, usage.ru_utime + usage.ru_stime
        elif time.monotonic() > deadline:
            os.killpg(child.pid, signal.SIGKILL)
            deadline += 3600
        else:
            time.sleep(0.01)
    child.returncode = status
    try:
        os.killpg(child.pid, signal.SIGKILL)  # what the tests started and left behind
    except ProcessLookupError:
        pass
    log.seek(0)
    said = log.read()
    log.close()
    os.unlink(log.name)
    if status == 0:
        return "passed", used, said
    stopped = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGKILL, signal.SIGXCPU)
    return ("no end" if stopped else "failed"), used, said


def stem(program):
    """The name of a test program without cargo's hash."""
    return pathlib.Path(program).stem.rsplit("-", 1)[0]


class Tests:
    """What each test costs in CPU seconds, and the faults whose functions it enters."""

    def __init__(self, programs, jobs):
        self.cost, self.met = {}, {}
        listed = []
        for crate, program in programs:
            lines = subprocess.run([program, "--list", "--format=terse"], capture_output=True, text=True).stdout
            names = (line.removesuffix(": test") for line in lines.splitlines() if line.endswith(": test"))
            listed += [(crate, program, name) for name in names]
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(self.measure, listed))

    def measure(self, test):
        crate, program, name = test
        file = WORK / "log" / f"met-{abs(hash(test))}"
        file.unlink(missing_ok=True)
        ended, used, said = execute(crate, program, (name,), {"FAULTS_MET": str(file)}, 600)
        if ended != "passed":
            sys.exit(f"{name} {ended} without a fault:\n{said[-3000:]}")
        key = crate, stem(program), name
        self.cost[key] = used
        self.met[key] = set(map(int, file.read_text().split())) if file.exists() else set()
        file.unlink(missing_ok=True)

    def groups(self, fault):
        """The tests that enter a fault's function, by cost: two seconds at a time, after ten one by one."""
        enters = lambda test: test[0] == fault.judge and (not fault.is_noted or fault.number in self.met[test])
        order = sorted(filter(enters, self.cost), key=self.cost.get)
        groups, total = [], 0
        for test in order:
            total += self.cost[test]
            stage = min(int(total) // 2, 4) if total < 10 else 5
            same = groups and groups[-1][0] == (stage, test[1]) and stage < 5
            if same:
                groups[-1][1].append(test)
            else:
                groups.append(((stage, test[1]), [test]))
        return [tests for _, tests in groups]

    def judge(self, fault, programs):
        built = {(crate, stem(program)): program for crate, program in programs}
        spent = 0.0
        for group in self.groups(fault):
            expected = sum(self.cost[test] for test in group)
            limit = int(10 + 5 * expected)
            names = tuple(name for _, _, name in group)
            crate, program, _ = group[0]
            ended, used, said = execute(crate, built[crate, program], names, {"FAULT": str(fault.number)}, limit)
            spent += used
            if ended != "passed":
                failed = re.search(r"^test (\S+) .*FAILED$", said, re.MULTILINE)
                by = failed[1] if failed else f"one of {', '.join(names[:3])}"
                return ("found" if ended == "failed" else "no end"), by, spent
        entered = bool(self.groups(fault))
        return "missed", "" if entered else "no test enters the function", spent


def judge_crate(crate, jobs):
    began = time.monotonic()
    faults = sample(crate)
    report = open(WORK / f"{crate}.txt", "w")
    print(f"== {crate}: {len(faults)} faults", flush=True)
    counts = collections.Counter()

    def note(fault, verdict, by, spent):
        counts[verdict] += 1
        line = f"{verdict:10} {fault.name}" + (f"  ({by})" if by else "") + f"  {spent:.1f} s"
        print(line, flush=True)
        print(line, file=report, flush=True)

    if not faults:
        return counts
    crates = sorted({fault.judge for fault in faults})
    programs = build_switched(crate, crates, faults)
    print(f"built after {time.monotonic() - began:.0f} s", flush=True)
    tests = Tests(programs, jobs)
    total = sum(tests.cost.values())
    print(f"{len(tests.cost)} tests take {total:.0f} s of CPU time; {time.monotonic() - began:.0f} s", flush=True)
    for name, cost in sorted(tests.cost.items(), key=lambda item: -item[1])[:5]:
        print(f"    {cost:.1f} s {name[2]}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(tests.judge, f, programs): f for f in faults if f.is_switched}
        for done in concurrent.futures.as_completed(running):
            note(running[done], *done.result())
    for fault in faults:
        if fault.is_switched:
            continue
        text = FILES[fault.file].decode()
        write({fault.file: fault.apply(text, 0, len(text))})
        programs, errors = build([fault.judge])
        note(fault, *(("not viable", "", 0.0) if errors else tests.judge(fault, programs)))
    write({})
    print(f"{crate}: {dict(counts)}, {time.monotonic() - began:.0f} s", flush=True)
    return counts


def main():
    crates = sys.argv[1:] or os.environ.get("CRATES", "").split() or list(TARGETS)
    if not set(crates) <= set(TARGETS):
        sys.exit(__doc__)
    jobs = int(os.environ.get("JOBS", os.cpu_count()))
    (WORK / "log").mkdir(parents=True, exist_ok=True)
    lock = open(WORK / "lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit("another run uses target/mutants/tree")
    take_files()
    for stale in {path.relative_to(TREE) for path in TREE.glob("**/*.rs")} - {pathlib.Path(name) for name in FILES}:
        (TREE / stale).unlink()
    write({})
    version = subprocess.run([TOOL, "mutants", "--version"], capture_output=True, text=True) if TOOL.exists() else None
    if version is None or VERSION not in version.stdout:
        run(["cargo", "install", "--locked", "cargo-mutants", "--version", VERSION, "--root", ROOT / "target/tools"])
    counts = sum((judge_crate(crate, jobs) for crate in crates), collections.Counter())
    for crate in crates:
        for line in (WORK / f"{crate}.txt").read_text().splitlines():
            if line.startswith("missed"):
                print(f"not found: {line[10:].strip()}")
    # A test that no longer ends has found the fault.
    found = counts["found"] + counts["no end"]
    print(f"{found} of {found + counts['missed']} found, {counts['not viable']} do not compile")
    return 0 if found * 10 >= (found + counts["missed"]) * 9 else 1


if __name__ == "__main__":
    sys.exit(main())
