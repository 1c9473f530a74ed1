#!/usr/bin/env python3
"""Writes the weights of mlp.mlir beside it: seeded, scaled so that activations keep their size. Needs nothing but Python."""
import json
import pathlib
import random
import struct

WIDTHS = [784, 512, 256, 10]


def main():
    rng = random.Random(0)
    header, data = {}, b""
    for layer, (k, n) in enumerate(zip(WIDTHS, WIDTHS[1:])):
        scale = (2 / k) ** 0.5
        for name, shape, values in (
            (f"w{layer}", [k, n], [rng.gauss(0, scale) for _ in range(k * n)]),
            (f"b{layer}", [n], [rng.gauss(0, 0.1) for _ in range(n)]),
        ):
            begin = len(data)
            data += struct.pack(f"<{len(values)}f", *values)
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path = pathlib.Path(__file__).with_name("mlp.safetensors")
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    main()
