#!/usr/bin/env python3
"""Copies and memory of the programs in benches/copies in XLA (through jax) and IREE, on CPUs, as a table in Markdown.

usage: copies_peers.py [--write docs/copy-elimination.md]
Needs jax, numpy and IREE's compiler (`pip install jax iree-base-compiler`); a peer that is not installed is left out.

XLA: the program in jax, its donated inputs donated. Copies are the `copy` instructions of the optimized HLO, those of a loop times its
trips; what fusions move is not counted. Fresh bytes are outputs besides donated inputs, and temporaries (`memory_analysis`).
IREE: the file itself, without donation. Copies are those of its schedule, one in a loop once; bytes are its transient memory, results
included (`--iree-scheduling-dump-statistics-format`)."""
import argparse
import importlib.metadata
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "benches" / "copies"
BEGIN, END = "<!-- peers: begin -->", "<!-- peers: end -->"
WIDTHS = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8}


def models():
    """By program: a function of jax arrays, the shapes of its inputs, and which are donated."""
    import jax
    from jax import lax
    from jax import numpy as jnp

    def sums(u):
        return u[:-2] + u[1:-1] + u[2:]

    def cache(rows):
        return lambda c, r, q: (lax.dynamic_update_slice(c, r, (512, 0)), c[:rows] @ q)

    def chunks(x, w, into):
        def step(i, t):
            part = lax.dynamic_slice(x, (64 * i, 0), (64, 64))
            return lax.dynamic_update_slice(t, part @ w, (64 * i, 0))

        return lax.fori_loop(0, 4, step, into)

    def jacobi(x, y):
        return lax.fori_loop(0, 10, lambda _, p: (p[1].at[1:-1].set(sums(p[0])), p[0]), (x, y))

    def layer_norm(x):
        less = x - jnp.sum(x, 1, keepdims=True) / 256
        return less * lax.rsqrt(jnp.sum(less * less, 1, keepdims=True) / 256 + 1e-5)

    def softmax(x):
        e = jnp.exp(x - jnp.max(x, 1, keepdims=True))
        return e / jnp.sum(e, 1, keepdims=True)

    def nest(x):
        def tile(i, j, t):
            p = lax.dynamic_slice(t, (128 * i, 128 * j), (128, 128))
            return lax.dynamic_update_slice(t, p + p, (128 * i, 128 * j))

        return lax.fori_loop(0, 2, lambda i, s: lax.fori_loop(0, 2, lambda j, t: tile(i, j, t), s), x)

    m, big, line = (256, 256), (512, 256), (4096,)
    append = [(1024, 128), (1, 128), (128,)]
    halves = [m, (64, 256), (64, 256)]
    chunk = [(256, 64), (64, 64), (256, 64)]
    return {
        "cache_append": (cache(512), append, [0]),
        "cache_append_twin": (cache(513), append, [0]),
        "chunked_product": (chunks, chunk, [2]),
        "chunked_product_twin": (lambda x, w, t: (chunks(x, w, t), jnp.exp(t)), chunk, [2]),
        "fan_out": (lambda x, a, b: x.at[0:64].set(a).at[128:192].set(b), halves, [0]),
        "fan_out_twin": (lambda x, a, b: (x.at[0:64].set(a), x.at[128:192].set(b)), halves, [0]),
        "jacobi": (jacobi, [line, line], [0, 1]),
        "layer_norm": (layer_norm, [big], [0]),
        "pad": (lambda x, a: jnp.pad(x @ a, ((1, 1), (4, 4))), [m, m], []),
        "qkv_concat": (lambda x, a, b, c: jnp.concatenate([x @ a, x @ b, x @ c], 1), [m] * 4, []),
        "residual": (lambda x, w: x + jnp.maximum(x @ w, 0) @ w, [m, m], [0]),
        "skip_concat": (lambda x, a: jnp.concatenate([x, x @ a], 1), [m, m], []),
        "softmax": (softmax, [big], [0]),
        "softmax_twin": (lambda x: x + softmax(x), [big], [0]),
        "stencil": (lambda x, y: y.at[1:-1].set(sums(x)), [line, line], [1]),
        "stencil_twin": (lambda x: x.at[1:-1].set(sums(x)), [line], [0]),
        "tiled_nest": (nest, [m], [0]),
    }


def computations(hlo):
    """The lines of each computation of a module, and the name of the entry."""
    found, entry, lines = {}, None, None
    for line in hlo.splitlines():
        head = re.match(r"(ENTRY )?%?([\w.-]+) .*\{$", line)
        if head and not line.startswith(" "):
            lines = found.setdefault(head[2], [])
            entry = head[2] if head[1] else entry
        elif lines is not None:
            lines.append(line)
    return found, entry


def copies_of(found, name, trips=1):
    """How many copies a computation runs, and the bytes that they copy."""
    count = bytes_ = 0
    for line in found.get(name, []):
        copied = re.search(r"= (\w+)\[([\d,]*)\]\S* copy\(", line)
        if copied:
            size = WIDTHS[copied[1]]
            for extent in filter(None, copied[2].split(",")):
                size *= int(extent)
            count, bytes_ = count + trips, bytes_ + trips * size
        body = re.search(r" while\(.*body=%?([\w.-]+)", line)
        times = re.search(r'"known_trip_count":\{"n":"(\d+)"', line)
        for callee in [body[1]] if body else re.findall(r" (?:call|conditional)\(.*(?:to_apply|calls)=%?([\w.-]+)", line):
            more = copies_of(found, callee, trips * (int(times[1]) if times else 1))
            count, bytes_ = count + more[0], bytes_ + more[1]
    return count, bytes_


def xla():
    """By program: copies, bytes copied, fresh bytes."""
    import jax
    from jax import numpy as jnp

    jax.config.update("jax_platforms", "cpu")
    rows = {}
    for name, (function, shapes, donated) in models().items():
        arguments = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
        compiled = jax.jit(function, donate_argnums=donated).lower(*arguments).compile()
        memory = compiled.memory_analysis()
        fresh = memory.output_size_in_bytes - memory.alias_size_in_bytes + memory.temp_size_in_bytes
        rows[name] = (*copies_of(*computations(compiled.as_text())), fresh)
    return rows


def iree(compiler):
    """By program: copies of the schedule, bytes of transients."""
    rows = {}
    for path in sorted(PROGRAMS.glob("*.mlir")):
        text = path.read_text().replace(" {monopour.donate}", "")
        with tempfile.NamedTemporaryFile("w", suffix=".mlir") as program:
            program.write(text)
            program.flush()
            command = [compiler, program.name, "-o", "/dev/null", "--iree-hal-target-device=local"]
            command += ["--iree-hal-local-target-device-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=generic"]
            command += ["--iree-scheduling-dump-statistics-format=json", "--iree-scheduling-dump-statistics-file=-"]
            done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{path.stem}: IREE refuses it: {done.stderr.splitlines()[:1]}", file=sys.stderr)
            rows[path.stem] = ("refused", "refused")
            continue
        text = done.stdout + done.stderr
        statistics, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
        execution = statistics["stream-aggregate"]["execution"]
        rows[path.stem] = (execution["copy-count"], execution["transient-memory-size"])
    return rows


def peers():
    """The names of those installed, and their rows."""
    found = {}
    try:
        found[f"XLA (jax {importlib.metadata.version('jax')}, CPU)"] = (("copies", "bytes copied", "fresh bytes"), xla())
    except ImportError:
        print("jax is not installed", file=sys.stderr)
    compiler = shutil.which("iree-compile") or str(pathlib.Path(sys.executable).parent / "iree-compile")
    if pathlib.Path(compiler).exists():
        version = re.search(r"version (\S+)", subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout)
        found[f"IREE ({version[1] if version else 'unknown'}, llvm-cpu)"] = (("copies listed", "transient bytes"), iree(compiler))
    else:
        print("iree-compile is not installed", file=sys.stderr)
    return found


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--write", help="a document in which the table takes the place between its marks")
    write = arguments.parse_args().write
    found = peers()
    titles = [f"{peer}: {column}" for peer, (columns, _) in found.items() for column in columns]
    lines = ["| program | " + " | ".join(titles) + " |", "|---|" + "---:|" * len(titles)]
    for name in sorted(path.stem for path in PROGRAMS.glob("*.mlir")):
        cells = [cell for columns, rows in found.values() for cell in rows.get(name, ["-"] * len(columns))]
        lines.append(f"| {name} | " + " | ".join(map(str, cells)) + " |")
    table = "\n".join(lines)
    print(table)
    if write:
        document = pathlib.Path(write).read_text()
        before, after = document.split(BEGIN)[0], document.split(END)[1]
        pathlib.Path(write).write_text(f"{before}{BEGIN}\n{table}\n{END}{after}")


if __name__ == "__main__":
    main()
