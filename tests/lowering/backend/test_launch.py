"""Which function is called to launch, and with what around the kernel's arguments."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace

import pytest
import triton

from tritonfuser.lowering.backend import launch


class CudaLauncher:
    """Stands for Triton's class of this name; its C function takes what 3.6's takes."""

    global_scratch_size = 0
    profile_scratch_size = 0
    launch_cooperative_grid = False
    launch_pdl = False

    def __init__(self):
        self.calls = []

    def launch(
        self,
        x,
        y,
        z,
        stream,
        function,
        cooperative,
        pdl,
        scratch,
        profile_scratch,
        metadata,
        launch_metadata,
        enter,
        leave,
        *args,
    ):
        assert (cooperative, pdl, scratch, profile_scratch) == (False, False, None, None)
        self(x, y, z, stream, function, metadata, launch_metadata, enter, leave, *args)

    def __call__(self, x, y, z, stream, function, metadata, launch_metadata, enter, leave, *args):
        assert (launch_metadata, enter, leave) == (None, None, None)
        self.calls.append(((x, y, z), stream, function, metadata, args))


def prepared(run, constants=1):
    binary = SimpleNamespace(run=run, function=77, packed_metadata=(4, 1, 0))
    return launch.prepare(binary, constants)


def launched(run, found):
    found.launch(5, 6, 7, 9, *found.head, 1000, 2000, *found.tail)
    return run.calls


CALL = [((5, 6, 7), 9, 77, (4, 1, 0), (1000, 2000, None))]


def test_the_c_function_is_called_where_it_is_known(monkeypatch):
    monkeypatch.setattr(triton, "__version__", "3.6.0")
    run = CudaLauncher()
    found = prepared(run)
    assert found.launch == run.launch
    assert launched(run, found) == CALL


def other_class():
    return type("HIPLauncher", (CudaLauncher,), {})()


def with_scratch(name):
    return type("CudaLauncher", (CudaLauncher,), {name: 128})()


@pytest.mark.parametrize(
    ("version", "run"),
    [
        ("3.7.1", CudaLauncher()),
        ("4.0.0", CudaLauncher()),
        ("3.6.0", other_class()),
        ("3.6.0", with_scratch("profile_scratch_size")),
    ],
)
def test_otherwise_tritons_launcher_is(monkeypatch, version, run):
    monkeypatch.setattr(triton, "__version__", version)
    found = prepared(run)
    assert found.launch is run
    assert launched(run, found) == CALL


def test_working_memory_is_an_argument_where_the_c_function_is_called(monkeypatch):
    monkeypatch.setattr(triton, "__version__", "3.6.0")
    run = with_scratch("global_scratch_size")
    run.num_ctas = 2
    found = prepared(run)
    assert found.launch == run.launch
    assert found.scratch == 256
    assert found.head.count(launch.SCRATCH) == 1


def test_else_triton_asks_for_it_and_the_users_allocator_stays(monkeypatch):
    monkeypatch.setattr(triton, "__version__", "3.7.1")
    before = launch._allocation._allocator.get()
    asked = []

    class Asking(CudaLauncher):
        def __call__(self, *args):
            asked.append(launch._allocation._allocator.get())
            super().__call__(*args)

    run = type("CudaLauncher", (Asking,), {"global_scratch_size": 128})()
    found = prepared(run)
    assert launched(run, found) == CALL
    assert asked == [launch._working_memory]
    assert launch._allocation._allocator.get() is before


class Loaded:
    """Stands for Triton's CompiledKernel."""

    function = 77
    packed_metadata = ()

    def __init__(self):
        self.run = CudaLauncher()


def test_the_launcher_keeps_the_kernel_loaded(monkeypatch):
    monkeypatch.setattr(triton, "__version__", "3.9.0")
    binary = Loaded()
    unloaded = weakref.ref(binary)
    launch_, *_ = launch.prepare(binary, 0)
    del binary
    gc.collect()
    assert unloaded() is not None
    del launch_
    gc.collect()
    assert unloaded() is None


def test_no_constants_no_tail():
    run = CudaLauncher()
    assert prepared(run, 0).tail == ()
