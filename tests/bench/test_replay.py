"""The kernels of two trees side by side: what is kept, what is told, what is left out."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict

import pytest
import torch

from bench.replay import collector, corpus
from bench.replay.compare import ReplayError, compare, load
from bench.replay.entry import CPU, FUSED, GIVEN, OPEN, Entry, specs_of
from bench.replay.normal_form import Renames, code
from bench.replay.trees import ROOT, checked_out, replay
from tritonfuser import DataType, FusionDefinition

# --- an entry, here ------------------------------------------------------------------------------


def row_sums() -> FusionDefinition:
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=True, dtype=DataType.Float)
        fd.add_output(fd.ops.sum(fd.ops.exp(x), [1]))
    return fd


def matrix(rows: int, columns: int) -> tuple:
    return specs_of([torch.empty(rows, columns, device="meta")])


def entry(**changes) -> Entry:
    facts = {"archs": ("sm_90", CPU), "inputs": matrix(64, 1024), **changes}
    return Entry("part", "sums", repr(row_sums()), **facts)


def collected(one: Entry) -> dict:
    """The records of an entry, by arch and change, as they are written."""
    plain = json.loads(json.dumps(asdict(one)))
    return {tuple(r["key"][2:]): r for r in collector.records_of(plain)}


def test_a_run_is_kernels_reasons_and_the_plan():
    found = collected(entry())
    assert set(found) == {("sm_90", ""), (CPU, "")}
    (kernel,) = found["sm_90", ""]["kernels"]
    assert "def launch(" in kernel["text"] and kernel["facts"]["num_warps"] == "8"
    texts = found[CPU, ""]["texts"]
    assert texts["plan"].startswith("def run(") and texts["program"] == repr(row_sums())
    assert "block_r = 1024" in texts["explain"] and "not scan: it has no scan" in texts["explain"]


def test_open_sizes_have_guards():
    found = collected(entry(mode=OPEN, varying=(matrix(16, 96), matrix(32, 512))))
    assert "size1 <= 1024" in found["sm_90", ""]["texts"]["guards"]
    assert "guard size1 <= 1024" in found[CPU, ""]["texts"]["recompiles"]
    assert len(found[CPU, ""]["kernels"]) == 3


def test_a_tree_that_cannot_be_asked_is_skipped(monkeypatch):
    monkeypatch.setattr(FusionDefinition, "kernels", lambda self, inputs, *, arch=None: [])
    found = collected(entry(mode=OPEN, varying=(matrix(16, 96),)))["sm_90", ""]
    assert found["skipped"] == "fd.kernels has no varying="


def test_each_field_of_given_params_is_changed_alone():
    found = collected(entry(mode=GIVEN, archs=(CPU,)))
    assert found[CPU, "s0 num_warps=8"]["kernels"][0]["facts"]["num_warps"] == "8"
    assert "block_r=512 is too small" in found[CPU, "s0 block_r=512"]["texts"]["error"]


def test_matrix_products_may_be_fused():
    with FusionDefinition() as fd:
        a, b = (fd.define_tensor([-1, -1], contiguity=True, dtype=DataType.Half) for _ in "ab")
        fd.add_output(fd.ops.relu(fd.ops.matmul(a, b)))
    halves = specs_of(torch.empty(64, 64, dtype=torch.half, device="meta") for _ in "ab")
    one = Entry("part", "product", repr(fd), halves, (CPU,), FUSED)
    (kernel,) = collected(one)[CPU, ""]["kernels"]
    assert "tl.dot" in kernel["text"]


def test_a_fault_is_a_record():
    broken = collected(entry(inputs=specs_of([3])))["sm_90", ""]
    assert broken["texts"]["error"].startswith("InputMismatch: ") and not broken["kernels"]
    unknown = Entry("part", "odd", "def nvfuser_fusion(fd): fd.ops.no_such_op()", (), (CPU,))
    assert "no_such_op" in collected(unknown)[CPU, ""]["texts"]["error"]


def test_inputs_are_made_as_they_were():
    odd = torch.empty(100, dtype=torch.bfloat16)[1:].as_strided((3, 4), (8, 2))
    tensor, *numbers = collector.made([*specs_of([odd, 3, 2.5, True, 1 + 2j])])
    assert (tensor.shape, tensor.stride()) == (odd.shape, odd.stride())
    assert (tensor.dtype, tensor.storage_offset()) == (odd.dtype, 1)
    assert numbers == [3, 2.5, True, 1 + 2j]


def test_every_part_has_entries_under_names_of_their_own():
    for part, make in corpus.PARTS.items():
        if "random" in part:
            continue
        found = list(make())
        assert len(found) == len({one.name for one in found}), part
        assert {one.part for one in found} == {part}


# --- what counts as a difference -----------------------------------------------------------------

TEXT = '''"""Old reason."""
import triton
from a import b


@triton.jit
def k(x_ptr):
    """Old."""
    import os
    # model.py:3
    tell(x_ptr, 1)


def launch(x):
    k[(4, 1, 1)](x, num_warps=4)
'''


def test_functions_of_the_library_are_code_whether_triton_s_or_python_s():
    """``launch`` of a kernel with open sizes calls ``inverse_of``."""
    library = collector.Library()
    functions = {"division_functions": "inverse_of", "functions": "launch_dependents"}
    for module, name in functions.items():
        home = f"tritonfuser.lowering.device_lib.{module}"
        library.read(f"from {home} import {name}\n\n\n@triton.jit\n")
    texts = {k["name"]: k["text"] for record in library.records() for k in record["kernels"]}
    for name in functions.values():
        assert code(texts[name]).count(f"def {name}(") == 1


def test_imports_docstrings_and_comments_do_not_count():
    other = TEXT.replace("from a import b", "from c.d import b").replace("Old", "New")
    assert code(TEXT) == code(other.replace("# model.py:3", "# model.py:4"))
    assert code(TEXT) != code(TEXT.replace("(4, 1, 1)", "(8, 1, 1)"))


KEY = ("part", "name", "sm_90", "")
OTHER = ("other", "name", "sm_90", "")


def record(text: str = TEXT, key=KEY, **texts: str) -> dict:
    kernel = {"name": "k", "text": text, "facts": {"num_warps": "4"}}
    return {"key": list(key), "kernels": [kernel], "texts": texts, "skipped": ""}


def compared(base: dict, new: dict, renames: Renames | None = None):
    return compare({KEY: base}, {KEY: new}, renames or Renames())


@pytest.mark.parametrize(
    "new",
    [
        record(TEXT.replace("tell(x_ptr, 1)", "tell(x_ptr, 2)"), plan="a"),
        record(plan="b"),
        record(),
        {**record(plan="a"), "kernels": []},
        {**record(plan="a"), "kernels": [{**record()["kernels"][0], "facts": {"num_warps": "8"}}]},
    ],
)
def test_differences_are_told(new):
    found = compared(record(plan="a"), new)
    assert not found.is_same
    assert found.counts["part"].differing == 1 and found.differences[0].diff
    assert compared(new, new).is_same


def test_names_are_replaced_in_the_base_alone():
    new = record(TEXT.replace("tell", "publish"), plan="publish it to all", why="keep going")
    base = record(plan="tell it to all", why="stay")
    assert not compared(base, new).is_same
    renames = Renames({"tell": "publish"}, {"stay": "keep going"})
    assert compared(base, new, renames).is_same
    assert not compared(new, base, renames).is_same


def test_names_may_be_swapped_and_are_whole_words():
    renames = Renames({"a": "b", "b": "a", "x.y": "z"}, {})
    assert renames("a b ab x.y x_y a_b") == "b a ab z x_y a_b"


def test_what_one_side_lacks_differs_and_what_is_skipped_does_not():
    found = compare({KEY: record()}, {OTHER: record()}, Renames())
    assert (found.counts["part"].base_only, found.counts["other"].new_only) == (1, 1)
    assert not found.is_same
    found = compared({**record(), "skipped": "too old"}, record(plan="b"))
    assert found.is_same and found.counts["part"].skipped == 1
    assert found.rows()[-1]["skipped"] == "1"


def test_functions_of_the_library_are_found_by_their_new_names(tmp_path):
    path = tmp_path / "records"
    lines = [{"package": str(tmp_path)}, record(key=("library", "tell", "", ""))]
    path.write_text("\n".join(map(json.dumps, lines)))
    assert list(load(path, tmp_path, Renames({"tell": "publish"}))) == [
        ("library", "publish", "", "")
    ]
    with pytest.raises(ReplayError, match="was to be replayed"):
        load(path, tmp_path / "elsewhere")


# --- two trees -----------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path):
    """A copy of the package to be changed."""
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tritonfuser", tmp_path / "tritonfuser", ignore=skip)
    return tmp_path


def changed(tree, old: str, new: str) -> None:
    """Another text in the one file that has it."""
    (path,) = (p for p in tree.rglob("*.py") if old in p.read_text())
    path.write_text(path.read_text().replace(old, new))


def two() -> list[Entry]:
    return [entry(inputs=matrix(16, 1 << 20)), *corpus.entries(["suite"], "softmax 512x1024 b")]


def test_a_copy_of_a_tree_is_the_same(tree):
    found = replay(tree, ROOT, two(), Renames())
    assert found.is_same and not found.differences
    total = found.rows()[-1]
    assert int(total["kernels"]) > 5 and total["errors"] == total["skipped"] == "0"


def test_another_constant_and_another_function_show(tree):
    changed(tree, "\nPROGRAMS_PER_SM = 4\n", "\nPROGRAMS_PER_SM = 2\n")
    changed(tree, "approx_exp2(x * 1.4426950408889634) if", "approx_exp2(x * 1.25) if")
    found = replay(tree, ROOT, two(), Renames())
    keys = {difference.key for difference in found.differences}
    assert keys == {("part", "sums", "sm_90", ""), ("library", "exp_nonpositive", "", "")}
    assert found.counts["suite"].differing == 0
    assert found.counts["library"].same > 1  # what that function calls, too
    by_key = {difference.key: difference.diff for difference in found.differences}
    assert (
        "+    return approx_exp2(x * 1.4426950408889634) if"
        in by_key["library", "exp_nonpositive", "", ""]
    )


def test_a_tree_that_does_not_import_is_told(tree):
    changed(tree, "\nPROGRAMS_PER_SM = 4\n", "\nPROGRAMS_PER_SM = = 4\n")
    with pytest.raises(ReplayError, match="SyntaxError"):
        replay(tree, ROOT, two()[:1], Renames())


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_a_revision_is_checked_out_for_the_time_being():
    with checked_out("HEAD") as base:
        assert (base / "tritonfuser" / "__init__.py").exists()
    assert not base.exists()
    with pytest.raises(ReplayError, match="no-such-revision"), checked_out("no-such-revision"):
        pass
