"""The pointwise rows on a GPU: values and special cases, and torch's own results to the bit."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.device_lib.test_functions import DISTRIBUTIONS, random_kernel
from tests.ops.pointwise_harness import BY_NAME, INTEGERS, cases, kernel, operands, row_kernel
from tests.ops.test_pointwise import TOLERANCE, reference
from tritonfuser.dtypes import DataType
from tritonfuser.lowering.backend.module_loader import jit_function
from tritonfuser.lowering.kernel_source import KernelSource
from tritonfuser.ops import registry
from tritonfuser.ops.creation import philox

pytestmark = pytest.mark.gpu
D = DataType


def run(source: KernelSource, inputs: list[torch.Tensor]) -> torch.Tensor:
    """The only output of the kernel on the GPU."""
    size = dict(source.constants)["N"]
    made = torch.empty(size, dtype=source.args[-1].dtype.info.torch, device="cuda")
    jit_function(source)[(1,)](*inputs, made, N=size, num_warps=4)
    return made


@pytest.mark.parametrize(("name", "dtype"), [c for c in cases() if c[0] != "cast"])
def test_row(name: str, dtype: DataType) -> None:
    op = BY_NAME[name]
    inputs = operands(op, dtype)
    if name == "silu" and dtype in INTEGERS:  # converting 2.0**31 to an int has no one meaning
        inputs = [x.clamp(-1000, 1000) for x in inputs]
    found = run(row_kernel(op, dtype, len(inputs[0])), [x.cuda() for x in inputs]).cpu()
    expected = reference(name, dtype, inputs).to(found.dtype)
    limit = 4 * TOLERANCE.get(found.dtype, 0)
    torch.testing.assert_close(found, expected, rtol=limit, atol=limit / 10, equal_nan=True)


EXACT = (
    "div truediv pow sqrt tan lgamma exp exp2 expm1 sinh cosh reciprocal rsqrt log log2 log10 "
    "log1p atan2 acos acosh asin asinh atan atanh sin cos erf erfc erfinv fmod remainder"
)
_TORCH = {"div": torch.div, "truediv": torch.div, "pow": torch.pow}


@pytest.mark.parametrize("dtype", [D.Double, D.Float, D.Int32, D.Int])
@pytest.mark.parametrize("name", EXACT.split())
def test_what_torch_computes(name: str, dtype: DataType) -> None:
    """nvFuser's users compare with atol=1e-3 and rtol=0, which for great numbers means equal."""
    if dtype in INTEGERS and name in ("div", "pow", "fmod", "remainder"):
        pytest.skip("integers have their own meaning")
    op = BY_NAME[name]
    count = 1 << 14
    generator = torch.Generator().manual_seed(11)
    inputs = []
    ranges = {key: (low, high) for key, low, high in op.samples.ranges}
    for param in op.params:
        low, high = ranges.get(param.name, (op.samples.low, op.samples.high))
        drawn = torch.rand(count, generator=generator, dtype=torch.float64) * (high - low) + low
        drawn = drawn.round() if dtype in INTEGERS else drawn
        inputs.append(drawn.to(dtype.info.torch).cuda())
    if dtype in INTEGERS and name == "truediv":
        inputs[1] = inputs[1].clamp(min=1)
    found = run(row_kernel(op, dtype, count), inputs)
    expected = _TORCH.get(name, getattr(torch, name, None))(*inputs)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-3, equal_nan=True)


def test_quotients_of_zeros_and_of_special_numbers() -> None:
    """Zeros are no dividends of the machine's division: see ``div_rounded``."""
    numbers = [0.0, 1.0, 3.0, 2.0**-149, 3 * 2.0**-140, 2.0**-126, 2.0**127 * 1.5, float("inf")]
    special = torch.tensor([*numbers, *(-x for x in numbers), float("nan"), 0.1])
    special = torch.cat([special, torch.randn(32 - len(special))])
    lhs, rhs = (x.reshape(-1).cuda() for x in torch.meshgrid(special, special, indexing="ij"))
    found, wanted = run(row_kernel(BY_NAME["div"], D.Float, len(lhs)), [lhs, rhs]), lhs / rhs
    assert torch.equal(found.isnan(), wanted.isnan())
    known = ~wanted.isnan()
    assert torch.equal(found[known].view(torch.int32), wanted[known].view(torch.int32))


def test_shares_of_sums_are_rounded_as_quotients() -> None:
    """By sums of all fractions that a float32 has, of some exponents."""
    count, block = 1 << 23, 1 << 14
    source = row_kernel(registry.get("div_by_sum"), D.Float, block)
    fractions = torch.arange(count, dtype=torch.int32, device="cuda")
    generator = torch.Generator("cuda").manual_seed(3)
    for exponent in (0, 1, 12, 23, 31):
        total = (fractions + ((127 + exponent) << 23)).view(torch.float32)
        for _ in range(4):
            part = torch.rand(count, generator=generator, device="cuda")
            part[::7] = part[::7] ** 4
            blocks = zip(part.split(block), total.split(block), strict=True)
            found = torch.cat([run(source, list(pair)) for pair in blocks])
            assert torch.equal(found.view(torch.int32), (part / total).view(torch.int32))


def test_integer_division_by_zero_is_what_cuda_gives() -> None:
    """Of Int32: for Int, CUDA's answer depends on whether the dividend fits 32 bits."""
    x = torch.tensor([5, -5, 0, 7] * 4, dtype=torch.int32).cuda()
    zero = torch.zeros_like(x)
    found = run(row_kernel(BY_NAME["div"], D.Int32, 16), [x, zero])
    assert torch.equal(found, torch.div(x, zero, rounding_mode="trunc"))
    for name in ("fmod", "remainder"):
        found = run(row_kernel(BY_NAME[name], D.Int32, 16), [x, zero])
        assert torch.equal(found, getattr(torch, name)(x, zero))


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "silu"])
def test_fast_functions_are_accurate(name: str) -> None:
    """Within 5 ulp where the result is a normal number, and torch's special values elsewhere."""
    size = torch.exp(torch.linspace(-16, 4.4, 1 << 13))
    x = torch.cat([size, -size])
    found = run(row_kernel(BY_NAME[name], D.Float, 1 << 14), [x.cuda()]).cpu().double()
    exact = BY_NAME[name].oracle(x.double())
    normal = exact.abs() > 2.0**-125
    error = ((found - exact) / exact)[normal].abs().max()
    assert error < 5 * 2**-24, f"{error * 2**24} ulp"
    assert (found - exact)[~normal].abs().sum() < 1e-33


@pytest.mark.parametrize(("name", "dtype"), DISTRIBUTIONS)
def test_random_numbers_are_the_reference(name: str, dtype: DataType) -> None:
    found = run(random_kernel(name, dtype, 5, 2**33 + 7), []).cpu()
    make = philox.uniform if "uniform" in name else philox.normal
    expected = make((256,), 5, 2**33 + 7, dtype.info.torch)
    if "uniform" in name:
        assert torch.equal(found, expected)
    torch.testing.assert_close(found, expected)


def test_casts_between_all_types() -> None:
    x = torch.tensor([0.0, -0.0, 1.5, -2.5, 300.0, 1e-3, 3.0, 0.1], dtype=torch.float64)
    kinds = (D.Double, D.Float, D.Half, D.BFloat16, D.Int, D.Int32, D.Bool)
    for source in kinds:
        for target in kinds:
            text = "r0 = x0 != 0" if target is D.Bool else f"r0 = x0.to(tl.{target.info.triton})"
            given = x.to(source.info.torch).cuda()
            found = run(kernel([text], [source], [target], 8), [given])
            assert torch.equal(found, given.to(target.info.torch)), (source, target)
