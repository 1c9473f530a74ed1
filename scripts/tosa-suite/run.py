"""Run TOSA's own conformance tests: usage: run.py DIR cpu|gpu [--known FILE] [--bless] [--each 12] [ONLY]. Needs tosa-tools.

The tests of all ops come from the package's generator, with its selection of shapes and types, into DIR/tests (some minutes, once);
of each op `--each` are run, chosen by their names. The package's reference model computes what they should give, and its verifier
compares within the bounds of the specification. With `--known`, exit status 1 if others fail than the list says; `--bless` writes it.
ONLY is a part of names. The binary is MONOPOUR, or target/release/monopour."""
import argparse
import hashlib
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = pathlib.Path(sys.executable).parent
# Those of TOSA 1.0 but variables and floats of 8 bits.
EXTENSIONS = ["bf16", "controlflow", "doubleround", "inexactround", "int16", "int4", "fft"]
# Ops of later versions, and operands that `tosa-opt` does not read.
LATER = ["block_scaled", "_adaptive", "_shape", "matmul_t", "row_gather", "dim", "assert_"]
UNREAD = "_dyn"


def run(*words, **options):
    # The package looks for its programs and libraries along PATH.
    environment = {**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}", **options.pop("env", {})}
    subprocess.run(list(map(str, words)), check=True, env=environment, **options)


def write_tests(out):
    if (out / ".written").exists():
        return
    run(TOOLS / "tosa_verif_build_tests", "-o", out, "--tosa-version", "1.0.0", "--test-type", "positive",
        "--test-selection-criteria", "default", "--extension", *(f"tosa-ext-{e}" for e in EXTENSIONS))
    (out / ".written").touch()


def chosen(out, each, only):
    """The folders of `each` tests per op, the same on every machine."""
    tests = []
    for op in sorted(path for path in out.iterdir() if path.is_dir()):
        if any(part in op.name for part in LATER):
            continue
        names = [path.parent.name for path in op.glob("*/desc.json") if UNREAD not in path.parent.name]
        names.sort(key=lambda name: hashlib.sha256(name.encode()).digest())
        tests += [op / name for name in sorted(names[:each])]
    return [test for test in tests if only in test.name]


def failures(report):
    """Name and reason of the tests of `report` that failed, and the number of all."""
    found, count = {}, 0
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            if suite.get("name") != "monopour_tosa":
                continue
            count += 1
            failure = case.find("failure")
            if failure is not None:
                text = " ".join(((failure.get("message") or "") + " " + (failure.text or "")).split())
                found[pathlib.Path(case.get("name")).name] = text
    return found, count


def reason(text):
    """What the list says of a failure: no values, no places."""
    if "error[" in text:
        return text[text.index("error["):].split(" -->")[0].removesuffix(" help")
    if "Verifier" in text:
        return "beyond the bound of the specification: " + text.split("[Verifier]")[1].split("]")[0].strip("[")
    return text[:120]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("dir", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("device", choices=["cpu", "gpu"])
    parser.add_argument("only", nargs="?", default="")
    parser.add_argument("--known", type=pathlib.Path)
    parser.add_argument("--bless", action="store_true")
    parser.add_argument("--each", type=int, default=12)
    given = parser.parse_args()
    write_tests(given.dir / "tests")
    tests = chosen(given.dir / "tests", given.each, given.only)
    (given.dir / "chosen.txt").write_text("".join(f"{test}\n" for test in tests))
    report = given.dir / f"{given.device}.xml"
    binary = os.environ.get("MONOPOUR", HERE.parent.parent / "target/release/monopour")
    environment = {"MONOPOUR": str(pathlib.Path(binary).resolve()), "DEVICE": given.device, "PYTHONPATH": str(HERE)}
    with open(given.dir / f"{given.device}.log", "w") as log:
        run(TOOLS / "tosa_verif_run_tests", "-T", given.dir / "chosen.txt", "-s", "monopour_tosa", "-j", 2, "--no-color",
            "--xunit-file", report, env=environment, stdout=log, stderr=log)
    failed, count = failures(report)
    failed = {name: reason(text) for name, text in failed.items()}
    for name, why in sorted(failed.items()):
        print(f"FAIL {name}: {why}")
    print(f"{count - len(failed)} pass of {count} on the {given.device}")
    if given.known and given.bless:
        given.known.write_text("".join(f"{name}: {why}\n" for name, why in sorted(failed.items())))
    elif given.known:
        listed = {line.split(": ")[0] for line in given.known.read_text().splitlines()}
        names = {test.name for test in tests}
        new, gone = set(failed) - listed, (listed & names) - set(failed)
        for name in sorted(new):
            print(f"not in {given.known}: {name}")
        for name in sorted(gone):
            print(f"passes, but is in {given.known}: {name}")
        sys.exit(1 if new or gone or count < len(tests) else 0)


if __name__ == "__main__":
    main()
