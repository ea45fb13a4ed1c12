"""The device library: as written against torch, its array versions alike, and as GPU code."""

from __future__ import annotations

import math
import re
from functools import partial

import pytest
import torch
import triton.language as tl
from triton.runtime import interpreter

from tests.ops.pointwise_harness import (
    BY_NAME,
    EIGHTS,
    cases,
    interpret,
    kernel,
    operands,
    row_kernel,
)
from tests.ops.test_pointwise import TOLERANCE, reference
from tritonfuser.dtypes import DataType
from tritonfuser.lowering.backend.compile import compile_kernel
from tritonfuser.lowering.emit.expressions import cast_text
from tritonfuser.lowering.interpreter import language
from tritonfuser.lowering.kernel_source import KernelSource
from tritonfuser.ops.creation import philox
from tritonfuser.ops.pointwise import oracles

D = DataType
TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")
COLUMNS = 16


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreted kernels run the library as it is written."""
    monkeypatch.setattr(language, "namespace", partial(language.namespace, plain=True))


_WRITTEN = frozenset(
    {"tanh", "sigmoid", "silu", "erfcinv", "remainder", "lerp", "relu", "clamp", "div", "mod"}
    | {"pow", "gcd", "bitwise_left_shift", "bitwise_right_shift", "logical_right_shift"}
)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(("name", "dtype"), [c for c in cases() if c[0] in _WRITTEN])
def test_functions_as_written(name: str, dtype: DataType) -> None:
    op = BY_NAME[name]
    inputs = operands(op, dtype)
    (found,) = interpret(row_kernel(op, dtype, len(inputs[0])), inputs)
    expected = reference(name, dtype, inputs).to(found.dtype)
    limit = TOLERANCE.get(found.dtype, 0)
    torch.testing.assert_close(found, expected, rtol=limit, atol=limit / 10, equal_nan=True)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(("low", "high"), [(1e-7, 1e-3), (1e-3, 1.0), (0.5, 0.7), (1.0, 30.0)])
def test_tanh_is_accurate_everywhere(low: float, high: float) -> None:
    x = torch.exp(torch.linspace(torch.log(torch.tensor(low)), torch.log(torch.tensor(high)), 4096))
    x = torch.cat([x, -x])
    (found,) = interpret(kernel(["r0 = tanh(x0)"], [D.Float], [D.Float], 8192), [x])
    exact = torch.tanh(x.double())
    assert ((found - exact) / exact).abs().max() < 4 * 2**-24


INTERNAL = {
    "one_plus_tanh": lambda x: 1 + torch.tanh(x),
    "one_plus_erf": lambda x: torch.erfc(-x),
    "coarse_exp": torch.exp,
    "coarse_sigmoid": torch.sigmoid,
}


@pytest.mark.parametrize("how", ["arrays", "plain"])
@pytest.mark.parametrize("dtype", [D.Double, D.Float])
@pytest.mark.parametrize("name", INTERNAL)
def test_functions_that_passes_write(
    name: str, dtype: DataType, how: str, request: pytest.FixtureRequest
) -> None:
    if how == "plain":
        request.getfixturevalue("plain")
    x = torch.cat(
        [torch.linspace(-20, 20, 59), torch.tensor([0.0, torch.inf, -torch.inf, 1e4, torch.nan])]
    )
    x = x.to(dtype.info.torch)
    source = kernel([f"r0 = {name}(x0)"], [dtype], [dtype], 64)
    (found,) = interpret(source, [x])
    limit = 1e-12 if dtype is D.Double else 4e-6
    expected = INTERNAL[name](x.double()).to(x.dtype)
    torch.testing.assert_close(found, expected, rtol=limit, atol=limit, equal_nan=True)
    for target in TARGETS:
        assert compile_kernel(source, target, (True, True)).asm


def test_erfcinv_in_the_far_tails() -> None:
    x = torch.tensor([1e-300, 1e-30, 1e-5, 0.3, 1.0, 1.7, 2 - 1e-12, 0.0, 2.0, -0.1, 2.1, 0.9])
    x = torch.cat([x.double(), torch.full((4,), torch.nan, dtype=torch.float64)])
    (found,) = interpret(kernel(["r0 = erfcinv(x0)"], [D.Double], [D.Double], 16), [x])
    torch.testing.assert_close(torch.erfc(found[1:7]), x[1:7], rtol=1e-12, atol=0)
    assert found[7] == torch.inf and found[8] == -torch.inf and found[9:11].isnan().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_erfcinv_of_numbers_without_full_precision(dtype: torch.dtype) -> None:
    """Of these erfc has few digits, of the least one alone none."""
    limits = torch.finfo(dtype)
    least = limits.smallest_normal * limits.eps
    some = [least, 2 * least, 3 * least, 1000 * least, limits.tiny / 2, limits.tiny, 1e-30, 0.1]
    x = torch.tensor(some, dtype=dtype)
    kind = {torch.float32: D.Float, torch.float64: D.Double}[dtype]
    (found,) = interpret(kernel(["r0 = erfcinv(x0)"], [kind], [kind], len(x)), [x])
    for y in (found.double(), oracles.erfcinv(x.double())):
        logs = torch.special.erfcx(y).log() - y * y
        torch.testing.assert_close(logs, x.double().log(), rtol=4 * limits.eps, atol=0)


# --- tiles ---------------------------------------------------------------------------------------


def tile_kernel(call: str, rows: int, dtype: DataType, scan: bool, out: DataType) -> KernelSource:
    """``call`` of the tile ``t`` of shape [rows, 16]; a value a row, or a tile for a scan."""
    base = kernel(["r0 = x0"], [dtype], [out], rows * COLUMNS)
    lines = [
        "t = tl.reshape(x0, (N // 16, 16))",
        f"r = {call}",
        "r0 = tl.reshape(r, (N,))" if scan else "r0 = r",
    ]
    text = base.text.replace("    r0 = x0\n", "".join(f"    {line}\n" for line in lines))
    if not scan:
        text = text.replace("r0_ptr + i", "r0_ptr + tl.arange(0, N // 16)")
    return KernelSource("flat", text, base.args, base.constants, (1, 1, 1), 4, 1)


REDUCTIONS = {
    "reduce_sum": lambda t: t.sum(1, dtype=t.dtype),
    "reduce_prod": lambda t: t.prod(1, dtype=t.dtype),
    "reduce_max": lambda t: t.amax(1),
    "reduce_min": lambda t: t.amin(1),
    "reduce_any": lambda t: t.any(1),
    "reduce_all": lambda t: t.all(1),
}
SCANS = {
    "scan_sum": lambda t: t.cumsum(1, dtype=t.dtype),
    "scan_prod": lambda t: t.cumprod(1, dtype=t.dtype),
    "scan_max": lambda t: t.cummax(1).values,
    "scan_min": lambda t: t.cummin(1).values,
}
TILES = {**REDUCTIONS, **SCANS}
NUMBERS = (D.Double, D.Float, D.Int, D.Int32)
TILE_CASES = [
    (name, dtype)
    for name in TILES
    for dtype in ((D.Bool,) if name in ("reduce_any", "reduce_all") else NUMBERS)
]


def tile(dtype: DataType) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    found = torch.randint(-3, 4, (8, COLUMNS), generator=generator).double()
    if dtype in (D.Double, D.Float):
        found = found / 4
        found[1, 3], found[2, 5], found[3, 0], found[4, 15] = torch.nan, torch.inf, -torch.inf, -0.0
    if dtype is D.Bool:
        found[0], found[1] = 0, 1
    return found.to(dtype.info.torch)


@pytest.mark.parametrize(("name", "dtype"), TILE_CASES)
@pytest.mark.parametrize("how", ["arrays", "plain"])
def test_functions_of_tiles(
    name: str, dtype: DataType, how: str, request: pytest.FixtureRequest
) -> None:
    if how == "plain":
        request.getfixturevalue("plain")
    given = tile(dtype)
    source = tile_kernel(f"{name}(t, 1)", 8, dtype, name in SCANS, dtype)
    (found,) = interpret(source, [given])
    expected = TILES[name](given)
    found = found[: expected.numel()].reshape(expected.shape)
    torch.testing.assert_close(found, expected, equal_nan=True)


@pytest.mark.parametrize("how", ["arrays", "plain"])
@pytest.mark.parametrize("dtype", [D.Double, D.Float])
def test_welford_joins_lanes(dtype: DataType, how: str, request: pytest.FixtureRequest) -> None:
    """Every element is a set of one; the last four columns are empty sets."""
    if how == "plain":
        request.getfixturevalue("plain")
    given = torch.randn(8, COLUMNS, generator=torch.Generator().manual_seed(1)).to(dtype.info.torch)
    count = "count = (tl.arange(0, 16) < 12).to(t.dtype)[None, :] + tl.zeros_like(t)"
    join = "mean, m2, total = reduce_welford(t, tl.zeros_like(t), count, 1)"
    for part, call in enumerate(("mean", "m2", "total")):
        source = tile_kernel(call, 8, dtype, False, dtype)
        last = f"    r = {call}\n"
        text = source.text.replace(last, f"    {count}\n    {join}\n{last}")
        made = KernelSource("flat", text, source.args, source.constants, (1, 1, 1), 4, 1)
        (found,) = interpret(made, [given])
        rows = given[:, :12]
        expected = (rows.mean(1), rows.var(1, correction=0) * 12, torch.full((8,), 12.0))[part]
        torch.testing.assert_close(found[:8], expected.to(given.dtype))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [*NUMBERS, D.Bool])
def test_tiles_compile(dtype: DataType, target: str) -> None:
    calls = [(f"{name}(t, 1)", name in SCANS) for name, taken in TILE_CASES if taken is dtype]
    if dtype in (D.Double, D.Float):
        calls.append(("reduce_welford(t, t, t, 1)[0]", False))
    for call, scan in calls:
        source = tile_kernel(call, 64, dtype, scan, dtype)
        asm = compile_kernel(source, target, (True, True)).asm
        if dtype is D.Float and target == "sm_90" and re.match(r"\w+_(max|min)", call):
            assert re.search(r"(max|min)\.NaN\.f32", str(asm["ptx"]))


# --- random numbers ------------------------------------------------------------------------------

SEED, OFFSET = 2**63 + 12345, 2**33 + 7
DISTRIBUTIONS = [
    ("philox_uniform", D.Float),
    ("philox_uniform_double", D.Double),
    ("philox_normal", D.Float),
    ("philox_normal_double", D.Double),
]


def random_kernel(name: str, dtype: DataType, seed: int, offset: int) -> KernelSource:
    return kernel([f"r0 = {name}({seed}, {offset}, i.to(tl.int64))"], [], [dtype], 256)


@pytest.mark.parametrize(("name", "dtype"), DISTRIBUTIONS)
@pytest.mark.parametrize(("seed", "offset"), [(0, 0), (5, 9), (2**40 + 3, OFFSET)])
def test_random_numbers_are_the_reference(
    name: str, dtype: DataType, seed: int, offset: int
) -> None:
    (found,) = interpret(random_kernel(name, dtype, seed, offset), [])
    make = philox.uniform if "uniform" in name else philox.normal
    expected = make((256,), seed, offset, dtype.info.torch)
    if "uniform" in name:
        assert torch.equal(found, expected)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("start", [0, 1, 6, 2**32 + 3])
@pytest.mark.parametrize("how", ["arrays", "plain"])
def test_runs_of_words_are_the_words(start: int, how: str, request: pytest.FixtureRequest) -> None:
    if how == "plain":
        request.getfixturevalue("plain")
    parts = "tl.arange(0, N // {}).to(tl.int64)"
    calls = [
        f"philox_word_by_eight({SEED}, 5, {start}, {parts.format(8)}, [N])",
        f"philox_word({SEED}, 5, {start} + i.to(tl.int64))",
    ]
    if start % 4 == 0:
        calls.append(f"philox_word_by_four({SEED}, 5, {start // 4} + {parts.format(4)}, [N])")
    found = [interpret(kernel([f"r0 = {c}"], [], [D.Int32], 64), [])[0] for c in calls]
    assert all(torch.equal(words, found[0]) for words in found)
    if start < 8:
        bits = philox.words(32, SEED, 5).reshape(-1)[start : start + 64]
        assert torch.equal(found[0].long() & 0xFFFFFFFF, bits)
    for call in calls:
        for target in TARGETS:
            assert compile_kernel(kernel([f"r0 = {call}"], [], [D.Int32], 64), target, (True,)).asm


@pytest.mark.parametrize("start", [0, 1, 6, 2**32 + 3])
@pytest.mark.parametrize("name", ["philox_normal", "philox_uniform"])
def test_runs_of_numbers_are_the_numbers(start: int, name: str) -> None:
    parts = "tl.arange(0, N // {}).to(tl.int64)"
    calls = [
        f"{name}({SEED}, 5, {start} + i.to(tl.int64))",
        f"{name}_by_eight({SEED}, 5, {start}, {parts.format(8)}, [N])",
    ]
    if start % 4 == 0:
        calls.append(f"{name}_by_four({SEED}, 5, {start // 4} + {parts.format(4)}, [N])")
    found = [interpret(kernel([f"r0 = {c}"], [], [D.Float], 64), [])[0] for c in calls]
    assert all(torch.equal(numbers, found[0]) for numbers in found)
    for call in calls:
        for target in TARGETS:
            assert compile_kernel(kernel([f"r0 = {call}"], [], [D.Float], 64), target, (True,)).asm


def test_normal_numbers_are_near_those_of_float64() -> None:
    count = 1 << 14
    (found,) = interpret(kernel([f"r0 = philox_normal({SEED}, 5, i)"], [], [D.Float], count), [])
    u, v = (philox.words(count // 4, SEED, 5).reshape(-1, 2).double() + 0.5).mul(2.0**-32).unbind(1)
    radius, angle = torch.sqrt(-2 * torch.log(u)), 2 * math.pi * v
    exact = torch.stack((radius * torch.sin(angle), radius * torch.cos(angle)), 1).reshape(-1)
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=2e-6)
    assert abs(found.mean()) < 0.02
    assert abs(found.std() - 1) < 0.02


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("name", "dtype"), DISTRIBUTIONS)
def test_random_numbers_compile(name: str, dtype: DataType, target: str) -> None:
    assert compile_kernel(random_kernel(name, dtype, 5, OFFSET), target, (True,)).asm


@pytest.mark.parametrize(("dtype", "text"), [(D.Half, "tl.float16"), (D.BFloat16, "tl.bfloat16")])
@pytest.mark.parametrize("high", [1.0, -1.0, 0.0])
def test_round_below(dtype: DataType, text: str, high: float) -> None:
    values = high - torch.rand(64, generator=torch.Generator().manual_seed(2)) ** 8 / 1000
    values[0] = high
    lines = [f"r0 = round_below(x0, {high}, {text})"]
    source = kernel(lines, [D.Float], [dtype], 64)
    (found,) = interpret(source, [values])
    assert torch.equal(found, philox.round_below(values, high, dtype.info.torch))
    for target in TARGETS:
        assert compile_kernel(source, target, (True, True)).asm


# --- casts of the interpreter --------------------------------------------------------------------

CASTS = (D.Double, D.Float, D.Half, D.BFloat16, D.Int, D.Int32, D.Bool)


@pytest.mark.parametrize("source", (*CASTS, *EIGHTS))
def test_casts_round_as_torch_does(source: DataType) -> None:
    """From and to every type, floats of eight bits among them."""
    generator = torch.Generator().manual_seed(5)
    given = (torch.randn(64, generator=generator, dtype=torch.float64) * 30).to(source.info.torch)
    targets = (*CASTS, *EIGHTS)
    source_kernel = kernel(cast_lines(source, targets), [source], targets, 64)
    for found, target in zip(interpret(source_kernel, [given]), targets, strict=True):
        expected = given.to(target.info.torch)
        torch.testing.assert_close(found.double(), expected.double(), rtol=0, atol=0)


def cast_lines(source: DataType, targets: tuple[DataType, ...]) -> list[str]:
    return [f"r{i} = {cast_text('x0', source, d)}" for i, d in enumerate(targets)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", (*CASTS, *EIGHTS))
def test_casts_compile(source: DataType, target: str) -> None:
    targets = (*CASTS, *EIGHTS)
    made = kernel(cast_lines(source, targets), [source], targets, 128)
    assert compile_kernel(made, target, (True,) * len(made.args)).asm


# --- the interpreter's session -------------------------------------------------------------------


def test_a_session_leaves_triton_as_it_was() -> None:
    before = (tl.sum, tl.cumsum, interpreter.interpreter_builder)
    with language.session():
        assert tl.sum is not before[0]
    assert (tl.sum, tl.cumsum, interpreter.interpreter_builder) == before


def test_every_library_function_has_a_name_under_the_interpreter() -> None:
    assert set(language.namespace()) == set(language.namespace(plain=True))
    assert {"tanh", "philox_uniform", "reduce_welford", "libdevice"} <= set(language.namespace())
