"""Rewrite a recorded definition to smaller sizes, so that it runs in seconds without a GPU.

Per model a table says what each extent becomes; products follow (``2048 = 4 * 512`` becomes
``2 * 32``), so that every reshape of the program still holds. Constants such as ``1 / 768`` stay:
the reference runs the same program.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from .definitions import Input, RecordedDefinition, ScalarInput, TensorInput

_SIZED = frozenset({"shape", "new_shape", "start_indices", "end_indices", "pad_widths"})
"""Keyword arguments that hold extents."""

# Batch, sequence and vocabulary shrink first, so that rows stay wide enough to be interesting.
_NANOGPT = {4: 2, 512: 16, 2048: 32, 50304: 1200}
# 1024 is the sequence and 8 * 128, the width of keys and values: both become 2 * 64.
_LLAMA = {1024: 128, 1025: 129, 8: 2, 32: 8, 128: 64, 64: 32, 4096: 512, 14336: 1792, 32000: 1000}
_BERT = {8: 2, 128: 16, 127: 15, 1024: 32, 512: 64, 30522: 1000}
# 32 is the batch and the number of groups: both become 4, a group has 4 channels as before.
_CONVNET = {32: 4, 128: 16, 64: 16, 112: 28, 113: 29, 114: 30, 56: 14, 224: 30, 229: 35}

# Other sizes of the same programs; extents that are fixed in a model are the same as above.
_NANOGPT_LESS = {4: 3, 512: 8, 2048: 24, 50304: 600}
_LLAMA_LESS = {1024: 64, 1025: 65, 8: 2, 32: 8, 128: 32, 64: 16, 4096: 256, 14336: 448, 32000: 300}
_BERT_LESS = {8: 3, 128: 8, 127: 7, 1024: 24, 512: 40, 30522: 600}
_CONVNET_LESS = {32: 2, 128: 8, 64: 8, 112: 14, 113: 15, 114: 16, 56: 7, 224: 16, 229: 21}

SIZES: Mapping[str, Mapping[int, int]] = {
    "nanogpt": _NANOGPT,
    "hf-llama3-block": _LLAMA,
    "hf-bert": _BERT,
    "convnet": _CONVNET,
}

OTHER_SIZES: Mapping[str, Mapping[int, int]] = {
    "nanogpt": _NANOGPT_LESS,
    "hf-llama3-block": _LLAMA_LESS,
    "hf-bert": _BERT_LESS,
    "convnet": _CONVNET_LESS,
}
"""The second sizes, for tests that run one definition at two sizes."""


def shrink(entry: RecordedDefinition, sizes: Mapping[int, int] | None = None) -> RecordedDefinition:
    """The same program at the extents of ``sizes`` (by default the model's table).

    ``new_shape=[2048, 768]`` becomes ``new_shape=[32, 768]``; recorded inputs keep the order of
    their strides, and expanded dims stay expanded. A definition that was recorded at reduced sizes
    too is that one where no ``sizes`` are given.
    """
    if sizes is None and entry.reduced is not None:
        return entry.reduced
    table = SIZES[entry.model] if sizes is None else sizes
    tree = ast.parse(entry.text)
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            _resize_call(call, table)
    inputs = tuple(_resize_input(item, table) for item in entry.inputs)
    return replace(entry, text=ast.unparse(tree) + "\n", inputs=inputs)


def is_sized(name: str | None) -> bool:
    """Whether a keyword argument of that name holds extents."""
    return name in _SIZED


def _resize_call(call: ast.Call, table: Mapping[int, int]) -> None:
    """Extents are lists passed by keyword, and ints passed by position (``iota(512, ...)``)."""
    for keyword in call.keywords:
        if is_sized(keyword.arg):
            for constant in ast.walk(keyword.value):
                _resize(constant, table)
    for arg in call.args:
        _resize(arg, table)


def _resize(node: ast.AST, table: Mapping[int, int]) -> None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        node.value = table.get(node.value, node.value)


def _resize_input(item: Input, table: Mapping[int, int]) -> Input:
    if isinstance(item, ScalarInput):
        return item
    shape = tuple(table.get(size, size) for size in item.shape)
    return TensorInput(shape, _dense_strides(shape, item.stride), item.dtype)


def _dense_strides(shape: tuple[int, ...], recorded: tuple[int, ...]) -> tuple[int, ...]:
    """Dense strides in the recorded memory order; 0 stays 0."""
    strides = [0] * len(shape)
    step = 1
    for dim in sorted(range(len(shape)), key=lambda d: (recorded[d], -d)):
        if recorded[dim]:
            strides[dim] = step
            step *= shape[dim]
    return tuple(strides)
