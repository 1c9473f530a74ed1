"""400 MB of weights: the memory of a compilation, and the values of what it makes.

    python scripts/embedding/weights.py MONOPOUR MLIR_OPT FOLDER

The environment has the wheel and numpy. Leaves cpu.mpr in the folder. Exit status 1: a bound or a value does not hold.
"""

import multiprocessing
import os
import subprocess
import sys
import time

import monopour
import numpy as np

K, N = 4096, 5120
SHAPES = [(K, N), (N, K), (K, N), (N, K), (K, N)]
WEIGHT_BYTES = sum(4 * rows * columns for rows, columns in SHAPES)


def weights():
    random = np.random.default_rng(1)
    return [random.random(shape, np.float32) / shape[0] for shape in SHAPES]


def write(path, values):
    """A chain of products of one row; the weights are resources."""
    lines = [f"func.func @main(%x0: tensor<1x{K}xf32>) -> tensor<1x{N}xf32> {{", "  %zero = arith.constant 0.0 : f32"]
    for at, (rows, columns) in enumerate(SHAPES):
        out = f"tensor<1x{columns}xf32>"
        lines += [
            f"  %w{at} = arith.constant dense_resource<w{at}> : tensor<{rows}x{columns}xf32>",
            f"  %e{at} = tensor.empty() : {out}",
            f"  %f{at} = linalg.fill ins(%zero : f32) outs(%e{at} : {out}) -> {out}",
            f"  %x{at + 1} = linalg.matmul ins(%x{at}, %w{at} : tensor<1x{rows}xf32>, tensor<{rows}x{columns}xf32>)"
            f" outs(%f{at} : {out}) -> {out}",
        ]
    lines += [f"  return %x{len(SHAPES)} : tensor<1x{N}xf32>", "}", "{-# dialect_resources: { builtin: {"]
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")
        for at, value in enumerate(values):
            # The first word is the alignment.
            file.write(f'    w{at}: "0x04000000{value.tobytes().hex()}"' + (",\n" if at + 1 < len(values) else "\n"))
        file.write("  } } #-}\n")


def peak_of(line):
    """Seconds and most resident bytes of a process."""
    start = time.perf_counter()
    process = subprocess.Popen(line)
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"{line} failed")
    return time.perf_counter() - start, usage.ru_maxrss * 1024


def main(binary, mlir_opt, folder):
    os.makedirs(folder, exist_ok=True)
    text, model = os.path.join(folder, "weights.mlir"), os.path.join(folder, "weights.mlirbc")
    # A process begins with the most memory that the one had that started it.
    writer = multiprocessing.Process(target=lambda: write(text, weights()))
    writer.start()
    writer.join()
    subprocess.run([mlir_opt, text, "--emit-bytecode", "-o", model], check=True)
    os.remove(text)
    bound = 1.1 * WEIGHT_BYTES + 150e6
    good = True
    for target in ["gpu:portable", "cpu"]:
        path = os.path.join(folder, f"{target.split(':')[0]}.mpr")
        seconds, peak = peak_of([binary, "compile", model, "-o", path, "--target", target])
        good &= peak <= bound
        print(f"compile for {target}: {peak / 1e6:.0f} MB at most, bound {bound / 1e6:.0f}; {seconds:.1f} s", flush=True)
    program = monopour.load(os.path.join(folder, "cpu.mpr"), trust=True)
    session = monopour.Session(program, monopour.Device("cpu"))
    row = np.ones((1, K), np.float32)
    expected = row.astype(np.float64)
    for value in weights():
        expected = expected @ value
    (got,) = session.run(row).values()
    worst = np.abs(got - expected).max() / np.abs(expected).max()
    good &= bool(worst < 1e-5)
    print(f"values within {worst:.1e} of f64")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
