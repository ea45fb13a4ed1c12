"""Writes the values of a kernel, recursively from a result back to its loads.

A value at an index is written once, in the outermost scope where its axes run. Its variable has the
name that the value has in the definition.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace

from ...dtypes import DataType
from ...ir import Const, Fusion, Node, Operand, Value
from ...ops.builder import as_call
from ...ops.forms import Factory, Moments, Pointwise, Random, Reduction, Scan
from ...ops.table import View
from ...ops.typing_rules import operand_types
from ...shapes.broadcasting import broadcast_index
from ...shapes.index_map import Source
from ...symbolic.index_expr import Affine
from ...symbolic.sizes import is_integer
from ..access.node_kinds import is_reducer
from ..access.reads import Read, merge_guards, reads, sources_of
from ..access.rounded_casts import RoundedCasts
from .expressions import (
    cast_text,
    last_value,
    number,
    pointwise_text,
    typed_literal,
    unchanged,
    zero,
)
from .generated.generated_values import GeneratedValues, operands_by_name
from .memory.masked_loads import after_op
from .memory.repeated_loads import RepeatWriter
from .names import Name, Run, common_run


class ValueWriter:
    """Writes the values of one kernel: loaded, or computed from others.

    Parameters
    ----------
    fusion : Fusion
        The fusion that the values belong to.
    stored : collection of Value
        The values in memory.
    repeats : RepeatWriter
        Writes positions, and loads that neighbours share.
    load : function
        Writes and binds the load of a value at an index. Values that the index reads are bound
        before.
    reduce_again : function
        Writes a reduction or scan once more, where its result is read and no longer bound.
    rounded : RoundedCasts
        The casts to bfloat16 that are computed two at a time.
    """

    def __init__(
        self,
        fusion: Fusion,
        stored: Container[Value],
        repeats: RepeatWriter,
        load: Callable[[Read], Name],
        reduce_again: Callable[[Node], None],
        rounded: RoundedCasts,
    ) -> None:
        self.fusion = fusion
        self.stored = stored
        self.repeats = repeats
        self.load = load
        self.reduce_again = reduce_again
        self.rounded = rounded
        self.index = repeats.index
        self.axes = self.index.axes
        self.masks = self.index.masks
        self.writer = repeats.writer
        self._generated = GeneratedValues(repeats, self.operand, self.read, self.read_indices)
        for value in fusion.inputs:
            if not value.is_tensor:
                self.writer.fresh(value.name)

    def read(self, read: Read) -> Name:
        """The value at an index, written if it is not yet."""
        read = self._needed(read)
        found = self.writer.find(read)
        if found is not None:
            return found
        # Operands first, from a list: recursion would end at Python's limit in a long chain.
        for missing in self._missing(read):
            found = self._written(missing)
        assert found is not None
        return found

    def _missing(self, read: Read) -> list[Read]:
        """The reads to write for a value at an index, operands before results."""
        order: list[Read] = []
        seen = {read}
        stack = [(read, self._operands(read))]
        while stack:
            item, rest = stack[-1]
            fresh = next((r for r in rest if r not in seen and self.writer.find(r) is None), None)
            if fresh is None:
                order.append(item)
                stack.pop()
            else:
                seen.add(fresh)
                stack.append((fresh, self._operands(fresh)))
        return order

    def _operands(self, read: Read) -> Iterator[Read]:
        """The operands that this writer computes a value from; none for loads and reductions."""
        node = self.fusion.producers.get(read.value)
        if node is None or read.value in self.stored or is_reducer(node):
            return iter(())
        if read.value in self.rounded.widened:
            node = self.rounded.widened[read.value]
            read = Read(node.out, read.index, read.guards)
        needed = (r for r in reads(node, read) if not self.masks.ranges.never(r.guards))
        return map(self._needed, needed)

    def _needed(self, read: Read) -> Read:
        """A read without guards that need not be checked for it.

        A value that was written without guards is correct under any. Guards on axes along which the
        value does not vary are dropped: they would make it a block over these axes too, as a
        statistic of rows whose columns come from two tensors.
        """
        if not read.guards:
            return read
        bare = Read(read.value, read.index)
        if self.writer.find(bare) is not None:
            return bare
        if any(expr.loaded() for expr in (*read.index, *(guard.expr for guard in read.guards))):
            return read
        own = frozenset[str]().union(*(self.axes.dims(item) for item in read.index))
        dims = [self.masks.guard_dims((guard,)) for guard in read.guards]
        if any(met & own and met - own for met in dims):
            return read  # this guard may hold only where the others do
        pairs = zip(read.guards, dims, strict=True)
        kept = tuple(guard for guard, met in pairs if met & own or not self.axes.blocked(met))
        return replace(read, guards=kept)

    def _written(self, read: Read) -> Name:
        found = self.writer.find(read)
        if found is not None:
            return found
        if read.value in self.stored or read.value not in self.fusion.producers:
            self.read_indices(*read.index, *(guard.expr for guard in read.guards))
            return self.load(read)
        name = self._compute(self.fusion.producers[read.value], read)
        self.writer.bind(read, name)
        return name

    def read_indices(self, *exprs: Affine) -> None:
        """Write and bind the values that index expressions read at run time."""
        for expr in exprs:
            for loaded in expr.loaded():
                assert isinstance(loaded.key, Read)
                self.writer.bind(loaded.key, self.read(loaded.key))

    def _compute(self, node: Node, read: Read) -> Name:
        form = as_call(node).op.form
        if isinstance(form, View):
            return self._view(node, read)
        if isinstance(form, Pointwise):
            return self._pointwise(node, form, read)
        if isinstance(form, Factory):
            return self._generated.factory(node, form, read)
        if isinstance(form, Random):
            return self._generated.random(node, form, read)
        assert isinstance(form, Reduction | Moments | Scan), node.op
        self.reduce_again(node)
        found = self.writer.find(self._needed(read))
        assert found is not None, f"{node.out.name} is read before it is reduced"
        return found

    def _pointwise(self, node: Node, form: Pointwise, read: Read) -> Name:
        given = [a for a in node.args if isinstance(a, Value | Const)]
        typing = form.typing(operand_types(given))
        if form.copies:
            return self._cast(node, given[0], read)
        names = [
            self.operand(arg, dtype, read)
            for arg, dtype in zip(given, typing.operands, strict=True)
        ]
        out = node.out.dtype
        run = common_run(names)
        each = names if run is None else [name.run.each if name.run else name for name in names]
        text = pointwise_text(node, form, each, typing.operands, typing.computed)
        same = unchanged(text, names)
        if same is not None and same.dtype is out:
            return same
        named = dict(zip(operands_by_name(node), names, strict=True))
        for param, other in form.masked:
            self.writer.masked_loads.prefer(named[param], other)
        if typing.computed is not out:
            text = cast_text(text, typing.computed, out)
        # Two reads may be the same text: both halves of sin(cat([x, x])).
        known = self.writer.find(("computed", text, out))
        if known is not None:
            return known
        name = self._defined(node, text, names, run)
        template = form.expression(typing.operands[0], last_value(node))
        name = replace(name, outside=after_op(template, named))
        self.writer.bind(("computed", text, out), name)
        return name

    def _defined(self, node: Node, text: str, operands: Sequence[Name], run: Run | None) -> Name:
        """A variable of an elementwise op's result: computed once for each run of equal neighbours
        where all operands have such a run in common."""
        dims = frozenset[str]().union(*(name.dims for name in operands))
        if run is None:
            return self.writer.define(node.out, text, dims, node.out.dtype, node.loc)
        each = self.writer.define(node.out, text, dims, node.out.dtype, node.loc, "_lane")
        return self.writer.spread(node.out, replace(run, each=each))

    def _cast(self, node: Node, arg: Operand, read: Read) -> Name:
        """A cast; with the one before it where both round a number to bfloat16.

        Statistics of rows, weights and numbers are few: they keep the casts.
        """
        before = self.rounded.widened.get(node.out)
        if before is not None:
            wide = next(before.operands())
            source = self.operand(wide, wide.dtype, read)
            if self.axes.is_whole(source.dims):
                return self.writer.rounded(source, node.out, node.loc)
            source = self.writer.cast(source, before.out.dtype, before.out, before.loc)
            return self.writer.cast(source, node.out.dtype, node.out, node.loc)
        source = self.operand(arg, arg.dtype, read)
        is_packed = node.out in self.rounded.narrow and self.axes.is_whole(source.dims)
        function = "to_bfloat16" if is_packed else ""
        return self.writer.cast(source, node.out.dtype, node.out, node.loc, function)

    def operand(self, arg: Operand, dtype: DataType, read: Read) -> Name:
        """An operand of an elementwise op, as ``dtype``."""
        if isinstance(arg, Const):
            return self._number(arg, dtype)
        if not arg.is_tensor:
            return self.writer.cast(self.read(Read(arg)), dtype, arg, None)
        place = Read(arg, broadcast_index(read.index, arg.tensor), read.guards)
        return self.writer.cast(self.read(place), dtype, arg, None)

    def _number(self, const: Const, dtype: DataType) -> Name:
        """A constant as an operand: a literal, or an expression of size arguments."""
        if is_integer(const.value):
            self.index.terms.add_number(const.value)
        return number(const, dtype, DataType.Int if self.index.wide else DataType.Int32)

    def _view(self, node: Node, read: Read) -> Name:
        sources = [s for s in sources_of(node, read) if self._is_met(s, read)]
        if not sources:
            return self._as_tensor(node, zero(node.out.dtype))
        result = self._source(node, sources[-1], read)
        for source in reversed(sources[:-1]):
            chosen = self._source(node, source, read)
            self.read_indices(*(guard.expr for guard in source.guards))
            inside = self.masks.inside(source.guards, read.guards)
            if not inside:  # the guards hold at all positions of the tiles
                result = chosen
                continue
            if chosen.literal and result.literal:
                result = self._as_tensor(node, result)
            dims = chosen.dims | result.dims | self.masks.guard_dims(source.guards, read.guards)
            text = f"tl.where({inside}, {chosen.text}, {result.text})"
            result = self.writer.define(node.out, text, dims, node.out.dtype, node.loc)
        return self._as_tensor(node, result) if result.literal else result

    def _is_met(self, source: Source, read: Read) -> bool:
        """Whether some position of the tiles may read its element from a source."""
        return not self.masks.ranges.never(merge_guards(read.guards, source.guards))

    def _as_tensor(self, node: Node, number: Name) -> Name:
        """A literal as a variable of its dtype, since functions and casts take no literals."""
        return self.writer.define(
            node.out, typed_literal(number), frozenset(), number.dtype, node.loc
        )

    def _source(self, node: Node, source: Source, read: Read) -> Name:
        dtype = node.out.dtype
        if source.operand is None:
            return zero(dtype)
        if isinstance(source.operand, Const):
            return self._number(source.operand, dtype)
        if not source.operand.is_tensor:
            return self.writer.cast(self.read(Read(source.operand)), dtype, source.operand, None)
        self.read_indices(*source.index)
        guards = merge_guards(read.guards, source.guards)
        found = self.read(Read(source.operand, source.index, guards))
        self._check_indices(source)
        return found

    def _check_indices(self, source: Source) -> None:
        """Write the indices of a source that no address has, so that a wrong one raises.

        An address leaves out the dims in which all positions are one element. Compilers drop what
        only makes such an index safe.
        """
        for item in source.index:
            for loaded in item.loaded():
                self.index.loaded(loaded)
