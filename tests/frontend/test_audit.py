"""What validate says of a wrong result, and the table of audit."""

from __future__ import annotations

import inspect
import math

import pytest
import torch

from bench.recorded.definitions import make_inputs, of_model, record
from tritonfuser import DataType, FusionDefinition, ValidationError, get_val_tolerances
from tritonfuser.frontend.inspect.deviation import deviation, ulp
from tritonfuser.frontend.inspect.oracle import Evaluation
from tritonfuser.frontend.inspect.tolerances import Tolerance, tolerance, tolerances

EXACT = Tolerance(0.0, 0.0, "")
NEAR = Tolerance(1e-6, 1e-6, "")


def row_sums(dtype=DataType.Float):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True, dtype=dtype)
        fd.add_output(fd.ops.neg(x))
        fd.add_output(fd.ops.sum(x, [1]))
    return fd


def limits(x, tolerance):
    return tolerance.limit(torch.as_tensor(x))


def giving(fd, monkeypatch, *outputs):
    monkeypatch.setattr(fd, "run", lambda inputs, **kwargs: list(outputs))
    return fd


# --- messages ------------------------------------------------------------------------------------


def test_the_message_says_what_where_how_much_and_how_much_would_do(monkeypatch):
    x = torch.arange(12.0).reshape(3, 4)
    sums = x.sum(1)
    sums[1] += 0.5
    sums[2] += 0.25
    fd = giving(row_sums(), monkeypatch, -x, sums)
    with pytest.raises(ValidationError) as error:
        fd.validate([x])
    line = inspect.getsourcelines(row_sums)[1] + 4
    assert str(error.value) == (
        "output 1: 2 of 3 elements differ from the reference; the worst of tv2 is at [1]: "
        "expected 22, got 22.5 (262144 ULPs)\n"
        "  The largest absolute error is 0.5, the largest relative one 0.0227273.\n"
        f"  at {__file__}:{line}\n"
        "    fd.add_output(fd.ops.sum(x, [1]))\n"
        "  Allowed there is an error of 0: a bound on the rounding errors of all ops up to it."
    )
    assert isinstance(error.value, AssertionError)


def test_the_worst_element_is_the_one_farthest_beyond_what_is_allowed(monkeypatch):
    """A hundredth of a small number is worse than two thousandths of a great one."""
    x = torch.tensor([[1e4, 1.0]])
    wrong = torch.tensor([[-1e4 - 20.0, -1.015625]])
    with pytest.raises(ValidationError, match=r"the worst of tv1 is at \[0, 1\]") as error:
        giving(row_sums(), monkeypatch, wrong, x.sum(1)).validate([x], rtol=1e-6)
    assert "The largest absolute error is 20, the largest relative one 0.015625" in str(error.value)


def test_a_wrong_shape_names_the_line(monkeypatch):
    x = torch.ones(3, 4)
    with pytest.raises(ValidationError, match=r"output 1: expected shape \[3\], got \[4\]") as e:
        giving(row_sums(), monkeypatch, -x, torch.ones(4)).validate([x])
    assert "fd.add_output(fd.ops.sum(x, [1]))" in str(e.value)


def test_integers_are_exact_and_have_no_ulps(monkeypatch):
    x = torch.full((1, 2), 2**60, dtype=torch.int64)
    fd = giving(row_sums(DataType.Int), monkeypatch, -x, x.sum(1) + 1)
    with pytest.raises(ValidationError) as error:
        fd.validate([x])
    assert "expected 2305843009213693952, got 2305843009213693953\n" in str(error.value)
    assert "Allowed there is an error of 0" in str(error.value)


def test_results_too_large_for_their_dtype_are_infinite_in_the_reference_too():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        fd.add_output(fd.ops.exp(x))
    (out,) = fd.validate([torch.tensor([100.0, 1.0])])
    assert out[0] == math.inf


# --- audit ---------------------------------------------------------------------------------------


def test_audit_has_a_row_an_output(monkeypatch):
    x = torch.arange(12.0).reshape(3, 4)
    sums = x.sum(1)
    sums[2] += 0.25
    found = giving(row_sums(), monkeypatch, -x, sums).audit([x])
    first, second = found.rows
    assert (first.ok, second.ok, found.ok) == (True, False, False)
    assert (first.output, first.name, first.dtype) == ("output 0", "tv1", DataType.Float)
    assert first.shape == first.expected_shape == (3, 4)
    assert first.found.max_abs == 0.0
    assert first.found.ulps == 0.0
    # Small integers are exact in every order.
    assert (first.found.limit, second.found.limit) == (0.0, 0.0)
    assert (first.found.undecided, first.eager, second.eager) == (0, 0.0, 0.0)
    assert second.found.max_abs == 0.25
    assert second.found.index == (2,)
    assert (second.found.expected, second.found.actual) == (38.0, 38.25)
    assert second.found.ulps == 0.25 / 2.0 ** (5 - 23)
    assert second.loc.line == inspect.getsourcelines(row_sums)[1] + 4


def test_audit_prints_as_a_table(monkeypatch):
    x = torch.arange(12.0).reshape(3, 4)
    lines = str(giving(row_sums(), monkeypatch, -x, x.sum(1) + 1).audit([x])).splitlines()
    columns = "output dtype shape max abs err max rel err ULPs worst at expected got"
    columns += " bound undecided eager err ok"
    assert " ".join(lines[0].split()) == columns
    assert lines[2].split()[:3] == ["output", "0", "(tv1)"]
    assert lines[2].split()[-1] == "yes"
    assert lines[3].split()[-1] == "NO"
    assert len(lines) == 4


def test_audit_runs_the_definition_and_looks_at_inputs_written_to():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        fd.add_output(fd.ops.neg(x), x)
        fd.add_output(fd.ops.add(x, fd.ops.uniform(0.0, 1.0, [4])))
    x = torch.randn(4)
    before = x.clone()
    returned, written = fd.audit([x]).rows
    assert torch.equal(x, -before)
    assert (returned.output, written.output) == ("output 0", "input 0, written by the run,")
    assert not returned.is_random
    assert returned.ok
    assert written.ok
    assert str(fd.audit([x])).splitlines()[2].endswith("yes")


def test_audit_takes_references(monkeypatch):
    x = torch.ones(2, 2)
    found = row_sums().audit([x], [-x, torch.zeros(2)])
    assert [row.ok for row in found.rows] == [True, False]
    with pytest.raises(ValidationError, match="expected 2 reference outputs"):
        row_sums().audit([x], [x])
    fd = giving(row_sums(), monkeypatch, -x, torch.ones(3))
    row = fd.audit([x]).rows[1]
    assert not row.ok
    assert (row.shape, row.expected_shape) == ((3,), (2,))
    assert "NO" in str(fd.audit([x]))


# --- deviation -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "size", "expected"),
    [
        (torch.float32, 1.0, 2.0**-23),
        (torch.float32, 1.99, 2.0**-23),
        (torch.float32, 2.0, 2.0**-22),
        (torch.float32, 0.0, 2.0**-149),
        (torch.float32, 1e-40, 2.0**-149),
        (torch.float64, 1.0, 2.0**-52),
        (torch.bfloat16, 256.0, 2.0),
        (torch.float16, 0.5, 2.0**-11),
        (torch.float8_e4m3fn, 1.0, 0.125),
        (torch.float8_e5m2, 4.0, 1.0),
        (torch.complex64, 1.0, 2.0**-23),
    ],
)
def test_the_unit_of_the_last_place(dtype, size, expected):
    assert ulp(size, dtype) == expected


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_neighbours_are_one_ulp_apart(dtype):
    for size in (1.0, 3.0, 1e-4, 1e4):
        one = torch.tensor(size, dtype=dtype)
        other = torch.nextafter(one, torch.tensor(math.inf, dtype=dtype))
        assert deviation(other, one, limits(one, EXACT)).ulps == 1.0


@pytest.mark.parametrize(
    ("actual", "expected", "wrong", "max_abs"),
    [
        ([math.nan, math.inf, -math.inf, 0.0], [math.nan, math.inf, -math.inf, -0.0], 0, 0.0),
        ([1.0, math.nan], [1.0, 1.0], 1, math.inf),
        ([1.0, 2.0], [1.0, math.nan], 1, math.inf),
        ([1.0, math.inf], [1.0, -math.inf], 1, math.inf),
        ([1.0, math.inf], [1.0, 2.0], 1, math.inf),
        ([1.0, 0.0], [1.0, 1e-7], 0, 1e-7),
        ([], [], 0, 0.0),
    ],
)
def test_numbers_that_are_none(actual, expected, wrong, max_abs):
    found = deviation(torch.tensor(actual), torch.tensor(expected), limits(expected, NEAR))
    assert found.wrong == wrong
    assert found.ok is (wrong == 0)
    assert found.max_abs == pytest.approx(max_abs)
    if wrong:
        assert found.index == (1,)
        assert found.ulps == math.inf
        assert found.max_rel == math.inf


def test_integers_far_apart_and_close_together():
    low, high = -(2**63), 2**63 - 1
    for one, other in ((low, 0), (low, high), (high, high - 1), (low, low + 1)):
        found = deviation(torch.tensor([one]), torch.tensor([other]), limits([other], EXACT))
        assert found.wrong == 1
        assert found.max_abs >= 1
        assert (found.expected, found.actual) == (other, one)
    assert deviation(
        torch.tensor([high, low]), torch.tensor([high, low]), limits([high, low], EXACT)
    ).ok


def test_complex_numbers():
    one = torch.tensor([1 + 1j, 3 + 4j])
    other = torch.tensor([1 + 1j, 3 + 4.5j])
    found = deviation(other, one, limits(one, NEAR))
    assert (found.wrong, found.index, found.max_abs) == (1, (1,), 0.5)
    assert found.max_rel == pytest.approx(0.1)
    assert deviation(one * math.nan, one * math.nan, limits(one, NEAR)).ok


def test_a_part_beside_an_infinite_one_may_be_off_by_as_much_as_others():
    one, other = (torch.tensor([complex(math.inf, part)]) for part in (1.0, 1.0 + 1e-6))
    assert deviation(other, one, torch.tensor([1e-5])).ok
    found = deviation(other, one, torch.tensor([1e-7]))
    assert found.wrong == 1 and found.max_abs == pytest.approx(1e-6, rel=0.1)


def test_bools_have_no_ulps():
    found = deviation(
        torch.tensor([True, False]), torch.tensor([True, True]), limits([True, True], EXACT)
    )
    assert (found.wrong, found.index, found.ulps) == (1, (1,), None)


def test_packed_numbers_are_compared_as_bytes():
    one = torch.tensor([1, 2, 3], dtype=torch.uint8)
    other = torch.tensor([1, 2, 7], dtype=torch.uint8)
    packed = [given.view(torch.float4_e2m1fn_x2) for given in (one, other)]
    assert deviation(packed[0], packed[0], limits(packed[0], EXACT)).ok
    found = deviation(packed[1], packed[0], limits(packed[0], EXACT))
    assert (found.wrong, found.index, found.expected, found.actual) == (1, (2,), 3, 7)


# --- tolerances ----------------------------------------------------------------------------------


def test_a_tolerance_says_where_it_comes_from():
    assert tolerance(DataType.Bool, 8).source == "DataType.Bool is compared exactly"
    plain = tolerance(DataType.Half, 1)
    assert plain.source == "nvFuser's table for DataType.Half without a reduction"
    assert (plain.atol, plain.rtol) == tolerances(DataType.Half, 1)


def test_a_matrix_product_is_a_reduction_of_its_inner_extent(monkeypatch):
    with FusionDefinition() as fd:
        a = fd.define_tensor([-1, -1], contiguity=True)
        b = fd.define_tensor([-1, -1], contiguity=True)
        product = fd.ops.matmul(a, b)
        fd.add_output(product)
        fd.add_output(fd.ops.linear(a, fd.ops.permute(b, [1, 0])))
        fd.add_output(fd.ops.sum(product, [0]))
    a, b = torch.randn(8, 512), torch.randn(512, 16)
    assert Evaluation(fd.fusion.ir, [a, b], True).lengths == [512, 512, 4096]
    assert get_val_tolerances(fd.fusion, [a, b])[0] == tolerances(DataType.Float, 512)
    exact = (a.double() @ b.double()).float()
    total = exact.sum(0)
    giving(fd, monkeypatch, exact + 2e-5, exact, total).validate([a, b])
    with pytest.raises(ValidationError, match="output 0"):
        giving(fd, monkeypatch, exact + 0.2, exact, total).validate([a, b])


@pytest.mark.parametrize("index", [13, pytest.param(15, marks=pytest.mark.slow)])
def test_layer_norm_backwards_of_bert_are_valid_at_full_size(index):
    """Columns of 1024 rows: the interpreter adds them in pairs, as a GPU does."""
    entry = of_model("hf-bert")[index]
    fd = record(entry)
    fd.validate(make_inputs(entry, fd.fusion.ir))
