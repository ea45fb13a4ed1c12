"""Writes elements that are computed of their positions: factories and random numbers."""

from __future__ import annotations

from collections.abc import Callable

from ....dtypes import EIGHT_BIT_FLOATS, Category, DataType, compute_dtype
from ....heuristics.cost.draws import RANDOM_WORDS
from ....ir import Const, Node, Operand, Value
from ....ops.builder import as_call
from ....ops.forms import Factory, Random
from ....symbolic.index_expr import Affine
from ....symbolic.row_major import linear
from ....symbolic.substitution import strip_bounds
from ...access.reads import Read
from ..expressions import cast_text, triton_name
from ..memory.repeated_loads import RepeatWriter
from ..names import Name, Repeat
from .random_words import DrawnRun, run_along, scaled


class GeneratedValues:
    """Writes the elements of factories and random ops.

    Parameters
    ----------
    repeats : RepeatWriter
        Writes positions, and what adjacent elements share.
    operand : function
        The operand of an op, as a dtype, at an index.
    read : function
        A value at an index.
    read_indices : function
        Writes and binds the values that index expressions read at run time.
    """

    def __init__(
        self,
        repeats: RepeatWriter,
        operand: Callable[[Operand, DataType, Read], Name],
        read: Callable[[Read], Name],
        read_indices: Callable[..., None],
    ) -> None:
        self.repeats, self.writer, self.index = repeats, repeats.writer, repeats.index
        self.axes = self.index.axes
        self._operand, self._read, self._read_indices = operand, read, read_indices

    def _position(self, node: Node, read: Read) -> Affine:
        """The row-major position of an element in its tensor; values in its index are written."""
        self._read_indices(*read.index)
        return strip_bounds(linear(read.index, node.out.tensor.sizes))

    def factory(self, node: Node, form: Factory, read: Read) -> Name:
        """An element that is computed from scalars and, for some ops, its position."""
        dtype = node.out.dtype
        work = compute_dtype(dtype) if dtype in EIGHT_BIT_FLOATS else dtype
        operands = operands_by_name(node)
        texts = {name: self._operand(arg, work, read).text for name, arg in operands.items()}
        position = self._position(node, read)
        dims = self.axes.dims(position)
        where = self.repeats.position(position)
        varies = "{i0}" in form.triton and bool(dims or position.loaded())
        has_dtype = work is DataType.Int32 and not self.index.wide and self.axes.blocked(dims)
        if varies and (not has_dtype or position.loaded()):
            # In a loop over single rows a position is a Python number where Triton interprets.
            where = f"tl.cast({where}, {triton_name(work)})"
        elif not where.isidentifier():
            where = f"({where})"
        text = form.triton.format(**texts, i0=where, dtype=triton_name(work))
        if work.info.category is Category.INT:  # for floats, 0.0 + -0.0 is not -0.0
            text = text.removeprefix("0 + ").removeprefix("1 * ")
            text = text[1:-1] if text == where and text.startswith("(") else text
        is_constant = not varies and not any(isinstance(arg, Value) for arg in operands.values())
        if is_constant:
            text = f"tl.full([], {text}, {triton_name(work)})"
        text = cast_text(text, work, dtype)
        return self.writer.define(node.out, text, dims if varies else frozenset(), dtype, node.loc)

    def random(self, node: Node, form: Random, read: Read) -> Name:
        """A random number for each linear position, scaled to its range and rounded."""
        dtype = node.out.dtype
        work = compute_dtype(dtype)
        double = "_double" if work is DataType.Double else ""
        scale_dtype = work if dtype in EIGHT_BIT_FLOATS else dtype
        scales = operands_by_name(node, 2 if form.scaled else 0).values()
        scale_texts = [self._operand(arg, scale_dtype, read).text for arg in scales]
        position = self._position(node, read)
        dims = self.axes.dims(position)
        drawn = self._seed_and_offset(node)
        run = run_along(position, self.axes.tiles_of(position))
        if run is not None and not double:
            unit = self._run(form, run, drawn, self.index.tile_text.shape(dims))
        else:
            where = self.index.text(position)
            if not dims and not position.loaded():
                where = f"tl.full([], {where}, tl.int64)"
            unit = f"{form.distribution}{double}({drawn}, {where})"
        name = self.writer.define(node.out, unit, dims, work, node.loc, "_unit")
        text = scaled(node, form, name.text, scale_texts)
        if text == name.text:
            return name
        return self.writer.define(node.out, text, dims, dtype, node.loc)

    def _seed_and_offset(self, node: Node) -> str:
        """The first two arguments of a function that draws."""
        given = (as_call(node).operand(name) for name in ("rng_seed", "rng_offset"))
        texts = (
            self._read(Read(arg)).text if isinstance(arg, Value) else str(arg.value)
            for arg in given
        )
        return ", ".join(texts)

    def _run(self, form: Random, run: DrawnRun, drawn: str, shape: str) -> str:
        """Random numbers of a tile's neighbours, several at a time."""
        if run.dim is not None:
            counter = self.repeats.offset(run.counter, Repeat(run.tile, run.count))
            return f"{form.distribution}_by_four({drawn}, {self.index.text(counter)}, {shape})"
        within = self.repeats.part(run.tile, run.count)
        if run.count > RANDOM_WORDS:
            start = self.index.text(run.rest)
            return f"{form.distribution}_by_eight({drawn}, {start}, {within}, {shape})"
        beyond = run.tile.end + run.tile.width  # of a position; counters are fewer
        first = self.index.text(run.rest // RANDOM_WORDS, beyond)
        plus = "" if first == "0" else f"{first} + "
        return f"{form.distribution}_by_four({drawn}, {plus}{within}, {shape})"


def operands_by_name(node: Node, most: int | None = None) -> dict[str, Operand]:
    """The given operands of an op by parameter; of the first ``most`` alone."""
    names = [param.name for param in as_call(node).op.params if param.kind.is_operand][:most]
    pairs = zip(names, node.args, strict=False)
    return {name: arg for name, arg in pairs if isinstance(arg, Value | Const)}
