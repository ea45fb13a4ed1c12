"""Sizes that run often, on a GPU: what changes, and what a captured graph and a plan keep."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tritonfuser import FusionDefinition, options
from tritonfuser.cache import hot_sizes

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compiling costs next to nothing."""
    monkeypatch.setattr(hot_sizes, "FIRST_CALLS", 2)
    monkeypatch.setattr(hot_sizes, "LATER_CALLS", 2)
    monkeypatch.setenv("TRITONFUSER_HOT_SIZES", "1e-9")
    options.refresh()
    yield
    monkeypatch.undo()
    options.refresh()


def opened(columns: int) -> tuple[FusionDefinition, torch.Tensor]:
    """Row sums with open sizes that have served so many columns once."""
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=True)
        fd.add_output(fd.ops.sub(x, fd.ops.sum(x, [1], keepdim=True)))
    for n in (41, 43):
        fd.run([torch.randn(8, n, device="cuda")])
    given = torch.randn(8, columns, device="cuda")
    check(fd.run([given])[0], given)
    assert fd.explain_recompiles()[-1].dynamic
    return fd, given


def check(found: torch.Tensor, given: torch.Tensor) -> None:
    torch.testing.assert_close(found, given - given.sum(1, keepdim=True), rtol=1e-5, atol=1e-4)


def was_compiled(fd: FusionDefinition) -> bool:
    return not fd.explain_recompiles()[-1].dynamic


def test_values_are_right_before_and_after() -> None:
    fd, given = opened(45)
    for _ in range(10):
        check(fd.run([given])[0], given)
    assert was_compiled(fd) and len(fd.explain_recompiles()) == 4
    other = torch.randn(8, 47, device="cuda")
    check(fd.run([other])[0], other)
    assert len(fd.explain_recompiles()) == 4


def test_plans_and_graphs_keep_their_kernels() -> None:
    fd, given = opened(45)
    plan = fd.plan([given])
    graph = plan.graph([given])
    for _ in range(10):
        fd.run([given])
    assert was_compiled(fd)
    assert all(kernel.sizes for kernel in plan.kernels)
    assert not any(kernel.sizes for kernel in fd.plan([given]).kernels)
    check(plan([given])[0], given)
    graph()
    check(graph.outputs[0], given)


def test_nothing_is_compiled_in_a_capture() -> None:
    fd, given = opened(45)
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(10):
            (made,) = fd.run([given])
    assert not was_compiled(fd)
    given.copy_(torch.randn_like(given))
    graph.replay()
    check(made, given)
    for _ in range(10):
        check(fd.run([given])[0], given)
    assert was_compiled(fd)
