"""The reference, the tolerances, validate."""

from __future__ import annotations

import math

import pytest
import torch

from tritonfuser import (
    DataType,
    FusionDefinition,
    ValidationError,
    get_val_tolerances,
    validate_with_auto_inferred_outputs,
)
from tritonfuser.frontend.inspect.oracle import Evaluation, reference
from tritonfuser.frontend.inspect.tolerances import tolerances
from tritonfuser.frontend.run.validation import copied


def test_the_reference_runs_in_float64_or_in_the_fusions_dtypes():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], dtype=DataType.BFloat16)
        fd.add_output(fd.ops.mul(x, 0.1))
        fd.add_output(fd.ops.cast(fd.ops.exp(x), DataType.BFloat16))
        fd.add_output(fd.ops.gt(x, 0.0))
    x = torch.randn(100).bfloat16()
    wide = reference(fd.fusion, [x])
    assert [t.dtype for t in wide] == [torch.float64, torch.float64, torch.bool]
    assert torch.equal(wide[0], x.double() * 0.1)
    # what is stored as bf16 is rounded to it, once
    assert torch.equal(wide[1], x.double().exp().bfloat16().double())
    own = reference(fd.fusion.ir, [x], double=False)
    assert [t.dtype for t in own] == [torch.float32, torch.bfloat16, torch.bool]
    assert torch.equal(own[0], x.float() * 0.1)


def test_the_reference_computes_integers_as_float64_in_float_ops():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], dtype=DataType.Int)
        fd.add_output(fd.ops.reciprocal(x))
    x = torch.arange(1, 50)
    assert torch.equal(reference(fd.fusion, [x])[0], 1.0 / x.double())
    assert torch.equal(reference(fd.fusion, [x], double=False)[0], 1.0 / x)


def test_the_reference_rounds_scalars_to_their_dtype():
    """0.3 is another number in bf16, given or computed; in Float it is one more."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True, dtype=DataType.Double)
        s, f = fd.define_scalar(DataType.BFloat16), fd.define_scalar(DataType.Float)
        fd.add_output(fd.ops.add(x, s))
        fd.add_output(fd.ops.add(x, fd.ops.cast(f, DataType.Half)))
        fd.add_output(fd.ops.add(x, f))
    x = torch.zeros(1, dtype=torch.float64)
    wanted = [torch.tensor(0.3, dtype=d) for d in (torch.bfloat16, torch.float16, torch.float32)]
    for one, number in zip(reference(fd.fusion, [x, 0.3, 0.3]), wanted, strict=True):
        assert one.item() == number.item()


def test_the_reference_does_scalar_ops_and_sizes():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1])
        s = fd.define_scalar(DataType.Int)
        rows = fd.ops.cast(fd.ops.mul(fd.ops.reciprocal(s), 8.0), DataType.Int)
        fd.add_output(fd.ops.reshape(x, [rows, -1]))
        fd.add_output(fd.ops.mul(x, x.size(1)))
    x = torch.randn(4, 6)
    made, scaled = reference(fd.fusion, [x, 4])
    assert torch.equal(made, x.double().reshape(2, 12))
    assert torch.equal(scaled, x.double() * 6)


def test_the_reference_hides_what_a_run_hides_and_keeps_inputs():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1])
        fd.add_output(fd.ops.neg(x), x)
        fd.add_output(fd.ops.exp(x))
    x = torch.randn(5)
    before = x.clone()
    (out,) = reference(fd.fusion, [x])
    assert torch.equal(out, before.double().exp())
    assert torch.equal(x, before)


def test_unused_results_are_not_computed(monkeypatch):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1])
        fd.ops.exp(x)
        fd.add_output(fd.ops.neg(x))
    ran = []
    original = Evaluation._run
    monkeypatch.setattr(
        Evaluation, "_run", lambda self, node: (ran.append(node.op), original(self, node))
    )
    reference(fd.fusion, [torch.ones(2)])
    assert ran == ["neg"]


@pytest.mark.parametrize(
    ("dtype", "length", "expected"),
    [
        (DataType.Float, 1, (1.68222e-06, 2.23704e-06)),
        (DataType.Double, 1, (1.68222e-06, 2.23704e-06)),
        (DataType.ComplexFloat, 1, (1.68222e-06, 2.23704e-06)),
        (DataType.Half, 1, (0.00390625, 0.0078125)),
        (DataType.BFloat16, 1, (0.00390625, 0.0078125)),
        (DataType.Float, 4, (2.23704e-06, 2.23704e-08)),
        (DataType.Float, 5, (2.95788e-06, 2.95788e-08)),
        (DataType.Float, 2**20, (0.00343043, 0.0000343043)),
        (DataType.Float, 2**21, (2 * 0.00343043, 0.02 * 0.00343043)),
        (DataType.Float, 2**30, (2 * 0.00343043, 0.02 * 0.00343043)),
        (DataType.Half, 4, (0.0078125, 0.000078125)),
        (DataType.BFloat16, 4, (0.078125, 0.00078125)),
        (DataType.Float8_e5m2, 4, (0.078125, 0.00078125)),
        (DataType.Int, 2**20, (0.0, 0.0)),
        (DataType.Bool, 1, (0.0, 0.0)),
    ],
)
def test_tolerances(dtype, length, expected):
    assert tolerances(dtype, length) == pytest.approx(expected, rel=1e-12)


def test_lengths_of_reductions_multiply_along_the_way():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1])
        total = fd.ops.sum(x, [1])
        fd.add_output(fd.ops.neg(x))
        fd.add_output(total)
        fd.add_output(fd.ops.sum(fd.ops.exp(total), [0]))
        fd.add_output(fd.ops.cumsum(x, 1))
        fd.add_output(fd.ops.var_mean(x, [0, 1])[1])
        fd.add_output(fd.ops.add(x, fd.ops.broadcast(total, [False, True])))
    x = torch.rand(3, 8)
    assert Evaluation(fd.fusion.ir, [x], True).lengths == [1, 8, 24, 8, 24, 8]
    found = get_val_tolerances(fd.fusion, [x])
    assert found == [tolerances(DataType.Float, n) for n in (1, 8, 24, 8, 24, 8)]


# --- validate ----------------------------------------------------------------------------------


def softmax():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        top = fd.ops.broadcast(fd.ops.max(x, [1]), [False, True])
        exps = fd.ops.exp(fd.ops.sub(x, top))
        total = fd.ops.broadcast(fd.ops.sum(exps, [1]), [False, True])
        fd.add_output(fd.ops.div(exps, total))
    return fd


def test_validate_returns_the_outputs():
    x = torch.randn(6, 40)
    (out,) = softmax().validate([x])
    torch.testing.assert_close(out, torch.softmax(x, 1))
    (out,) = softmax().manual_validate([x])
    torch.testing.assert_close(out, torch.softmax(x, 1))
    (out,) = softmax().validate([[x]], [torch.softmax(x, 1)], device="cpu")
    torch.testing.assert_close(out, torch.softmax(x, 1))


def test_validate_finds_a_wrong_result(monkeypatch):
    fd = softmax()
    x = torch.randn(6, 40)

    def off_by_a_little(inputs, **kwargs):
        out = torch.softmax(x, 1)
        out[2, 3] += 1e-3
        return [out]

    monkeypatch.setattr(fd, "run", off_by_a_little)
    with pytest.raises(ValidationError, match=r"output 0: 1 of 240 elements .* at \[2, 3\]"):
        fd.validate([x])


def test_validate_with_reference_outputs_wants_their_number_shape_and_values():
    x = torch.randn(6, 40)
    good = torch.softmax(x, 1)
    for wrong, message in (
        ([good, good], "expected 1 reference outputs"),
        ([good[:2]], r"expected shape \[2, 40\], got \[6, 40\]"),
        ([good + 1], "240 of 240 elements differ"),
    ):
        with pytest.raises((RuntimeError, AssertionError), match=message):
            softmax().validate([x], wrong)


def test_validate_checks_what_is_written_into_inputs(monkeypatch):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        fd.add_output(fd.ops.neg(x), x)
    x = torch.randn(4)
    before = x.clone()
    assert fd.validate([x]) == []
    assert torch.equal(x, -before)
    monkeypatch.setattr(fd, "run", lambda inputs, **kwargs: [])
    with pytest.raises(ValidationError, match="input 0, written by the run"):
        fd.validate([x])


def test_validate_lets_random_numbers_be():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        drawn = fd.ops.uniform(0.0, 1.0, [2, 3])
        fd.add_output(fd.ops.add(x, drawn))
        fd.add_output(fd.ops.neg(x))
    x = torch.randn(2, 3)
    noisy, plain = fd.validate([x])
    assert torch.equal(plain, -x)
    assert ((noisy - x) > -1e-6).all()


def test_nan_equals_nan():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        fd.add_output(fd.ops.log(x))
    (out,) = fd.validate([torch.tensor([-1.0, 0.0, 1.0, math.inf])])
    assert out.isnan().tolist() == [True, False, False, False]


def test_validate_definition_runs_the_printed_program():
    fd = softmax()
    x = torch.randn(6, 40)
    fd.validate_definition([x])
    fd.validate_definition([x], fd.run([x]))
    with pytest.raises(ValidationError, match="output 0 of the printed definition differs"):
        fd.validate_definition([x], [torch.zeros(6, 40)])
    with pytest.raises(ValidationError, match="expected strides"):
        fd.validate_definition([x], [torch.zeros(40, 6).t()])
    with pytest.raises(ValidationError, match="expected 0 outputs, got 1"):
        fd.validate_definition([x], [])


def test_auto_inferred_outputs():
    fd = softmax()
    x = torch.randn(6, 40)
    validate_with_auto_inferred_outputs(fd.fusion, fd.run([x]), [x])
    with pytest.raises(ValidationError, match="output 0"):
        validate_with_auto_inferred_outputs(fd.fusion, [torch.zeros(6, 40)], [x])


def test_copies_have_the_layout_of_the_original():
    base = torch.arange(24.0).reshape(4, 6)
    for tensor in (base.t(), base[1:, ::2], base[:1].expand(4, 6), base[:0], base[0, 0]):
        (copy,) = copied([tensor])
        assert torch.equal(copy, tensor)
        assert copy.stride() == tensor.stride()
        assert not tensor.numel() or copy.data_ptr() != tensor.data_ptr()


@pytest.mark.parametrize("widths", [[2, -1], [-1, 2], [3, -3], [-3, 4]])
@pytest.mark.parametrize("size", [0, 1, 2])
def test_a_dim_that_padding_alone_makes_long_enough_for_a_cut(size, widths):
    """``torch.nn.functional.pad`` refuses it: it cuts before it pads."""
    given = torch.arange(1.0, size + 1)
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.pad(fd.from_pytorch(given), widths))
    whole = [0.0] * max(widths[0], 0) + given.tolist() + [0.0] * max(widths[1], 0)
    kept = whole[max(-widths[0], 0) : len(whole) + min(widths[1], 0)]
    assert fd.run([given])[0].tolist() == kept
    fd.validate([given])
