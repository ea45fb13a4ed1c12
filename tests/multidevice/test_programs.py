"""Programs of all devices of a mesh, run in one process, against torch on whole tensors."""

from __future__ import annotations

import random

import pytest
import torch

from bench.measure.errors import max_error
from bench.recorded.definitions import load, make_inputs, record
from bench.recorded.shrink import shrink
from tests.multidevice.cases import CASES, DeviceMesh, X, Y, cut
from tests.multidevice.programs import TABLES
from tests.multidevice.simulate import Simulation
from tritonfuser import DataType, FusionDefinition
from tritonfuser.frontend.inspect.oracle import Evaluation
from tritonfuser.frontend.multidevice.mesh_program import Exchange


def test_every_table_is_read():
    modules = {case.record.__module__ for case in CASES}
    assert modules >= {table.__name__ for table in TABLES}


def doubled(x):
    return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def exchanges_of(program):
    return [
        (step.value.name, str(step.have), str(step.want))
        for step in program.steps
        if isinstance(step, Exchange)
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_parts_make_up_the_whole(case, monkeypatch):
    simulation = Simulation(case.definition(), case.inputs, monkeypatch)
    outputs = simulation.run()
    wanted = case.reference(*map(doubled, case.inputs))
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    assert len(outputs) == len(wanted)
    for out, reference in zip(outputs, wanted, strict=True):
        assert out.shape == reference.shape
        close = 1e-2 if out.dtype is torch.bfloat16 else 1e-5
        torch.testing.assert_close(
            out, reference.to(out.dtype), rtol=close, atol=close, equal_nan=True
        )
    program = simulation.first
    # A device that leaves an exchange out has the others wait forever.
    sent = {tuple(exchanges_of(run.program)) for run in simulation.programs.values()}
    assert len(sent) == 1, sent
    exchanges = {(s.value, s.want) for s in program.steps if isinstance(s, Exchange)}
    if case.exchanges is not None:
        assert len(exchanges) == case.exchanges, str(program)
    if case.shards is not None:
        assert [placement.shards for _, placement in program.outputs] == case.shards


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_parts_are_where_they_were_after_travel(case):
    fd = case.definition()
    again = FusionDefinition.from_dict(fd.to_dict())
    # Values may be numbered anew; they come in the same order.
    assert [s for _, s in again.fusion.shardings] == [s for _, s in fd.fusion.shardings]
    assert again.to_dict() == fd.to_dict()


ENTRIES = [
    pytest.param(entry, marks=() if entry.model == "nanogpt" else pytest.mark.slow, id=entry.name)
    for entry in load()
]


@pytest.mark.covering
@pytest.mark.parametrize("last", [False, True], ids=["outer", "inner"])
@pytest.mark.parametrize("entry", ENTRIES)
def test_recorded_definitions(entry, last, monkeypatch):
    """Every input cut along its first dim that can be, or its last: torch's values all the same."""
    entry = shrink(entry)
    fd = record(entry)
    fusion = fd.fusion.ir
    inputs = make_inputs(entry, fusion, "cpu")
    mesh = DeviceMesh([0, 1])
    for handle, given in zip(fd.fusion.inputs(), inputs, strict=True):
        if isinstance(given, torch.Tensor):
            dims = [d for d, size in enumerate(given.shape) if size % 2 == 0 and size]
            cut(handle, mesh, dims[-1 if last else 0] if dims else None)
    expected = Evaluation(fusion, inputs, double=True).outputs
    simulation = Simulation(fd, inputs, monkeypatch)
    half = any(v.dtype is DataType.BFloat16 for v in fusion.inputs)
    assert max_error(simulation.run(), expected) <= (2**-7 if half else 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("entry", load(), ids=lambda entry: entry.name)
def test_recorded_definitions_over_a_grid(entry, monkeypatch):
    """Inputs cut along any dims, one dim twice as well, over two by two devices."""
    entry = shrink(entry)
    fd = record(entry)
    fusion = fd.fusion.ir
    inputs = make_inputs(entry, fusion, "cpu")
    mesh, rng = DeviceMesh([[0, 1], [2, 3]]), random.Random(entry.index)
    for handle, given in zip(fd.fusion.inputs(), inputs, strict=True):
        if isinstance(given, torch.Tensor):
            cut_anywhere(handle, list(given.shape), mesh, rng)
    expected = Evaluation(fusion, inputs, double=True).outputs
    half = any(v.dtype is DataType.BFloat16 for v in fusion.inputs)
    found = Simulation(fd, inputs, monkeypatch).run()
    assert max_error(found, expected) <= (2**-7 if half else 1e-5)


def cut_anywhere(handle, sizes, mesh, rng):
    handle.set_device_mesh(mesh)
    for kind in (Y, X):
        dims = [d for d, size in enumerate(sizes) if size % 2 == 0 and size]
        if not dims or rng.random() < 0.2:
            continue
        dim = rng.choice(dims)
        axis = handle.get_loop_domain().index(handle.get_logical_domain()[dim].leaves()[-1])
        handle.outer_split(axis, 2)
        handle.axis(axis).parallelize(kind)
        sizes[dim] //= 2
