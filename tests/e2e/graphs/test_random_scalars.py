"""Random ops on scalars of all types, folded and in kernels, against torch's numbers.

A failure names its seed: ``grow(random.Random("scalars 7"))`` is the definition.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest
import torch

from tests.e2e.checking import Schedule, gpu, round_trip
from tritonfuser import DataType, FusionDefinition, TritonFuserError
from tritonfuser.frontend.inspect.oracle import reference

D = DataType
_UNARY = """
    neg abs ceil floor round trunc sign relu reciprocal sqrt exp tanh isnan isfinite logical_not
    bitwise_not signbit set silu
"""
_BINARY = """
    add sub mul div truediv maximum minimum fmod remainder mod pow eq ne lt le gt ge logical_and
    logical_or bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift atan2 gcd
"""
UNARY, BINARY = _UNARY.split(), _BINARY.split()
NUMBERS: dict[DataType, tuple[Any, ...]] = {
    D.Int: (-7, -1, 0, 1, 2, 3, 40),
    D.Int32: (-5, 0, 1, 3),
    D.Double: (-2.5, -0.0, 0.5, 1.0, 3.25, 1e10),
    D.Float: (-1.5, 0.0, 0.1, 2.0),
    D.Half: (0.5, -2.0),
    D.Bool: (True, False),
}
DTYPES = tuple(NUMBERS)


def grow(rng: random.Random) -> tuple[FusionDefinition, list[Any]]:
    """A definition whose outputs are a tensor joined with computed scalars, and its inputs."""
    inputs: list[Any] = [torch.tensor([1.0, -2.0, 0.5, 3.0])]
    with FusionDefinition() as fd:
        x = fd.define_tensor([4])
        scalars: list[Any] = []
        for _ in range(rng.randint(2, 5)):
            dtype = rng.choice(DTYPES)
            number = rng.choice(NUMBERS[dtype])
            constant = rng.random() < 0.3
            scalars.append(fd.define_scalar(number if constant else None, dtype=dtype))
            inputs += [] if constant else [number]
        for _ in range(rng.randint(3, 12)):
            try:
                scalars.append(computed(fd, rng, scalars))
            except TritonFuserError:  # an op that does not take these types
                continue
        for scalar in scalars[-4:]:
            fd.add_output(joined(fd, rng, x, scalar))
    return fd, inputs


def computed(fd: FusionDefinition, rng: random.Random, scalars: list[Any]) -> Any:
    """One op on scalars, a Python number now and then among them."""
    kind = rng.random()
    if kind < 0.3:
        return getattr(fd.ops, rng.choice(UNARY))(rng.choice(scalars))
    if kind < 0.8:
        pair = rng.choice(scalars), rng.choice([*scalars, 2, -1.5])
        return getattr(fd.ops, rng.choice(BINARY))(*pair)
    if kind < 0.9:
        return fd.ops.cast(rng.choice(scalars), rng.choice(DTYPES))
    return fd.ops.where(*(rng.choice(scalars) for _ in range(3)))


def joined(fd: FusionDefinition, rng: random.Random, x: Any, scalar: Any) -> Any:
    if rng.random() < 0.6:
        return getattr(fd.ops, rng.choice(("mul", "add")))(x, scalar)
    other = False if scalar.dtype() is D.Bool else fd.ops.sub(0, scalar)
    return fd.ops.where(fd.ops.gt(x, 0.0), scalar, other)


def check(seed: str) -> None:
    fd, inputs = grow(random.Random(seed))
    wanted = reference(fd.fusion, inputs, double=False)
    found = fd.run(inputs)
    round_trip(fd, inputs, found)
    for outputs in (found, Schedule(gpu()).run(fd, inputs)):
        assert outputs is not None
        for one, other in zip(outputs, wanted, strict=True):
            assert one.dtype is other.dtype, f"seed {seed!r}\n{fd!r}"
            torch.testing.assert_close(
                one.double(),
                other.double(),
                rtol=1e-5,
                atol=1e-6,
                equal_nan=True,
                msg=lambda text: f"seed {seed!r}: {text}\n{fd!r}\n{inputs}",
            )


def check_all(numbers: Iterable[int]) -> None:
    for number in numbers:
        check(f"scalars {number}")


def test_scalars() -> None:
    """Always the same few."""
    check_all(range(40))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(40, 1040, 100))
def test_many_scalars(start: int) -> None:
    check_all(range(start, start + 100))
