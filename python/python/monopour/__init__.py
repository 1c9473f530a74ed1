"""Runs compiled tensor programs (.mpr) on GPUs and CPUs.

    import monopour, numpy as np
    program = monopour.load("mlp.mpr", trust=True)
    session = monopour.Session(program, monopour.Device("auto"))
    results = session.run(x=np.zeros((64, 784), np.float32))    # or session.run(array, ...), in the order of the inputs
    results = await session.submit(array)                       # or run = session.submit(array); run.wait(timeout)

A program from a file is not trusted: it runs on GPUs only, with validated kernels. `trust=True` lets its machine code run.
"""

import asyncio as _asyncio
import json as _json
import os as _os

import numpy as _np

from . import _native
from ._native import Device, Error, Program, Tensor, TensorInfo, __version__

__all__ = ["Device", "Error", "Model", "Program", "Run", "Session", "Tensor", "TensorInfo", "__version__", "load"]

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


class Model:
    """A program on a device: kernels and constants are there once, for any number of sessions on any threads."""

    def __init__(self, program, device=None, *, memory_limit=None, host="auto"):
        self.program = program
        self.device = Device() if device is None else device
        self._model = _native.Model(program, self.device, host, memory_limit)

    @classmethod
    def _of(cls, program, device, native):
        model = cls.__new__(cls)
        model.program, model.device, model._model = program, device, native
        return model

    @property
    def host(self):
        """The form of the host function that runs: `native` or `data`."""
        return self._model.host

    @property
    def used_bytes(self):
        """Bytes that the model and all of its sessions hold on the device."""
        return self._model.used_bytes


class Run:
    """A run in flight. `await run` gives what `wait` returns; a task that is cancelled meanwhile cancels the run."""

    def __init__(self, run, names):
        self._run = run
        self._names = names

    def wait(self, timeout=None):
        """The results by name, as read-only arrays; they can be taken once. After `timeout` seconds it raises R0024,
        and the run goes on. The interpreter is free meanwhile."""
        return {name: _np.asarray(tensor) for name, tensor in zip(self._names, self._run.wait(timeout))}

    def __await__(self):
        return self._awaited().__await__()

    async def _awaited(self):
        try:
            return await _asyncio.to_thread(self.wait)
        except _asyncio.CancelledError:
            self.cancel()
            raise

    def cancel(self):
        """Ends the run, and returns at once; `wait` then raises R0025."""
        self._run.cancel()

    def advance(self, dispatches):
        """Lets a run of `Session.begin` make so many dispatches more. Whether some may be left; if not, `wait` is
        next."""
        return self._run.advance(dispatches)

    @property
    def is_done(self):
        """Whether `wait` would return at once."""
        return self._run.is_done


class Session:
    """The memory of a model's runs. Threads may share it: one call runs at a time, and none holds the interpreter.

    Of a program it makes a model of its own; `device` and `host` then say where and how. Several sessions of one
    `Model` share its kernels and constants."""

    def __init__(self, model, device=None, *, threads=0, memory_limit=None, host=None, host_steps=None):
        limits = (memory_limit, host_steps)
        if not isinstance(model, Model):
            program, device = model, Device() if device is None else device
            self._session = _native.Session.load(program, device, threads, host or "auto", limits)
            model = Model._of(program, device, self._session.model)
        elif device is not None or host is not None:
            raise TypeError("a model has its device and its form of the host function")
        else:
            self._session = _native.Session(model._model, threads, limits)
        self.model = model
        self.program = model.program
        self.device = model.device

    @property
    def host(self):
        """The form of the host function that runs: `native` or `data`."""
        return self.model.host

    def run(self, *inputs, **named):
        """Runs on arrays, by position or by name. Returns the results by name, as read-only arrays.

        An input is a NumPy array, an object with `__array__` or `__dlpack__` in the memory of the host, or a number.
        """
        tensors = self._session.run(self._in_order(inputs, named))
        names = [result.name for result in self.program.results]
        return {name: _np.asarray(tensor) for name, tensor in zip(names, tensors)}

    async def run_async(self, *inputs, **named):
        """As `run`, awaited: `await session.submit(...)`."""
        return await self.submit(*inputs, **named)

    def submit(self, *inputs, **named):
        """Hands a run over, and returns at once. Runs of a session run in order."""
        return self._handed_over(inputs, named, False)

    def begin(self, *inputs, **named):
        """As `submit`, for a run that is spread over time: it makes no dispatch but those that `Run.advance` allows. The
        next call of the session, or a wait for the run, lets it go on to its end."""
        return self._handed_over(inputs, named, True)

    def _handed_over(self, inputs, named, begins):
        run = self._session.submit(self._in_order(inputs, named), begins)
        return Run(run, [result.name for result in self.program.results])

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
