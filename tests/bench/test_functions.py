"""Definitions written as torch functions: the values of the reference, one graph for a compiler."""

from __future__ import annotations

import pytest
import torch

from bench.functions import unseeded, write
from bench.functions.forms import FORMS
from bench.measure.errors import max_error
from bench.recorded.definitions import load, make_inputs, record
from bench.recorded.shrink import shrink
from tests.definitions.test_definitions import tolerance
from tests.e2e.checking import copied
from tests.e2e.ops.calls import record as record_calls
from tests.e2e.ops.every_op import calls_of
from tests.e2e.ops.samples import pointwise_calls, takes
from tritonfuser import DataType, FusionDefinition
from tritonfuser.cache.keys.signature import signature
from tritonfuser.errors import DefinitionError
from tritonfuser.frontend.inspect.oracle import Evaluation
from tritonfuser.lowering.passes.concretize import concretize
from tritonfuser.ops.forms import Pointwise
from tritonfuser.ops.registry import OPS

ENTRIES = load()
by_name = pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
WHOLE = ["convnet-0", "hf-bert-9", "hf-llama3-block-2", "nanogpt-3", "nanogpt-15"]


def check(fusion, inputs, run=None):
    """What the function gives, against float64; both draw the same random numbers."""
    written = write(fusion, "cpu")
    run = run or written.load()
    torch.manual_seed(0)
    expected = Evaluation(unseeded(fusion), inputs, double=True).outputs
    given = copied(inputs)
    torch.manual_seed(0)
    actual = run(*written.arguments(given))
    shown = [place for place, out in enumerate(fusion.outputs) if not out.hidden]
    assert [t.dtype for t in actual] == [fusion.outputs[i].value.dtype.info.torch for i in shown]
    assert max_error(actual, [expected[i] for i in shown]) <= tolerance(fusion)
    for out, value in zip(fusion.outputs, expected, strict=True):
        if out.alias_of is not None:
            written_into = given[fusion.inputs.index(out.alias_of)]
            assert max_error([written_into], [value]) <= tolerance(fusion)


@by_name
def test_values_in_eager(entry):
    entry = shrink(entry)
    fusion = record(entry).fusion.ir
    check(fusion, make_inputs(entry, fusion))


@pytest.mark.parametrize("name", WHOLE)
def test_compiles_as_one_graph(name):
    entry = shrink(next(e for e in ENTRIES if e.name == name))
    fusion = record(entry).fusion.ir
    torch._dynamo.reset()
    run = torch.compile(write(fusion, "cpu").load(), fullgraph=True, backend="eager")
    check(fusion, make_inputs(entry, fusion), run)


# --- single ops ----------------------------------------------------------------------------------

POINTWISE = [
    (name, dtype)
    for name, op in OPS.items()
    if isinstance(op.form, Pointwise) and op.form.variants and name != "cast"
    for dtype in (DataType.Float, DataType.BFloat16, DataType.Int, DataType.Bool)
    if takes(op, dtype)
]


def written_or_refused(name, calls):
    """Whether a function could be written; then it gives what torch does op by op."""
    recorded = record_calls(name, calls)
    fusion, inputs = recorded.fd.fusion.ir, recorded.inputs
    fusion = concretize(fusion, signature(fusion, inputs, torch.device("cpu")))
    try:
        written = write(fusion, "cpu")
    except DefinitionError as error:
        assert "bench/functions" in str(error)
        return False
    torch.manual_seed(0)
    expected = Evaluation(unseeded(fusion), inputs, double=False).outputs
    torch.manual_seed(0)
    actual = written.load()(*written.arguments(inputs))
    for found, wanted, what in zip(actual, expected, recorded.names, strict=True):
        torch.testing.assert_close(found, wanted, equal_nan=True, msg=lambda m, w=what: f"{w}: {m}")
    return True


@pytest.mark.parametrize(("name", "dtype"), POINTWISE, ids=lambda x: getattr(x, "name", x))
def test_pointwise_ops_are_torchs_or_refused(name, dtype):
    written_or_refused(name, pointwise_calls(OPS[name], dtype, "cpu"))


@pytest.mark.parametrize("name", ["cast", *FORMS])
def test_other_ops_are_torchs(name):
    written = [written_or_refused(name, [call]) for call in calls_of(name)]
    assert any(written)


def test_a_cast_to_the_same_dtype_is_a_copy():
    with FusionDefinition() as fd:
        x = fd.define_tensor([4], dtype=DataType.Float)
        fd.add_output(fd.ops.cast(x, DataType.Float))
    given = torch.ones(4)
    (made,) = write(fd.fusion.ir).load()(given)
    assert torch.equal(made, given) and made.data_ptr() != given.data_ptr()


def test_what_torch_has_no_form_for_is_refused():
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.welford(fd.define_tensor([4, 8]), dims=[1])[0])
    with pytest.raises(DefinitionError, match="welford: expected an op that has a form in torch"):
        write(fd.fusion.ir)


def test_scalars_of_the_run_are_arguments_but_not_computed_with():
    with FusionDefinition() as fd:
        x, c = fd.define_tensor([4]), fd.define_scalar(None, dtype=DataType.Double)
        fd.add_output(fd.ops.mul(x, c))
    written = write(fd.fusion.ir)
    assert "def f(tv0, c0):" in written.text
    assert torch.equal(*written.load()(torch.ones(4), 3.0), torch.full((4,), 3.0))
    with FusionDefinition() as fd:
        x, c = fd.define_tensor([4]), fd.define_scalar(None, dtype=DataType.Double)
        fd.add_output(fd.ops.mul(x, fd.ops.add(c, 1.0)))
    with pytest.raises(DefinitionError, match="scalars that are constants"):
        write(fd.fusion.ir)


def test_seeds_are_no_arguments():
    with FusionDefinition() as fd:
        seed = fd.define_scalar(None, dtype=DataType.Int)
        fd.add_output(fd.ops.uniform(0.0, 1.0, [4], rng_seed=seed, rng_offset=seed))
    written = write(fd.fusion.ir, "cpu")
    assert written.places == ()
    assert written.text.count("torch.rand((4,), dtype=torch.float32, device='cpu')") == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("div", [-2, 0, 0, 1, (2**40 + 3) // 4]),
        ("fmod", [-1, -1, 0, 3, 3]),
        ("mod", [-1, -1, 0, 3, 3]),
        ("remainder", [3, 3, 0, 3, 3]),
    ],
)
def test_integers_are_divided_by_numbers(name, expected):
    with FusionDefinition() as fd:
        x = fd.define_tensor([5], dtype=DataType.Int)
        fd.add_output(getattr(fd.ops, name)(x, 4))
    given = torch.tensor([-9, -1, 0, 7, 2**40 + 3])
    (found,) = write(fd.fusion.ir, "cpu").load()(given)
    assert found.tolist() == expected
    assert torch.equal(found, fd.run([given])[0])
