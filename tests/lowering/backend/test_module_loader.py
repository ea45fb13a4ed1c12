"""The text of a kernel as a module: what inspect, errors and other threads see of it."""

from __future__ import annotations

import gc
import inspect
import linecache
from dataclasses import replace

import pytest

from tests.lowering.kernels import (
    HEADER,
    kernel,
    tensor,
    vector_add,
)
from tritonfuser.dtypes import DataType
from tritonfuser.errors import LoweringError, SourceLoc
from tritonfuser.lowering.backend import module_loader as modules
from tritonfuser.lowering.build import (
    load_module,
)


def test_source_is_found_by_inspect():
    source = vector_add()
    found = load_module(source).vector_add
    lines, first = inspect.getsourcelines(found.fn)
    assert first == HEADER.count("\n") + 1
    assert "".join(lines) == source.text[len(HEADER) :]
    assert found.fn.__code__.co_filename.startswith("<tritonfuser kernel vector_add ")


def test_equal_texts_share_a_module_and_others_do_not():
    one, two = load_module(vector_add()), load_module(vector_add())
    other = load_module(vector_add(size=999))
    assert one is two and one is not other
    assert one.__file__ != other.__file__


def test_text_is_forgotten_with_its_module():
    name = load_module(vector_add(size=77)).__file__
    linecache.checkcache()
    assert name in linecache.cache
    gc.collect()
    assert name not in linecache.cache


def test_functions_keep_their_text():
    function = load_module(vector_add(size=78)).vector_add
    gc.collect()
    assert "inside = i < 78" in inspect.getsource(function.fn)


@pytest.mark.parametrize("name", ["", "a b", "x(", "Ünï", "a\nb"])
def test_names_are_ours(name):
    with pytest.raises(LoweringError, match="is no name of a generated kernel"):
        load_module(replace(vector_add(), name=name))


def test_text_that_is_no_python_points_at_the_users_line():
    here = SourceLoc("model.py", 12)
    source = kernel(
        "bad", "@triton.jit\ndef bad(x):\n    a = = 1", [tensor("x")], lines=[(7, here)]
    )
    with pytest.raises(LoweringError, match=r">    7 \|     a = = 1") as caught:
        load_module(source)
    assert caught.value.loc == here


def test_text_without_its_kernel():
    with pytest.raises(LoweringError, match="does not define it"):
        load_module(replace(vector_add(), name="other"))


def test_lines_of_a_module_that_came_back():
    """A module is collected while another thread loads the same text again."""
    source = vector_add(DataType.Float, 512, 128, name="came_back")
    name = modules.file_name(source)
    first = modules.load_module(source)
    modules._modules.pop(name)  # the first of its weak references
    second = modules.load_module(source)
    del first
    gc.collect()
    assert "".join(linecache.getlines(name)) == source.text
    del second
    gc.collect()
    assert name not in linecache.cache
