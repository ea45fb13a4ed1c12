"""Values of a kernel as Triton text: pulled from a result to the loads it needs.

A value at an index is written once, in the outermost scope where its axes run, under the name it
has in the definition.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import torch

from ..affine import Affine, linear, unbound
from ..dtypes import EIGHT_BIT_FLOATS, Category, DataType, compute_dtype, e4m3_saturates
from ..errors import SourceLoc
from ..ir import Const, Fusion, Node, Operand, Value
from ..ops.builder import as_call
from ..ops.table import Factory, Moments, Pointwise, Random, Reduction, Scan, View
from ..ops.typing_rules import operand_types
from ..shapes import Guard, Source, broadcast_index
from ..sizes import is_size, surely_below
from .emit_index import IndexWriter, Tile
from .emit_lanes import LaneWriter, lanes_of
from .emit_random import WORDS, Run, run_along, scaled
from .kernel import passed_dtype
from .reach import Read, is_anchor, merge_guards, reads, sources_of
from .traffic import offset_of
from .writer import Line, Name, Writer


class ValueWriter:
    """Writes values of one kernel.

    Parameters
    ----------
    stored : mapping
        Values to load, with the strides of their buffers.
    """

    def __init__(
        self,
        fusion: Fusion,
        tiles: tuple[Tile, ...],
        stored: Mapping[Value, tuple[int, ...]],
        wide_index: bool,
    ) -> None:
        self.fusion = fusion
        self.writer = Writer()
        self.index = IndexWriter(self.writer, tiles, wide_index)
        self.lanes = LaneWriter(self.writer, self.index, self.part)
        for value in fusion.inputs:
            if not value.is_tensor:
                self.writer.fresh(value.name)
        self.stored = stored
        self.loaded: list[Read] = []

    # -- reading -------------------------------------------------------------

    def read(self, read: Read) -> Name:
        """The value at an index, written if it is not yet."""
        found = self.writer.find(read)
        if found is not None:
            return found
        # Operands first, from a list: recursion would end at Python's limit in a long chain.
        for missing in self._missing(read):
            found = self._written(missing)
        assert found is not None
        return found

    def _missing(self, read: Read) -> list[Read]:
        """What is to be written for a value at an index, in an order of dependence."""
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
        """What the value at an index is computed from here; nothing if it is loaded or reduced."""
        node = self.fusion.producers.get(read.value)
        if node is None or read.value in self.stored or is_anchor(node):
            return iter(())
        return reads(node, read)

    def _written(self, read: Read) -> Name:
        found = self.writer.find(read)
        if found is not None:
            return found
        if read.value in self.stored or read.value not in self.fusion.producers:
            return self._load(read)
        return self._compute(self.fusion.producers[read.value], read)

    def bind(self, read: Read, name: Name) -> None:
        """Say that a value at an index is already there under a name."""
        self.writer.scope_for(name.dims).names[read] = name

    def define(
        self,
        value: Value,
        text: str,
        dims: frozenset[str],
        dtype: DataType,
        loc: SourceLoc | None,
        mark: str = "",
        loads: str = "",
    ) -> Name:
        """A line ``name = text`` in the scope where ``dims`` run.

        The name is the value's, with ``mark`` behind it where it is not the value itself;
        ``loads`` says from where the line loads, if it does.
        """
        scope = self.writer.scope_for(dims)
        name = Name(self.writer.fresh(f"{value.name}{mark}"), dtype, dims)
        scope.lines.append(Line(f"{name.text} = {text}", loc, loads=loads))
        return name

    def _load(self, read: Read) -> Name:
        value = read.value
        if not value.is_tensor:
            name = self.cast(Name(value.name, passed_dtype(value)), value.dtype, value, None)
            self.bind(read, name)
            return name
        if value.tensor.numel == 0:
            zero = f"tl.full([], 0, {triton_name(value.dtype)})"
            return self.define(value, zero, frozenset(), value.dtype, None)
        self._read_indices(*read.index)
        offset = offset_of(read.index, self.stored[value])
        dims = self.index.dims(offset) | self._guard_dims(read.guards)
        masks = self.index.mask(dims) + self.guards(read.guards)
        self.loaded.append(read)
        lanes = lanes_of(offset, read.guards, self.index.met(offset), self.index.rank)
        if lanes is None:
            text = load_text(self._pointer(read, offset, dims, masks), masks)
            name = self.define(value, text, dims, value.dtype, None, loads=value.name)
        else:
            pointer = self.address(value, self.lanes.offset(offset, lanes))
            text = load_text(pointer, self.lanes.masks(masks, lanes))
            lane = self.define(value, text, dims, value.dtype, None, "_lane", loads=value.name)
            text = f"spread({lane.text}, {lanes.count})"
            name = self.define(value, text, dims, value.dtype, None)
        self.bind(read, name)
        return name

    def _pointer(self, read: Read, offset: Affine, dims: frozenset[str], masks: list[str]) -> str:
        """The address of a load; with masks it is a block as they are."""
        pointer = self.address(read.value, offset)
        if not masks or self.index.blocked(self.index.dims(offset)):
            return pointer
        # A value read at run time may be a block of one.
        computed = any(guard.expr.loaded() for guard in read.guards)
        return self.index.spread(pointer, dims, always=computed)

    def address(self, value: Value, offset: Affine) -> str:
        """Where an element of a buffer is: ``tv0_ptr + x * 4 + r``."""
        place = self.index.text(offset)
        return f"{value.name}_ptr" if place == "0" else f"{value.name}_ptr + {place}"

    def _read_indices(self, *exprs: Affine) -> None:
        """Write the values that index expressions contain."""
        for expr in exprs:
            for loaded in expr.loaded():
                assert isinstance(loaded.key, Read)
                self.read(loaded.key)

    def _guard_dims(self, guards: tuple[Guard, ...]) -> frozenset[str]:
        found: frozenset[str] = frozenset()
        for guard in guards:
            self._read_indices(guard.expr)
            found |= self.index.dims(guard.expr)
        return found

    def guards(self, guards: tuple[Guard, ...]) -> list[str]:
        """Each guard as a condition, in parentheses."""
        texts: list[str] = []
        for guard in guards:
            self._read_indices(guard.expr)
            expr = unbound(guard.expr)
            place = self.index.text(expr - expr.const)
            bounds = expr.range
            if bounds is None or not surely_below(guard.low - 1, bounds[0]):
                texts.append(f"({place} >= {guard.low - expr.const})")
            if bounds is None or not surely_below(bounds[1], guard.high):
                texts.append(f"({place} < {guard.high - expr.const})")
        return list(dict.fromkeys(texts))

    # -- computing -----------------------------------------------------------

    def _compute(self, node: Node, read: Read) -> Name:
        form = as_call(node).op.form
        if isinstance(form, View):
            name = self._view(node, read)
        elif isinstance(form, Pointwise):
            name = self._pointwise(node, form, read)
        elif isinstance(form, Factory | Random):
            name = self._indexed(node, form, read)
        else:
            assert isinstance(form, Reduction | Moments | Scan), node.op
            name = self.anchor(node, read)
        self.bind(read, name)
        return name

    def anchor(self, node: Node, read: Read) -> Name:
        """A reduction that is not written yet: kernels with loops know how."""
        raise AssertionError(f"{node.out.name} is read before it is reduced")

    def _pointwise(self, node: Node, form: Pointwise, read: Read) -> Name:
        given = [a for a in node.args if isinstance(a, Value | Const)]
        typing = form.typing(operand_types(given))
        if form.copies:
            source = self.operand(given[0], given[0].dtype, read)
            return self.cast(source, node.out.dtype, node.out, node.loc)
        names = [
            self.operand(arg, dtype, read)
            for arg, dtype in zip(given, typing.operands, strict=True)
        ]
        out = node.out.dtype
        text = _fill(node, form, names, typing.operands, typing.computed)
        if typing.computed is not out:
            text = cast_text(text, typing.computed, out)
        dims = frozenset[str]().union(*(n.dims for n in names))
        return self.define(node.out, text, dims, out, node.loc)

    def operand(self, arg: Operand, dtype: DataType, read: Read) -> Name:
        """An operand of an elementwise op, as ``dtype``."""
        if isinstance(arg, Const):
            return number(arg, dtype)
        if not arg.is_tensor:
            return self.cast(self.read(Read(arg)), dtype, arg, None)
        place = Read(arg, broadcast_index(read.index, arg.tensor), read.guards)
        return self.cast(self.read(place), dtype, arg, None)

    def cast(self, name: Name, dtype: DataType, value: Value, loc: SourceLoc | None) -> Name:
        """The same number as another dtype, converted once."""
        if name.dtype is dtype:
            return name
        key = ("cast", name.text, dtype)
        found = self.writer.find(key)
        if found is None:
            text = cast_text(name.text, name.dtype, dtype)
            mark = "" if loc is not None else f"_{dtype.info.triton}"
            made = self.define(value, text, name.dims, dtype, loc, mark)
            self.writer.scope_for(name.dims).names[key] = made
            return made
        return found

    def _view(self, node: Node, read: Read) -> Name:
        sources = sources_of(node, read)
        if not sources:
            return self._spelled(node, _zero(node.out.dtype))
        result = self._source(node, sources[-1], read)
        for source in reversed(sources[:-1]):
            chosen = self._source(node, source, read)
            conditions = self.guards(source.guards)
            if not conditions:  # of the axes as they are here, the guards say nothing
                result = chosen
                continue
            if chosen.literal and result.literal:
                result = self._spelled(node, result)
            dims = chosen.dims | result.dims | self._guard_dims(source.guards)
            text = f"tl.where({' & '.join(conditions)}, {chosen.text}, {result.text})"
            result = self.define(node.out, text, dims, node.out.dtype, node.loc)
        return self._spelled(node, result) if result.literal else result

    def _spelled(self, node: Node, number: Name) -> Name:
        """A number as a tensor of its dtype, which functions and casts take."""
        return self.define(node.out, typed(number), frozenset(), number.dtype, node.loc)

    def _source(self, node: Node, source: Source, read: Read) -> Name:
        dtype = node.out.dtype
        if source.operand is None:
            return _zero(dtype)
        if isinstance(source.operand, Const):
            return number(source.operand, dtype)
        if not source.operand.is_tensor:
            return self.cast(self.read(Read(source.operand)), dtype, source.operand, None)
        self._read_indices(*source.index)
        guards = merge_guards(read.guards, source.guards)
        return self.read(Read(source.operand, source.index, guards))

    def _indexed(self, node: Node, form: Factory | Random, read: Read) -> Name:
        call = as_call(node)
        params = [p.name for p in call.op.params if p.kind.is_operand]
        if isinstance(form, Random):
            params = params[: 2 if form.scaled else 0]
        operands = {
            name: arg
            for name, arg in zip(params, node.args, strict=False)
            if isinstance(arg, Value | Const)
        }
        dtype = node.out.dtype
        work = compute_dtype(dtype) if dtype in EIGHT_BIT_FLOATS else dtype
        texts = {key: self.operand(a, work, read).text for key, a in operands.items()}
        self._read_indices(*read.index)
        position = linear(read.index, node.out.tensor.sizes)
        dims = self.index.dims(position)
        if isinstance(form, Factory):
            where = f"({self.lanes.position(position)})"
            varies = "{i0}" in form.triton and bool(dims or position.loaded())
            if varies:
                where = f"{where}.to({triton_name(work)})"
            text = form.triton.format(**texts, i0=where, dtype=triton_name(work))
            dims = dims if varies else frozenset()
            if not varies and not any(isinstance(a, Value) for a in operands.values()):
                text = f"tl.full([], {text}, {triton_name(work)})"
            return self.define(node.out, cast_text(text, work, dtype), dims, dtype, node.loc)
        return self._random(node, form, texts, position, dims)

    def _random(
        self,
        node: Node,
        form: Random,
        texts: Mapping[str, str],
        position: Affine,
        dims: frozenset[str],
    ) -> Name:
        """Random numbers at a linear position, scaled to their range and rounded."""
        dtype = node.out.dtype
        work = compute_dtype(dtype)
        double = "_double" if work is DataType.Double else ""
        seed, offset = (
            self.read(Read(v)).text if isinstance(v, Value) else str(v.value)
            for v in (as_call(node).operand(n) for n in ("rng_seed", "rng_offset"))
        )
        run = run_along(position, self.index.met(position)) if form.neighbours else None
        if run is not None and not double:
            unit = self._run(form, run, f"{seed}, {offset}", self.index.shape(dims))
        else:
            where = self.index.text(position)
            if not dims and not position.loaded():
                where = f"tl.full([], {where}, tl.int64)"
            unit = f"{form.distribution}{double}({seed}, {offset}, {where})"
        name = self.define(node.out, unit, dims, work, node.loc, "_unit")
        text = scaled(node, form, name.text, list(texts.values()))
        return name if text == name.text else self.define(node.out, text, dims, dtype, node.loc)

    def _run(self, form: Random, run: Run, drawn: str, shape: str) -> str:
        """Random numbers of a tile's neighbours, several at a time."""
        within = self.part(run.tile, run.count)
        if run.count > WORDS:
            start = self.index.text(run.rest)
            return f"{form.distribution}_by_eight({drawn}, {start}, {within}, {shape})"
        first = self.index.text(run.rest // WORDS)
        plus = "" if first == "0" else f"{first} + "
        return f"{form.distribution}_by_four({drawn}, {plus}{within}, {shape})"

    def part(self, tile: Tile, count: int) -> str:
        """The positions of a tile by ``count``, one each: kernels know where their tiles start."""
        raise AssertionError(f"{tile.name} has no place yet")


def _fill(
    node: Node,
    form: Pointwise,
    names: list[Name],
    dtypes: tuple[DataType, ...],
    computed: DataType,
) -> str:
    """The expression with its operands' names put in."""
    operands = zip(as_call(node).op.params, node.args, strict=False)
    params = [param.name for param, arg in operands if arg is not None]
    template = form.expression(dtypes[0], _last_value(node))
    simple = any(not n.literal and n.dtype is d for n, d in zip(names, dtypes, strict=True))
    texts = {
        param: name.text if not name.literal or _adapts(name, simple, template) else typed(name)
        for param, name in zip(params, names, strict=True)
    }
    return template.format(**texts, dtype=triton_name(computed))


def _adapts(name: Name, beside_tensor: bool, template: str) -> bool:
    """Whether Triton gives a bare number the operand's dtype by itself."""
    infix = "(" not in template
    return beside_tensor and (name.dtype is DataType.Float or (infix and _is_plain(name)))


def _is_plain(name: Name) -> bool:
    return name.dtype in (DataType.Int, DataType.Int32)


def load_text(pointer: str, masks: list[str]) -> str:
    if not masks:
        return f"tl.load({pointer})"
    return f"tl.load({pointer}, mask={' & '.join(masks)}, other=0)"


def _zero(dtype: DataType) -> Name:
    return Name(literal(Const(0, DataType.Int), dtype), dtype, literal=True)


def number(const: Const, dtype: DataType) -> Name:
    """A constant as an operand: written out, or an argument's where it is a size that varies."""
    if is_size(const.value):
        return Name(cast_text(f"{const.value}", DataType.Int32, dtype), dtype)
    return Name(literal(const, dtype), dtype, literal=True)


def typed(name: Name) -> str:
    return f"tl.full([], {name.text}, {triton_name(name.dtype)})"


def _last_value(node: Node) -> object:
    last = node.args[-1]
    return last.value if isinstance(last, Const) else None


def triton_name(dtype: DataType) -> str:
    return f"tl.{dtype.info.triton}"


def cast_text(text: str, source: DataType, target: DataType) -> str:
    """A conversion of a name or a parenthesized expression."""
    if source is target:
        return text
    if source in EIGHT_BIT_FLOATS:
        return cast_text(f"{source.info.letter}_to_float({text})", DataType.Float, target)
    if target in EIGHT_BIT_FLOATS:
        number = cast_text(text, source, DataType.Float)
        how = f", {e4m3_saturates()}" if target is DataType.Float8_e4m3fn else ""
        return f"float_to_{target.info.letter}({number}{how})"
    if not text.isidentifier():
        text = f"({text})"
    if target is DataType.Bool:
        return f"{text} != 0"
    return f"{text}.to({triton_name(target)})"


def literal(const: Const, dtype: DataType) -> str:
    """A constant as Triton text in a dtype: rounded to it as a cast would; bytes of eight bits."""
    value = const.value
    if isinstance(value, complex):
        value = value.real
    category = dtype.info.category
    if category is Category.BOOL:
        return str(bool(value))
    if category is Category.INT:
        if isinstance(value, float) and not math.isfinite(value):
            return "0"
        return str(int(value))
    value = float(value)
    if dtype in EIGHT_BIT_FLOATS:
        return str(torch.tensor(value).to(dtype.info.torch).view(torch.uint8).item())
    if value == 0 and math.copysign(1, value) < 0:
        # Triton makes 0.0 of a literal -0.0.
        return f"(tl.full([], 0.0, {triton_name(dtype)}) * -1.0)"
    return repr(value) if math.isfinite(value) else f'float("{value}")'
