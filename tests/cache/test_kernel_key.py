"""The key of a compiled kernel has everything that changes its code or its launch."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from tests.lowering.kernels import vector_add
from tritonfuser import DataType, SourceLoc, options
from tritonfuser.cache.keys.kernel_key import NOT_IN_KEY, kernel_key
from tritonfuser.lowering.kernel_source import (
    ArrivalCounters,
    CooperativeWorkspace,
    InverseArg,
    KernelSource,
    SizeArg,
)

X, _, OUT = (arg.value for arg in vector_add().args)

CHANGED = {
    "name": "other",
    "text": "# another\n",
    "args": (),
    "constants": (("XBLOCK", 64),),
    "grid": (7, 1, 1),
    "num_warps": 16,
    "num_stages": 5,
    "lines": ((1, SourceLoc("x.py", 1)),),
    "index_ops": ((1, "index_select"),),
    "sizes": (SizeArg("size0", DataType.Int32),),
    "inverses": (InverseArg("size0", DataType.Int32, False),),
    "unaligned": frozenset({"tv0"}),
    "follows": True,
    "workspace": CooperativeWorkspace("workspace_ptr", DataType.Int32, 8),
    "arrivals": ArrivalCounters(16),
    "max_registers": 64,
    "room": 128,
    "register_limits": (128, 80),
    "asserts": True,
    "in_place": ((OUT, X),),
}
"""Another value for each field of a kernel. A new field needs one."""


def test_every_field_is_in_the_key_or_is_left_out_for_a_reason():
    assert {row.name for row in fields(KernelSource)} == set(CHANGED)
    assert all(NOT_IN_KEY.values()) and set(NOT_IN_KEY) == {
        "grid",
        "lines",
        "index_ops",
        "in_place",
    }


@pytest.mark.parametrize("name", CHANGED)
def test_a_changed_field_is_another_kernel(name):
    source = vector_add()
    other = replace(source, **{name: CHANGED[name]})
    assert other != source
    assert (kernel_key(other) == kernel_key(source)) is (name in NOT_IN_KEY)
    assert hash(kernel_key(other)) is not None


def test_options_that_change_code_are_in_the_key(monkeypatch):
    before = kernel_key(vector_add())
    monkeypatch.setenv("TRITONFUSER_FMA", "0")
    options.refresh()
    try:
        assert kernel_key(vector_add()) != before
    finally:
        monkeypatch.undo()
        options.refresh()


def test_the_programs_of_a_cooperative_kernel_are_in_the_key():
    """Whether all of them fit on the device is checked when the kernel is loaded."""
    source = replace(vector_add(), workspace=CHANGED["workspace"])
    assert kernel_key(source) != kernel_key(replace(source, grid=(64, 1, 1)))
