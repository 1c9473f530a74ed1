"""The stored artifact from Python: values, types, errors, threads, DLPack; nothing that grows."""

import asyncio
import gc
import os
import pathlib
import platform
import threading

import numpy as np
import pytest

import monopour

ARTIFACT = pathlib.Path(__file__).parents[2] / "tests/artifacts/version-8.mpr"
X = np.array([[1, 2, 3, 4], [0, -1, 0.5, 0]], np.float32)

# The artifact's native code is for one architecture.
native = pytest.mark.skipif(platform.machine() != "x86_64", reason="the stored artifact has native code for x86-64")


def expected(turns):
    weights = np.array([[1, 0, 0, 2], [0, 1, 0, 0], [0, 0, 1, 0], [3, 0, 0, 1]], np.float32)
    x = X
    for _ in range(turns):
        x = x @ weights
    return x


@pytest.fixture
def session():
    return monopour.Session(monopour.load(ARTIFACT, trust=True), monopour.Device("cpu"), threads=1)


def test_a_program_says_what_it_takes():
    program = monopour.load(ARTIFACT)
    assert [(info.name, info.dtype, info.shape) for info in program.inputs] == [
        ("arg0", "f32", (None, 4)),
        ("arg1", "index", ()),
    ]
    assert [info.name for info in program.results] == ["result0", "result1"]
    assert program.inputs[1].is_scalar and not program.inputs[0].is_donated
    assert program.targets == ["gpu:portable", "cpu:x86-64"] and program.entry == "main"
    assert "dispatch(0, " in program.host[0]
    assert monopour.Program.decode(ARTIFACT.read_bytes()).producer == program.producer
    assert monopour.__version__


@native
@pytest.mark.parametrize("host", ["auto", "native", "data"])
def test_a_thousand_runs_give_equal_values(host):
    program = monopour.load(ARTIFACT, trust=True)
    session = monopour.Session(program, monopour.Device("cpu"), threads=1, host=host)
    assert session.host == ("data" if host == "data" else "native")
    for run in range(1000):
        turns = 1 + run % 5
        results = session.run(X, turns)
        np.testing.assert_array_equal(results["result0"], expected(turns))
        assert results["result1"] == 100 // turns and results["result0"].dtype == np.float32
    stats = session.stats()
    assert set(stats["steady_state"].values()) == {0}


@native
def test_inputs_are_arrays_of_any_layout_numbers_and_tensors(session):
    for x in [X.tolist(), np.asfortranarray(X), X[::1], X[:, :], np.stack([X, X], axis=2)[:, :, 0]]:
        np.testing.assert_array_equal(session.run(arg1=1, arg0=x)["result0"], expected(1))
    first = session.run_tensors(X, np.int64(1))
    # A result goes in again by its interface, and by DLPack alone.
    np.testing.assert_array_equal(session.run(first["result0"], 1)["result0"], expected(2))

    class OnlyDlpack:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, **keywords):
            return self.tensor.__dlpack__(**keywords)

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

    np.testing.assert_array_equal(session.run(OnlyDlpack(first["result0"]), 1)["result0"], expected(2))


@native
def test_results_are_views_that_keep_their_memory(session):
    tensor = session.run_tensors(X, 1)["result0"]
    array, other = np.asarray(tensor), np.from_dlpack(tensor)
    assert array.__array_interface__["data"][0] == other.__array_interface__["data"][0], "no copy"
    assert not array.flags.writeable
    assert tensor.shape == (2, 4) and tensor.dtype == "f32"
    tensor.__dlpack__()  # A capsule that no one takes.
    del tensor
    gc.collect()
    for _ in range(20):
        session.run(X, 3)
    np.testing.assert_array_equal(array, expected(1))
    np.testing.assert_array_equal(other, expected(1))


def test_machine_code_needs_trust():
    program = monopour.load(ARTIFACT)
    assert not program.is_trusted
    with pytest.raises(monopour.Error) as error:
        monopour.Session(program, monopour.Device("cpu"))
    code, message, help = error.value.args
    assert code == "R0020" and "machine code" in message and help
    program.trust()
    assert program.is_trusted


@native
def test_errors_have_codes(session):
    def code(call):
        with pytest.raises(monopour.Error) as error:
            call()
        return error.value.args[0]

    assert code(lambda: monopour.load("/nonexistent.mpr")) == "P0007"
    assert code(lambda: monopour.Program.decode(b"text")) == "P0001"
    assert code(lambda: monopour.Device("no such device")) == "R0002"
    assert code(lambda: session.run(X.astype(np.float64), 1)) == "R0008"
    assert code(lambda: session.run(X, 0)) == "R0019"
    for wrong in [(X,), (X, 1, 2)]:
        with pytest.raises(TypeError):
            session.run(*wrong)
    with pytest.raises(TypeError):
        session.run(X, 1, arg0=X)
    with pytest.raises(TypeError):
        session.run(X, other=1)
    with pytest.raises(ValueError):
        session.run(X.astype(np.complex64), 1)
    with pytest.raises(ValueError):
        monopour.Session(session.program, session.device, host="magic")
    np.testing.assert_array_equal(session.run(X, 2)["result0"], expected(2))


@native
def test_other_threads_go_on_during_a_run(session):
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    session.run(X, 200_000)
    during = counted[0] - before
    done.set()
    thread.join()
    assert during > 1000, "the interpreter was held"


@native
def test_runs_can_be_awaited(session):
    async def both():
        return await asyncio.gather(session.run_async(X, 1), session.run_async(X, 2))

    first, second = asyncio.run(both())
    np.testing.assert_array_equal(first["result0"], expected(1))
    np.testing.assert_array_equal(second["result0"], expected(2))


@native
def test_sessions_share_a_model():
    model = monopour.Model(monopour.load(ARTIFACT, trust=True), monopour.Device("cpu"), host="data")
    sessions = [monopour.Session(model, threads=1) for _ in range(3)]
    for turns in range(1, 4):
        for session in sessions:
            assert session.model is model and session.host == model.host == "data"
            np.testing.assert_array_equal(session.run(X, turns)["result0"], expected(turns))
    assert model.used_bytes >= 0
    with pytest.raises(TypeError):
        monopour.Session(model, monopour.Device("cpu"))
    with pytest.raises(monopour.Error) as error:
        monopour.Session(monopour.Model(model.program, model.device, memory_limit=1), threads=1).run(X, 1)
    assert error.value.args[0] == "R0009"
    own = monopour.Session(model.program, model.device, threads=1)
    assert monopour.Session(own.model, threads=1).run(X, 50)["result1"] == 2


@native
def test_runs_are_in_flight(session):
    runs = [session.submit(X, turns) for turns in range(1, 6)]
    for turns, run in reversed(list(enumerate(runs, 1))):
        np.testing.assert_array_equal(run.wait(60)["result0"], expected(turns))
        assert run.is_done
    with pytest.raises(monopour.Error) as error:
        runs[0].wait()
    assert error.value.args[0] == "R0016"
    long = session.submit(X, 1_000_000)
    with pytest.raises(monopour.Error) as error:
        long.wait(timeout=0.005)
    assert error.value.args[0] == "R0024" and not long.is_done
    long.cancel()
    with pytest.raises(monopour.Error) as error:
        long.wait()
    assert error.value.args[0] == "R0025"
    with pytest.raises(ValueError):
        long.wait(float("inf"))
    np.testing.assert_array_equal(session.run(X, 2)["result0"], expected(2))


@native
def test_a_run_is_spread_over_frames(session):
    session.run(X, 7)
    dispatches = session.stats()["dispatches"]
    run, frames = session.begin(X, 7), 1
    while run.advance(2):
        assert not run.is_done
        frames += 1
    np.testing.assert_array_equal(run.wait()["result0"], expected(7))
    assert frames == (dispatches + 1) // 2


@native
def test_a_task_that_is_cancelled_cancels_its_run(session):
    async def give_up():
        run = session.submit(X, 1_000_000)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(run, 0.02)
        return run

    run = asyncio.run(give_up())
    assert run.is_done
    np.testing.assert_array_equal(session.run(X, 1)["result0"], expected(1))


def test_a_gpu_runs_without_trust():
    try:
        device = monopour.Device("gpu")
    except monopour.Error as error:
        assert os.environ.get("REQUIRE_GPU") != "1", error
        pytest.skip(str(error))
    session = monopour.Session(monopour.load(ARTIFACT), device)
    assert session.host == "data"
    np.testing.assert_array_equal(session.run(X, 3)["result0"], expected(3))
