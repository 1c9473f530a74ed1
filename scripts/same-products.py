#!/usr/bin/env python3
"""Whether two builds of monopour make the same of each program: for redesigns that must change nothing.

    same-products.py OLD NEW [FILE.mlir...]    binaries; all .mlir files of the repository if no file is named

Per program the kernels as WGSL and SPIR-V (gpu and gpu:portable), the native code (cpu:x86-64-v3), and the host's IR after
the last phase; where a build refuses, its message. Each line of output is a difference; the exit status is 1 if there is any.
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys

made = []  # products of OLD: of what is refused, only messages are compared
ROOT = pathlib.Path(__file__).resolve().parent.parent
PRODUCTS = [
    (target, product)
    for target, products in {
        "gpu": ["wgsl", "spirv", "object"],
        "gpu:portable": ["wgsl", "spirv", "object"],
        "cpu:x86-64-v3": ["schedule", "object"],
    }.items()
    for product in products
]


def make(binary, program, target, product):
    command = [binary, "compile", "-q", program, "--target", target, "--emit", product]
    run = subprocess.run(command, capture_output=True, timeout=600)
    return run.returncode, run.stdout, run.stderr


def differences(old, new, program):
    for target, product in PRODUCTS:
        before, after = (make(binary, program, target, product) for binary in (old, new))
        if before != after:
            what = "refused alike but with other words" if before[0] and after[0] else "differs"
            yield f"{program}: {product} for {target} {what} (status {before[0]} and {after[0]})"
        if before[0] == 0:
            made.append(product)


def main():
    old, new, *programs = sys.argv[1:]
    if not programs:
        listed = subprocess.run(["git", "ls-files", "*.mlir"], cwd=ROOT, capture_output=True, text=True, check=True)
        programs = [str(ROOT / line) for line in listed.stdout.split()]
    found = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for lines in pool.map(lambda program: list(differences(old, new, program)), programs):
            found += len(lines)
            print(*lines, sep="\n", end="\n" if lines else "")
    print(f"{len(programs)} programs, {len(made)} of {len(programs) * len(PRODUCTS)} products made: {found} differences")
    sys.exit(found > 0 or not made)


if __name__ == "__main__":
    main()
