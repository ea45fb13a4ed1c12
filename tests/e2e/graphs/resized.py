"""The check of a random definition at other sizes than it was grown at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from tests.e2e.checking import Schedule, copied, gpu
from tests.e2e.graphs.graph import LIMIT, D
from tests.e2e.graphs.growing import Grown
from tritonfuser import FusionDefinition, TritonFuserError
from tritonfuser.errors import DefinitionError
from tritonfuser.frontend.inspect.oracle import Evaluation
from tritonfuser.ir import Fusion, Output
from tritonfuser.ir_graph import depth_first
from tritonfuser.ops import registry

REFUSED = ("Only dims of size 1 can be squeezed", "add_output: ")
"""What torch does, and a definition does not."""


def check_resized(grown: Grown) -> int:
    """The same definition at other sizes; at how many it ran.

    Sizes that its ops do not fit are left out: torch says which.
    """
    count = 0
    for table in grown.sizes:
        given = [made.resized(table) for made in grown.made]
        expected = expectations(grown.fd, given)
        if expected is None:
            continue
        for schedule in (None, Schedule(gpu(4))):
            own = copied(given)
            if schedule is not None and any(x.is_cuda for x in _tensors(given)):
                continue
            try:
                found = grown.fd.run(own) if schedule is None else schedule.run(grown.fd, own)
            except DefinitionError as error:
                assert any(text in str(error) for text in REFUSED), str(error)
                break
            if found is not None:
                where = f"{schedule or 'run'} at {table}"
                check_values(grown.fd, found, own, expected, where)
                count += schedule is None
    return count


Pair = tuple[torch.Tensor, torch.Tensor]

NOTHING = 16 * 2.0**-52
"""What may be left of numbers about 1 that cancel in float64, by the order they are added in."""


def expectations(fd: FusionDefinition, inputs: Sequence[Any]) -> list[Pair] | None:
    """Each output, hidden ones too, in float64 and in torch's own dtypes; None if it has none."""
    plain = [x.cpu() if isinstance(x, torch.Tensor) else x for x in inputs]
    try:
        wide, own = (Evaluation(fd.fusion.ir, plain, double).outputs for double in (True, False))
    except (RuntimeError, IndexError, TritonFuserError):
        return None
    if any(x.numel() > 4 * LIMIT for x in wide) or hides_infinity(fd.fusion.ir, plain):
        return None
    return list(zip(wide, own, strict=True))


def hides_infinity(fusion: Fusion, inputs: Sequence[Any]) -> bool:
    """Whether torch makes a finite variance of squares whose sum is not.

    Numbers grow with the sizes where products do. On a CPU torch adds squares up in float64, so
    its own dtypes do not tell where others overflow.
    """
    nodes = [node for node in depth_first(fusion) if node.op in ("var", "var_mean")]
    shown = [Output(value) for node in nodes for value in (node.outs[0], *node.operands())]
    found = Evaluation(replace(fusion, outputs=tuple(shown)), inputs, double=False).outputs
    for node, var, operand in zip(nodes, found[::2], found[1::2], strict=True):
        _, squares, _ = registry.get("welford").oracle(operand, node.attr("dims"))
        if bool((var.flatten().isfinite() & ~squares.flatten().isfinite()).any()):
            return True
    return False


def check_values(
    fd: FusionDefinition,
    found: Sequence[torch.Tensor],
    inputs: Sequence[Any],
    expected: Sequence[Pair],
    where: str,
) -> None:
    """What is returned, and what is written into inputs, which are as a run has left them."""
    fusion, rtol = fd.fusion.ir, looseness(fd)
    returned = iter(found)
    for output, (wide, own) in zip(fusion.outputs, expected, strict=True):
        what = f"{where}: {output.value.name} of"
        if not output.hidden:
            assert_near(next(returned).cpu(), wide, own, rtol, what)
        if output.alias_of is not None:
            place = fusion.inputs.index(output.alias_of)
            assert_near(inputs[place].cpu(), wide, own, rtol, f"{what} input {place}")


def _tensors(inputs: Sequence[Any]) -> list[torch.Tensor]:
    return [x for x in inputs if isinstance(x, torch.Tensor)]


def looseness(fd: FusionDefinition) -> float:
    """A relative error that the narrowest dtype of a definition makes likely."""
    fusion = fd.fusion.ir
    dtypes = {v.dtype for n in fusion.nodes for v in n.outs} | {v.dtype for v in fusion.inputs}
    if dtypes & {D.Float8_e4m3fn, D.Float8_e5m2}:
        return 0.5
    return 0.04 if dtypes & {D.Half, D.BFloat16} else 2e-5


def assert_near(
    found: torch.Tensor, wide: torch.Tensor, own: torch.Tensor, rtol: float, where: str
) -> None:
    """Within what float64 and torch's own dtypes differ by; numbers that do not, to the bit."""
    assert found.shape == wide.shape, f"{where} shape {found.shape}, wanted {wide.shape}"
    if not (found.is_floating_point() or found.is_complex()):
        # Where rounding decides, it may decide otherwise.
        decided = rtol < 1e-4 and torch.equal(own, wide)
        assert not decided or torch.equal(found, wide), f"{where}\n{found}\nwanted\n{wide}"
        return
    found, wide, own = as_reals(found), as_reals(wide), as_reals(own)
    settled = wide.isfinite() == own.isfinite()
    both = wide.isfinite() & own.isfinite()
    size = float(wide[both].abs().max()) if bool(both.any()) else 0.0
    off = float((wide - own)[both].abs().max()) if bool(both.any()) else 0.0
    slack = 16 * off + rtol * size + NOTHING
    close = torch.isclose(found, wide, rtol=0, atol=slack, equal_nan=True)
    assert bool((close | ~settled).all()), f"{where}\n{found}\nwanted\n{wide}"


def as_reals(x: torch.Tensor) -> torch.Tensor:
    """Numbers in float64, complex ones as pairs."""
    return torch.view_as_real(x.resolve_conj()).double() if x.is_complex() else x.double()
