"""What docs/ writes from the op table is what the table says: stubs for type checkers, a page."""

from __future__ import annotations

import ast
import importlib.util
import inspect
from pathlib import Path

import pytest

from tritonfuser import FusionDefinition, ops
from tritonfuser.frontend.record.recorded_operators import RecordedOperators
from tritonfuser.ops.param_docs import BY_NAME, doc_of
from tritonfuser.ops.registry import OPS

DOCS = Path(__file__).parents[1] / "docs"


def script(name):
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_stubs_are_up_to_date():
    stubs = script("stubs")
    assert stubs.STUB.read_text() == stubs.stub(), "run: python docs/stubs.py"


def test_the_stub_of_operators_is_up_to_date():
    stubs = script("stubs")
    assert stubs.OPERATORS.read_text() == stubs.operators_stub(), "run: python docs/stubs.py"
    tree = ast.parse(stubs.operators_stub())
    stubbed = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    defined = {name for name, value in vars(RecordedOperators).items() if inspect.isfunction(value)}
    assert stubbed == defined - {"_has_no_number"}


def test_every_parameter_has_a_line():
    for op in OPS.values():
        docstring = inspect.getdoc(getattr(FusionDefinition.Operators, op.name))
        for param in op.params:
            line = docstring.partition(f"\n{param.name} : ")[2].split("\n")[1]
            assert line == f"    {doc_of(param)}"
            assert line.endswith(".") and len(line) < 100
    shared = {param.name for op in OPS.values() for param in op.params if not param.doc}
    assert set(BY_NAME) <= shared


def test_the_page_is_up_to_date():
    page = script("ops")
    assert page.PAGE.read_text() == page.page(), "run: python docs/ops.py"


def test_every_op_is_on_the_page():
    text = (DOCS / "ops.md").read_text()
    for op in OPS.values():
        assert f"| `{op.name}(" in text
        assert op.doc.replace("|", "\\|") in text


def stub_methods():
    tree = ast.parse(script("stubs").stub())
    (operators,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    found = {}
    for node in operators.body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
    return found


METHODS = stub_methods()


@pytest.mark.parametrize("op", OPS.values(), ids=lambda op: op.name)
def test_a_stub_is_the_signature(op):
    """Names, defaults and docstring of the first form are those of ``fd.ops.NAME``."""
    first, *others = METHODS[op.name]
    signature = inspect.signature(getattr(FusionDefinition().ops, op.name))
    arguments = [*first.args.args[1:], *first.args.kwonlyargs]
    assert [a.arg for a in arguments] == list(signature.parameters)
    defaults = [d for d in [*first.args.defaults, *first.args.kw_defaults] if d is not None]
    wanted = [p.default for p in signature.parameters.values() if p.default is not p.empty]
    assert [ast.unparse(d) for d in defaults] == [str(value) for value in wanted]
    assert ast.get_docstring(first) == inspect.getdoc(getattr(ops, op.name))
    names = set(signature.parameters) | {"dim", "axes"}
    for other in others:
        assert {a.arg for a in [*other.args.args[1:], *other.args.kwonlyargs]} <= names


def test_nothing_else_is_in_the_stubs():
    assert set(METHODS) - {"__init__"} == set(OPS)


PROGRAM = """
import torch
from tritonfuser import DataType, FusionDefinition, define_tensor, ops
with FusionDefinition() as fd:
    x, s = fd.define_tensor([-1, 4]), fd.define_scalar()
    reveal_type(fd.ops.add(x, 1.0))
    reveal_type(fd.ops.add(2, s))
    reveal_type(fd.ops.sum(x, DataType.Double))
    reveal_type(fd.ops.sum(x, dim=1, keepdim=True))
    reveal_type(fd.ops.var_mean(x, [0]))
    reveal_type(ops.shape(x))
    fd.ops.reshape(x, (x.size(0), 2, 2))
    fd.ops.nothing(x)
    fd.ops.neg("x")
    a, b = x, fd.define_tensor(shape=[4], dtype=torch.float32)
    reveal_type(a * 2.0 + b)
    reveal_type(2.0 - a)
    reveal_type(s * a)
    reveal_type(1 - s * 2)
    reveal_type(-a @ b)
    reveal_type(a < 1.0)
    fd.define_tensor(shapee=[4])
    fd.define_tensor([4], [1], DataType.Half, static_sizes=True)
    fd.define_tensor(2, torch.float16)
    fd.define_tensor(symbolic_sizes=[-1], contiguous=[True])
    define_tensor(shapee=[4])
    a + "x"
"""

REVEALED = """\
6: note: Revealed type is "tritonfuser.frontend.record.tensor_view.TensorView"
7: note: Revealed type is "tritonfuser.frontend.record.val.Val"
8: note: Revealed type is "tritonfuser.frontend.record.tensor_view.TensorView"
9: note: Revealed type is "tritonfuser.frontend.record.tensor_view.TensorView"
10: note: Revealed type is "tuple[tritonfuser.frontend.record.tensor_view.TensorView, \
tritonfuser.frontend.record.tensor_view.TensorView]"
11: note: Revealed type is "list[tritonfuser.frontend.record.val.Val]"
13: error: "Operators" has no attribute "nothing"
14: error: No overload variant of "neg" of "Operators" matches argument type "str"
16: note: Revealed type is "tritonfuser.frontend.record.tensor_view.TensorView"
17: note: Revealed type is "tritonfuser.frontend.record.tensor_view.TensorView"
18: note: Revealed type is "tritonfuser.frontend.record.tensor_view.TensorView"
19: note: Revealed type is "tritonfuser.frontend.record.val.Val"
20: note: Revealed type is "tritonfuser.frontend.record.tensor_view.TensorView"
21: note: Revealed type is "tritonfuser.frontend.record.tensor_view.TensorView"
22: error: Unexpected keyword argument "shapee" for overloaded function "define_tensor" of \
"DefinesTensors"; did you mean "shape"?
26: error: Unexpected keyword argument "shapee"; did you mean "shape"?
27: error: No overload variant of "__add__" of "RecordedOperators" matches argument type "str"
"""


@pytest.mark.slow
def test_what_a_type_checker_sees(tmp_path):
    api = pytest.importorskip("mypy.api")
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    root = DOCS.parent
    cache = f"--cache-dir={tmp_path / 'cache'}"
    printed, _, _ = api.run([f"--config-file={root / 'pyproject.toml'}", cache, str(path)])
    mine = [line.partition(":")[2] for line in printed.splitlines() if line.startswith(str(path))]
    shown = [line.partition("  [")[0].strip() for line in mine if "ossible over" not in line]
    shown = [line for line in shown if "def neg" not in line and "def __add__" not in line]
    assert shown == REVEALED.splitlines()
