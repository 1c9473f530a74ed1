#!/usr/bin/env python3
"""Models of many layers, and what compiling them costs.

    whole_models.py chain N             N products with tanh, all of one size
    whole_models.py chain N --different the same with sizes that differ
    whole_models.py transformer [N]     N layers (12): 12 heads, 768 wide, 128 tokens, MLP of 3072, gelu by tanh
    whole_models.py measure MONOPOUR [--max N]
                                        tables in Markdown: CPU time of each phase and its growth from N to 2N layers, artifacts, kernels

Weights are inputs, so that a program is text alone; `monopour run FILE --random 1` makes some up.
"""
import argparse
import os
import re
import subprocess
import tempfile

ROWS = 32


class Program:
    """MLIR text, one op after the other."""

    def __init__(self, inputs):
        self.args, self.lines, self.next = [], [], 0
        self.inputs = [self.arg(shape) for shape in inputs]
        self.zero = self.op("arith.constant 0.0 : f32")

    def arg(self, shape):
        name = f"%a{len(self.args)}"
        self.args.append(f"{name}: {tensor(shape)}")
        return name, shape

    def op(self, text):
        name = f"%v{self.next}"
        self.next += 1
        self.lines.append(f"  {name} = {text}")
        return name

    def empty(self, shape):
        return self.op(f"tensor.empty() : {tensor(shape)}")

    def filled(self, shape, value=None):
        ty = tensor(shape)
        return self.op(f"linalg.fill ins({value or self.zero} : f32) outs({self.empty(shape)} : {ty}) -> {ty}")

    def product(self, a, b, shape, name="linalg.matmul"):
        ty = tensor(shape)
        types = f"{tensor(a[1])}, {tensor(b[1])}"
        return self.op(f"{name} ins({a[0]}, {b[0]} : {types}) outs({self.filled(shape)} : {ty}) -> {ty}"), shape

    def generic(self, inputs, maps, shape, body, init=None, reduced=()):
        """`inputs` are (value, shape); `maps` one list of dimensions per input and one for the result."""
        dims = max(d for m in maps for d in m) + 1
        names = [f"d{d}" for d in range(dims)]
        affine = [f"affine_map<({', '.join(names)}) -> ({', '.join(names[d] for d in m)})>" for m in maps]
        kinds = ", ".join('"reduction"' if d in reduced else '"parallel"' for d in range(dims))
        out = init or self.empty(shape)
        args = ", ".join([f"%i{i}: f32" for i in range(len(inputs))] + ["%o: f32"])
        ty = tensor(shape)
        self.next += 1
        name = f"%v{self.next - 1}"
        values = ", ".join(v for v, _ in inputs)
        types = ", ".join(tensor(s) for _, s in inputs)
        self.lines.append(
            f"  {name} = linalg.generic {{indexing_maps = [{', '.join(affine)}], iterator_types = [{kinds}]}} "
            f"ins({values} : {types}) outs({out} : {ty}) {{\n  ^bb0({args}):\n"
            + "".join(f"    {line}\n" for line in body)
            + f"  }} -> {ty}"
        )
        return name, shape

    def text(self, result):
        ty = tensor(result[1])
        body = "\n".join(self.lines)
        return f"func.func @main({', '.join(self.args)}) -> {ty} {{\n{body}\n  return {result[0]} : {ty}\n}}\n"


def tensor(shape):
    return "tensor<" + "".join(f"{n}x" for n in shape) + "f32>"


def walk(steps):
    """Sizes of which no two neighbours come twice in the same order, for up to 506 steps; their mean is always the same."""
    places, prime = [0], 23
    for i in range(steps):
        places.append((places[-1] + 1 + i // prime) % prime)
    return [32 + 4 * place for place in places]


def chain(layers, different):
    sizes = walk(layers) if different else [64] * (layers + 1)
    p = Program([(ROWS, sizes[0])])
    x = p.inputs[0]
    for inner, outer in zip(sizes, sizes[1:]):
        y = p.product(x, p.arg((inner, outer)), (ROWS, outer))
        ty = tensor(y[1])
        x = p.op(f"linalg.tanh ins({y[0]} : {ty}) outs({p.empty(y[1])} : {ty}) -> {ty}"), y[1]
    return p.text(x)


def layer_norm(p, x, scale, shift):
    rows, width = x[1]
    whole, row, column = [0, 1], [0], [1]
    total = p.generic([x], [whole, row], (rows,), ["%s = arith.addf %i0, %o : f32", "linalg.yield %s : f32"],
                      p.filled((rows,)), [1])
    squares = p.generic(
        [x, total], [whole, row, row], (rows,),
        [f"%n = arith.constant {width}.0 : f32", "%m = arith.divf %i1, %n : f32", "%d = arith.subf %i0, %m : f32",
         "%q = arith.mulf %d, %d : f32", "%s = arith.addf %q, %o : f32", "linalg.yield %s : f32"],
        p.filled((rows,)), [1])
    return p.generic(
        [x, total, squares, scale, shift], [whole, row, row, column, column, whole], x[1],
        [f"%n = arith.constant {width}.0 : f32", "%e = arith.constant 1.0e-5 : f32", "%m = arith.divf %i1, %n : f32",
         "%d = arith.subf %i0, %m : f32", "%v = arith.divf %i2, %n : f32", "%w = arith.addf %v, %e : f32",
         "%r = math.rsqrt %w : f32", "%t = arith.mulf %d, %r : f32", "%u = arith.mulf %t, %i3 : f32",
         "%y = arith.addf %u, %i4 : f32", "linalg.yield %y : f32"])


def add(p, x, y, along=None):
    whole = list(range(len(x[1])))
    return p.generic([x, y], [whole, along or whole, whole], x[1],
                     ["%s = arith.addf %i0, %i1 : f32", "linalg.yield %s : f32"])


def dense(p, x, width):
    w, b = p.arg((x[1][1], width)), p.arg((width,))
    return add(p, p.product(x, w, (x[1][0], width)), b, [1])


def gelu(p, x):
    return p.generic(
        [x], [[0, 1], [0, 1]], x[1],
        ["%a = arith.constant 0.044715 : f32", "%b = arith.constant 0.7978846 : f32", "%h = arith.constant 0.5 : f32",
         "%c1 = arith.constant 1.0 : f32", "%q = arith.mulf %i0, %i0 : f32", "%k = arith.mulf %q, %i0 : f32",
         "%l = arith.mulf %k, %a : f32", "%m = arith.addf %i0, %l : f32", "%n = arith.mulf %m, %b : f32",
         "%t = math.tanh %n : f32", "%u = arith.addf %t, %c1 : f32", "%v = arith.mulf %u, %i0 : f32",
         "%y = arith.mulf %v, %h : f32", "linalg.yield %y : f32"])


def softmax(p, x, scale):
    whole, row = [0, 1, 2], [0, 1]
    rows = x[1][:2]
    x = p.generic([x], [whole, whole], x[1],
                  [f"%k = arith.constant {scale} : f32", "%y = arith.mulf %i0, %k : f32", "linalg.yield %y : f32"])
    least = p.op("arith.constant 0xFF800000 : f32")
    top = p.generic([x], [whole, row], rows, ["%m = arith.maximumf %i0, %o : f32", "linalg.yield %m : f32"],
                    p.filled(rows, least), [2])
    e = p.generic([x, top], [whole, row, whole], x[1],
                  ["%d = arith.subf %i0, %i1 : f32", "%e = math.exp %d : f32", "linalg.yield %e : f32"])
    total = p.generic([e], [whole, row], rows, ["%s = arith.addf %i0, %o : f32", "linalg.yield %s : f32"],
                      p.filled(rows), [2])
    return p.generic([e, total], [whole, row, whole], x[1],
                     ["%y = arith.divf %i0, %i1 : f32", "linalg.yield %y : f32"])


def heads_of(p, x, heads, first):
    """Columns `first` .. of the joint projection as heads x tokens x width."""
    tokens, width = x[1][0], x[1][1] // 3
    part = p.op(f"tensor.extract_slice {x[0]}[0, {first}] [{tokens}, {width}] [1, 1] "
                f": {tensor(x[1])} to {tensor((tokens, width))}")
    apart = (tokens, heads, width // heads)
    part = p.op(f"tensor.expand_shape {part} [[0], [1, 2]] output_shape [{tokens}, {heads}, {width // heads}] "
                f": {tensor((tokens, width))} into {tensor(apart)}")
    return transposed(p, (part, apart), [1, 0, 2])


def transposed(p, x, order):
    shape = tuple(x[1][d] for d in order)
    ty = tensor(shape)
    return p.op(f"linalg.transpose ins({x[0]} : {tensor(x[1])}) outs({p.empty(shape)} : {ty}) "
                f"permutation = {order}"), shape


def attention(p, x, heads):
    tokens, width = x[1]
    joint = dense(p, x, 3 * width)
    q, k, v = (heads_of(p, joint, heads, i * width) for i in range(3))
    scores = p.product(q, transposed(p, k, [0, 2, 1]), (heads, tokens, tokens), "linalg.batch_matmul")
    weights = softmax(p, scores, (width // heads) ** -0.5)
    mixed = p.product(weights, v, (heads, tokens, width // heads), "linalg.batch_matmul")
    mixed = transposed(p, mixed, [1, 0, 2])
    flat = p.op(f"tensor.collapse_shape {mixed[0]} [[0], [1, 2]] : {tensor(mixed[1])} into {tensor(x[1])}")
    return dense(p, (flat, x[1]), width)


def transformer(layers, tokens=128, width=768, heads=12):
    p = Program([(tokens, width)])
    x = p.inputs[0]
    norm = lambda x: layer_norm(p, x, p.arg((width,)), p.arg((width,)))
    for _ in range(layers):
        x = add(p, x, attention(p, norm(x), heads))
        x = add(p, x, dense(p, gelu(p, dense(p, norm(x), 4 * width)), width))
    return p.text(norm(x))


PHASE = re.compile(r"^(\w+)\s+\w+\s+[\d.]+ ms\s+([\d.]+) ms cpu$", re.M)


def compile_once(monopour, text, target, folder):
    model, artifact = os.path.join(folder, "model.mlir"), os.path.join(folder, "model.mpr")
    with open(model, "w") as file:
        file.write(text)
    command = [monopour, "compile", model, "-o", artifact, "--target", target, "--time-phases"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    phases = {name: float(ms) for name, ms in PHASE.findall(done.stderr)}
    inspected = subprocess.run([monopour, "inspect", artifact], capture_output=True, text=True, check=True).stdout
    dispatches, kernels = re.search(r"(\d+) dispatches of (\d+) kernels", inspected).groups()
    return phases, os.path.getsize(artifact), int(dispatches), int(kernels)


def least_of(runs):
    """Phase by phase, the least CPU time: what others do on the machine, and in its caches, only adds."""
    return {name: min(run[name] for run in runs) for name in runs[0]}


def measure(monopour, most, turns):
    sizes = [25 * 2**i for i in range(12) if 25 * 2**i <= most]
    chains = [f"chain {n}" for n in sizes]
    models = {name: chain(n, False) for name, n in zip(chains, sizes)}
    models |= {f"chain {n}, different": chain(n, True) for n in (100, 400) if n <= most}
    models["transformer 12"] = transformer(12)
    with tempfile.TemporaryDirectory() as folder:
        for target in ("cpu", "gpu:portable", "gpu"):
            # In turns, so that a slow minute meets every size.
            runs = {name: [] for name in models}
            for turn in range(turns):
                for name, text in models.items():
                    # What takes half a minute runs less often.
                    if turn < 3 or name in chains:
                        runs[name].append(compile_once(monopour, text, target, folder))
            phases = {name: least_of([run[0] for run in each]) for name, each in runs.items()}
            for each in phases.values():
                each["sum"] = sum(each.values())
            heading = list(phases[chains[0]])
            print(f"\n`--target {target}`, ms of CPU time (least of {turns}):\n")
            print("| model | " + " | ".join(heading) + " | artifact, KB | dispatches | kernels |")
            print("|---" * (len(heading) + 4) + "|")
            for name, each in phases.items():
                size, dispatches, kernels = runs[name][0][1:]
                times = " | ".join(f"{each[phase]:.1f}" for phase in heading)
                print(f"| {name} | {times} | {size / 1000:.0f} | {dispatches} | {kernels} |")
            for fewer, more in zip(chains, chains[1:]):
                # Of less than 0.05 ms nothing can be said.
                pairs = [(phases[fewer][phase], phases[more][phase]) for phase in heading]
                growth = " | ".join(f"{b / a:.2f}" if a >= 0.05 else "" for a, b in pairs)
                print(f"| {more} over {fewer} | {growth} | | | |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("chain")
    one.add_argument("layers", type=int)
    one.add_argument("--different", action="store_true")
    one = commands.add_parser("transformer")
    one.add_argument("layers", type=int, nargs="?", default=12)
    one = commands.add_parser("measure")
    one.add_argument("monopour")
    one.add_argument("--max", type=int, default=1600)
    one.add_argument("--turns", type=int, default=9)
    args = parser.parse_args()
    if args.command == "chain":
        print(chain(args.layers, args.different), end="")
    elif args.command == "transformer":
        print(transformer(args.layers), end="")
    else:
        measure(args.monopour, args.max, args.turns)


if __name__ == "__main__":
    main()
