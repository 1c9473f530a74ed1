"""Runs compiled tensor programs (.mpr) on GPUs and CPUs.

    import monopour, numpy as np
    program = monopour.load("mlp.mpr", trust=True)
    session = monopour.Session(program, monopour.Device("auto"))
    results = session.run(x=np.zeros((64, 784), np.float32))    # or session.run(array, ...), in the order of the inputs

A program from a file is not trusted: it runs on GPUs only, with validated kernels. `trust=True` lets its machine code run.
"""

import asyncio as _asyncio
import json as _json
import os as _os

import numpy as _np

from . import _native
from ._native import Device, Error, Program, Tensor, TensorInfo, __version__

__all__ = ["Device", "Error", "Program", "Session", "Tensor", "TensorInfo", "__version__", "load"]

_DTYPES = {
    "f16": "<f2", "f32": "<f4", "f64": "<f8", "i1": "|b1", "i8": "|i1", "i16": "<i2", "i32": "<i4", "i64": "<i8",
    "index": "<i8", "ui8": "|u1", "ui16": "<u2", "ui32": "<u4", "ui64": "<u8",
}


def load(path, *, trust=False):
    """Opens an artifact. With `trust` its machine code may run in this process: only for files that you know the origin of."""
    program = Program.open(_os.fspath(path))
    if trust:
        program.trust()
    return program


def _array(value, info):
    """What `value` holds as a contiguous array; a Python number in the type of its input."""
    if hasattr(value, "__array_interface__") or hasattr(value, "__array__"):
        array = _np.asarray(value)
    elif hasattr(value, "__dlpack__"):
        array = _np.from_dlpack(value)
    else:
        array = _np.asarray(value, dtype=_DTYPES.get(info.dtype))
    # Of a single element NumPy makes a row.
    return array if array.flags.c_contiguous else _np.ascontiguousarray(array)


class Session:
    """A program on a device. Threads may share a session: one runs at a time, and none holds the interpreter meanwhile."""

    def __init__(self, program, device=None, *, threads=0, memory_limit=None, host="auto", host_steps=None):
        device = Device() if device is None else device
        self._session = _native.Session(program, device, threads, host, (memory_limit, host_steps))
        self.program = program
        self.device = device

    @property
    def host(self):
        """The form of the host function that runs: `native` or `data`."""
        return self._session.host

    def run(self, *inputs, **named):
        """Runs on arrays, by position or by name. Returns the results by name, as read-only arrays.

        An input is a NumPy array, an object with `__array__` or `__dlpack__` in the memory of the host, or a number.
        """
        tensors = self._session.run(self._in_order(inputs, named))
        names = [result.name for result in self.program.results]
        return {name: _np.asarray(tensor) for name, tensor in zip(names, tensors)}

    async def run_async(self, *inputs, **named):
        """As `run`, in a thread."""
        return await _asyncio.to_thread(self.run, *inputs, **named)

    def run_tensors(self, *inputs, **named):
        """As `run`; the results are tensors, for `from_dlpack` of other libraries."""
        tensors = self._session.run(self._in_order(inputs, named))
        return {result.name: tensor for result, tensor in zip(self.program.results, tensors)}

    def stats(self):
        """What the runs so far cost: the object that `monopour run --stats=json` prints."""
        return _json.loads(self._session.stats())

    def _in_order(self, inputs, named):
        infos = self.program.inputs
        if len(inputs) > len(infos):
            raise TypeError(f"the program takes {len(infos)} inputs, {len(inputs)} given")
        values = dict(zip((info.name for info in infos), inputs))
        for name, value in named.items():
            if name in values:
                raise TypeError(f"input `{name}` is given twice")
            if all(name != info.name for info in infos):
                raise TypeError(f"no input is named `{name}`; there are {', '.join(info.name for info in infos)}")
            values[name] = value
        missing = [info.name for info in infos if info.name not in values]
        if missing:
            raise TypeError(f"inputs are missing: {', '.join(missing)}")
        return [_array(values[info.name], info) for info in infos]
