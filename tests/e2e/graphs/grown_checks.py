"""Everything that is checked of a random definition."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch

from tests.e2e.checking import Schedule, again, assert_same, copied, gpu, round_trip, same_outline
from tests.e2e.graphs.growing import Grown
from tests.e2e.graphs.resized import as_reals, check_resized
from tritonfuser import TritonFuserError
from tritonfuser.dtypes import Category
from tritonfuser.frontend.inspect.oracle import reference
from tritonfuser.lowering.product_policy import ProductPolicy


def _cpu(given: Any) -> Any:
    return given.cpu() if isinstance(given, torch.Tensor) else given


def check_outputs(grown: Grown, found: Sequence[torch.Tensor], what: str) -> None:
    """Each output within the error that was reckoned for it."""
    expected = reference(grown.fd.fusion, [_cpu(x) for x in grown.inputs])
    found = [_cpu(x) for x in found]
    for place, (term, one, wanted) in enumerate(zip(grown.outputs, found, expected, strict=True)):
        where = f"{what}: output {place}, {term.handle} of"
        assert one.dtype is term.dtype.info.torch, f"{where} {one.dtype}"
        assert one.shape == wanted.shape == term.ref.shape, f"{where} shape {one.shape}"
        if term.category < Category.FLOAT:
            assert torch.equal(one, wanted), f"{where}\n{one}\nwanted\n{wanted}"
            continue
        # A reference that is off itself says nothing of the run.
        slack = 4 * term.error
        torch.testing.assert_close(
            as_reals(term.ref), as_reals(wanted), rtol=1e-9, atol=slack, equal_nan=True
        )
        close = torch.isclose(as_reals(one), as_reals(wanted), rtol=0, atol=slack, equal_nan=True)
        assert bool(close.all()), f"{where}\n{one}\nwanted\n{wanted}\nwithin {slack}"


def check_inputs(grown: Grown, found: Sequence[Any]) -> None:
    """Inputs as they were, but for what the definition writes into them."""
    for place, (one, before) in enumerate(zip(found, grown.inputs, strict=True)):
        term = grown.written.get(place)
        if term is not None:
            close = torch.isclose(as_reals(one.cpu()), as_reals(term.ref), 0, 4 * term.error, True)
            assert bool(close.all()), f"input {place}\n{one}\nwanted\n{term.ref}"
        elif isinstance(before, torch.Tensor):
            torch.testing.assert_close(
                as_reals(one), as_reals(before), rtol=0, atol=0, equal_nan=True
            )


def check_as_one_kernel(grown: Grown) -> None:
    """Where a definition fits one kernel, that gives the same."""
    given = copied(grown.inputs)
    try:
        found = again(grown.fd).run_kernel(given)
    except TritonFuserError as refusal:
        assert "KernelExecutor does not support the Fusion" in str(refusal)
        return
    check_outputs(grown, found, "one kernel")
    check_inputs(grown, given)


def check_bound(grown: Grown, outputs: Sequence[torch.Tensor]) -> None:
    """By a bound plan, also into tensors that are given for the results."""
    plan = grown.fd.plan(grown.inputs)
    for out in (None, plan.allocate()):
        given = copied(grown.inputs)
        found = plan(given, out)
        assert_same(found, outputs)
        check_inputs(grown, given)
    for mine, theirs in zip(out or [], found, strict=True):
        assert mine is None or mine is theirs


def check_again(grown: Grown, outputs: Sequence[torch.Tensor]) -> None:
    """At other sizes, and what a run at the first ones gives after them."""
    if check_resized(grown):
        assert_same(grown.fd.run(copied(grown.inputs)), outputs)


def check(grown: Grown, rng: random.Random) -> None:
    """Numbers as run here and as a GPU would, twice the same, inputs untouched, printed form."""
    fd, inputs = grown.fd, grown.inputs
    given = copied(inputs)
    outputs = fd.run(given)
    check_outputs(grown, outputs, "run")
    check_inputs(grown, given)
    assert_same(fd.run(copied(inputs)), outputs)
    check_bound(grown, outputs)
    if any(x.is_cuda for x in outputs):
        same_outline(fd)
        check_again(grown, outputs)
        return
    round_trip(fd, inputs, outputs)
    for schedule in schedules(rng):
        given = copied(inputs)
        found = schedule.run(fd, given)
        if found is not None:
            check_outputs(grown, found, str(schedule))
            check_inputs(grown, given)
    check_as_one_kernel(grown)
    check_again(grown, outputs)


def schedules(rng: random.Random) -> list[Schedule]:
    """As on a large and on a small GPU, and with params that nobody would propose."""
    sms = rng.choice((1, 4, 132))
    few, shuffle = gpu(rng.choice((1, 2))), random.Random(rng.random())
    products = rng.choice((ProductPolicy.AUTO, ProductPolicy.KERNELS))
    return [Schedule(gpu(sms)), Schedule(few, shuffle, products)]
