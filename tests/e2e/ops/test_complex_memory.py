"""Views of complex numbers, and complex tensors as they lie in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.e2e.checking import round_trip
from tests.e2e.ops.complex_numbers import (
    DOUBLE,
    SINGLE,
    D,
    Record,
    assert_near,
    definition,
    numbers,
    run,
)
from tritonfuser import FusionDefinition

# --- views ---------------------------------------------------------------------------------------

VIEWS: dict[str, tuple[Record, Callable[[torch.Tensor], torch.Tensor]]] = {
    "permute": (lambda fd, x: fd.ops.permute(x, [2, 0, 1]), lambda x: x.permute(2, 0, 1)),
    "reshape": (lambda fd, x: fd.ops.reshape(x, [6, 4]), lambda x: x.reshape(6, 4)),
    "slice": (
        lambda fd, x: fd.ops.slice(x, [0, 1, 1], [2, 3, 4]),
        lambda x: x[:, 1:, 1:],
    ),
    "broadcast": (
        lambda fd, x: fd.ops.broadcast(x, [False, True, False, False]),
        lambda x: x.unsqueeze(1),
    ),
    "expand": (
        lambda fd, x: fd.ops.broadcast_in_dim(x, [5, 2, 3, 4], [1, 2, 3]),
        lambda x: x.expand(5, 2, 3, 4),
    ),
    "squeeze": (
        lambda fd, x: fd.ops.squeeze(fd.ops.slice(x, [1, 0, 0], [2, 3, 4]), [0]),
        lambda x: x[1:2].squeeze(0),
    ),
    "select": (lambda fd, x: fd.ops.select(x, 2, 1), lambda x: x.select(1, 2)),
    "stride_order": (
        lambda fd, x: fd.ops.stride_order(x, [0, 2, 1]),
        lambda x: x.movedim(0, 2).contiguous().movedim(2, 0),
    ),
    "pad": (
        lambda fd, x: fd.ops.pad(x, [1, 2, 0, 1], 1 - 2j),
        lambda x: torch.nn.functional.pad(x - (1 - 2j), [1, 2, 0, 1]) + (1 - 2j),
    ),
    "cat": (lambda fd, x: fd.ops.cat([x, x, fd.ops.neg(x)], 1), lambda x: torch.cat([x, x, -x], 1)),
    "triu": (lambda fd, x: fd.ops.triu(x, 1), lambda x: x.triu(1)),
}
_OF_INPUTS = frozenset({"permute", "reshape", "slice", "broadcast", "expand", "squeeze", "select"})


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str, computed: bool, device: str) -> None:
    """Of an input they are views of it; strides are those of a real tensor in any case."""
    record, wanted = VIEWS[name]
    x = numbers(2, 3, 4, device=device)

    def made(fd: Any, x: Any) -> Any:
        return record(fd, fd.ops.mul(x, 1j) if computed else x)

    fd = definition(made, [x])
    (found,) = fd.run([x])
    given = x * 1j if computed else x
    assert_near(found, wanted(given))
    real = definition(
        lambda fd, x: (
            record(fd, fd.ops.neg(x) if computed else x)
            if name != "pad"
            else fd.ops.pad(x, [1, 2, 0, 1], 1.0)
        ),
        [x.real.clone()],
    )
    (twin,) = real.run([x.real.clone()])
    assert found.stride() == twin.stride()
    if name in _OF_INPUTS and not computed:
        assert found.stride() == wanted(x).stride()
        assert found.data_ptr() == wanted(x).data_ptr()
    else:
        assert found.data_ptr() != x.data_ptr()
    round_trip(fd, [x], [found])


def test_indices(device: str) -> None:
    x = numbers(4, 5, device=device)
    rows = torch.tensor([3, 0, 3], device=device)
    places = torch.tensor([[1, 0, 4], [2, 2, 2], [0, 0, 0]], device=device)
    found = run(
        lambda fd, x, r, p: [
            fd.ops.index_select(x, r, 0),
            fd.ops.gather(x, p, 1),
            fd.ops.take_along_axis(x, fd.ops.slice(p, [0, 0], [1, 3]), 1),
            fd.ops.embedding_fwd(r, x),
        ],
        [x, rows, places],
    )
    wanted = [x[rows], x.gather(1, places), x.take_along_dim(places[:1], 1), x[rows]]
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one, other)


def test_full(device: str) -> None:
    found = run(
        lambda fd, x, s: [
            fd.ops.mul(x, fd.ops.full([3], 2 - 1j, D.ComplexFloat)),
            fd.ops.full([2, 2], s, D.ComplexDouble),
        ],
        [numbers(3, dtype=SINGLE, device=device), 1 + 1j],
    )
    assert_near(found[0], numbers(3, dtype=SINGLE, device=device) * (2 - 1j))
    assert torch.equal(found[1].cpu(), torch.full((2, 2), 1 + 1j, dtype=DOUBLE))


# --- memory --------------------------------------------------------------------------------------

LAYOUTS: dict[str, Callable[[str], torch.Tensor]] = {
    "dense": lambda d: numbers(4, 6, device=d),
    "transposed": lambda d: numbers(6, 4, device=d).T,
    "strided": lambda d: numbers(8, 12, device=d)[::2, ::2],
    "offset": lambda d: numbers(5, 7, device=d)[1:, 1:],
    "expanded": lambda d: numbers(4, 1, device=d).expand(4, 6),
    "conjugated": lambda d: numbers(4, 6, device=d).conj(),
    "conjugated and strided": lambda d: numbers(5, 12, device=d)[1:, ::2].conj(),
    "conjugated and expanded": lambda d: numbers(6, device=d).expand(4, 6).conj(),
    "0-dim": lambda d: numbers(device=d),
    "empty": lambda d: numbers(0, 6, device=d),
    "empty and conjugated": lambda d: numbers(4, 0, device=d).conj(),
    "one": lambda d: numbers(1, 1, device=d),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str, device: str) -> None:
    x = LAYOUTS[layout](device)
    fd = definition(
        lambda fd, x: [fd.ops.mul(x, x), fd.ops.abs(x), x, fd.ops.set(x), fd.ops.real(x)], [x]
    )
    found = fd.run([x])
    wanted = [x * x, x.abs(), x, x, x.real]
    for one, other in zip(found, wanted, strict=True):
        assert_near(one, other.resolve_conj())
    assert found[2] is x
    if x.numel():
        assert found[3].data_ptr() != x.data_ptr()
        assert found[4].data_ptr() != x.data_ptr()


def test_an_input_that_is_written(device: str) -> None:
    """Reads see the old value; what is returned is the input."""
    x, y = numbers(3, 4, device=device), numbers(3, 4, device=device, seed=1)
    old, other = x.clone(), y.clone()
    with FusionDefinition() as fd:
        a, b = fd.from_pytorch(x), fd.from_pytorch(y)
        total = fd.ops.add(a, b)
        fd.add_output(total, a)
        fd.add_output(fd.ops.mul(a, 2j))
        fd.add_output(fd.ops.imag(a))
        fd.add_output(total)
    doubled, imag, back = fd.run([x, y])
    assert back.data_ptr() == x.data_ptr()
    assert_near(x, old + other)
    assert_near(doubled, old * 2j)
    assert torch.equal(imag, old.imag)


def test_inputs_written_crosswise(device: str) -> None:
    x, y = numbers(3, 4, device=device), numbers(4, 3, device=device, seed=1)
    old = x.clone(), y.clone()
    with FusionDefinition() as fd:
        a, b = fd.from_pytorch(x), fd.from_pytorch(y)
        fd.add_output(fd.ops.permute(a, [1, 0]), b)
        fd.add_output(fd.ops.permute(b, [1, 0]), a)
    assert fd.run([x, y]) == []
    assert torch.equal(x, old[1].T)
    assert torch.equal(y, old[0].T)


def test_other_sizes_later(device: str) -> None:
    fd = definition(lambda fd, x: fd.ops.mul(x, x), [numbers(3, 4, device=device)])
    for shape in ((3, 4), (5, 2), (0, 4), (3, 4)):
        x = numbers(*shape, device=device)
        assert_near(fd.run([x])[0], x * x)


@pytest.mark.gpu
def test_a_scalar_tensor_of_the_cpu_beside_cuda_ones() -> None:
    x, s = numbers(4, device="cuda"), numbers()
    fd = definition(lambda fd, x, s: [fd.ops.mul(x, s), s], [x, s])
    product, same = fd.run([x, s])
    assert_near(product, x.cpu() * s)
    assert same is s
