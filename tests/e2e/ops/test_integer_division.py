"""Integers divided by zero, and the least integer by -1: defined, the same on every device."""

from __future__ import annotations

import warnings

import pytest
import torch

from tritonfuser import DataType, FusionDefinition

D = DataType
OPS = ("div", "mod", "fmod", "remainder", "floordiv")


def quotient(name, ops, a, b):
    return a // b if name == "floordiv" else getattr(ops, name)(a, b)


def expected(name, a, b, bits):
    """C++'s division on a device, where the hardware sets all bits of a division by zero."""
    if b == 0:
        return -1
    whole = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    found = {
        "div": whole,
        "mod": a - whole * b,
        "fmod": a - whole * b,
        "remainder": a % b,
        "floordiv": a // b,
    }[name]
    return (found + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def numbers(dtype):
    info = torch.iinfo(dtype)
    edges = [info.min, info.min + 1, -7, -2, -1, 0, 1, 2, 5, info.max]
    pairs = [(a, b) for a in edges for b in edges]
    a, b = (torch.tensor(column, dtype=dtype) for column in zip(*pairs, strict=True))
    return pairs, a, b


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_all_edges(name, dtype, device):
    pairs, a, b = numbers(dtype)
    a, b = a.to(device), b.to(device)
    with FusionDefinition() as fd:
        fd.add_output(quotient(name, fd.ops, fd.from_pytorch(a), fd.from_pytorch(b)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (found,) = fd.run([a, b])
    wanted = [expected(name, *pair, torch.iinfo(dtype).bits) for pair in pairs]
    assert found.tolist() == wanted
    assert fd.audit([a, b]).ok


@pytest.mark.parametrize("dtype", [D.Int32, D.Int], ids=lambda x: x.name)
@pytest.mark.parametrize("name", OPS)
def test_constants(name, dtype, device):
    """Compilers fold them, and have no number for the least one divided by -1."""
    bits = 8 * dtype.info.bytes
    least = -(1 << bits - 1)
    pairs = [(least, -1), (least, 0), (5, 0), (0, 0), (-7, 2)]
    with FusionDefinition() as fd:
        for a, b in pairs:
            left, right = (fd.ops.full([3], x, dtype=dtype) for x in (a, b))
            fd.add_output(quotient(name, fd.ops, left, right))
            fd.add_output(quotient(name, fd.ops, left, b))
    wanted = [[expected(name, *pair, bits)] * 3 for pair in pairs for _ in range(2)]
    assert [found.tolist() for found in fd.run([], device=device)] == wanted
    for arch in ("sm_80", "sm_90", "gfx942"):
        assert fd.compile_for(arch, [])


@pytest.mark.parametrize("name", OPS)
def test_scalars_of_a_run(name, device):
    zero = torch.zeros(2, dtype=torch.int64, device=device)
    with FusionDefinition() as fd:
        x = fd.from_pytorch(zero)
        a, b = (fd.define_scalar(None, dtype=D.Int) for _ in range(2))
        fd.add_output(fd.ops.add(x, quotient(name, fd.ops, a, b)))
    for pair in ((5, 0), (-(2**63), -1), (-(2**63), 0), (-7, 2)):
        assert fd.run([zero, *pair])[0].tolist() == [expected(name, *pair, 64)] * 2


def test_no_constant_is_undefined_in_the_assembly():
    """The least integer by -1 is the least integer; its remainder is 0."""
    with FusionDefinition() as fd:
        left, right = (fd.ops.full([4], x, dtype=D.Int32) for x in (-(2**31), -1))
        fd.add_output(fd.ops.div(left, right))
    (report,) = fd.compile_for("sm_90", [])
    assert "-2147483648" in report.asm["ptx"]
