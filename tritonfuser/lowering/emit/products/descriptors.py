"""Loads and stores of whole tiles of a matrix product by tensor descriptors, as Triton text."""

from __future__ import annotations

from collections.abc import Mapping

from ....ir import Value
from ....ops.builder import as_call
from ....ops.table import View
from ....shapes.index_map import Index
from ...access.reads import Read, sources_of
from ...access.traffic import offset_of
from ...tile.descriptors import Described, described
from ...tile.product_nest import ProductNest
from ..kernel_writers import KernelFacts
from ..lines import Line
from ..writer import Writer


class DescriptorWriter:
    """Makes the descriptors of a kernel, each once, and writes loads that use them."""

    def __init__(self, facts: KernelFacts, nest: ProductNest, writer: Writer) -> None:
        self.facts = facts
        self.nest = nest
        self.writer = writer
        self._names: dict[Described, str] = {}

    def lines(self) -> list[Line]:
        """The lines that make the descriptors; they begin the kernel."""
        return [Line(f"{name} = {where.text}") for where, name in self._names.items()]

    def name(self, where: Described) -> str:
        """The variable of a descriptor."""
        if where not in self._names:
            self._names[where] = self.writer.fresh(f"{where.value.name}_desc")
        return self._names[where]

    def load(self, read: Read, down: str, along: str) -> str | None:
        """A whole tile over two kernel axes, or None where it is loaded by addresses."""
        read = self.bare(read)
        if not self.is_load(read) or not read.value.is_tensor or read.guards:
            return None
        where = self.described(read.value, read.index, self.facts.stored, down, along)
        if where is None:
            return None
        text = f"{self.name(where)}.load({where.place})"
        return f"tl.trans({text})" if where.transposed else text

    def is_load(self, read: Read) -> bool:
        """Whether a value comes straight from memory, where its loads put zeros."""
        return read.value in self.facts.stored or read.value not in self.facts.fusion.producers

    def bare(self, read: Read) -> Read:
        """What a value is in memory, through views that hand on one element from one place."""
        while not self.is_load(read):
            node = self.facts.fusion.producers[read.value]
            sources = sources_of(node, read) if isinstance(as_call(node).op.form, View) else ()
            if len(sources) != 1 or sources[0].guards:
                break
            source = sources[0].operand
            if not isinstance(source, Value) or not source.is_tensor:
                break
            read = Read(source, sources[0].index, read.guards)
        return read

    def described(
        self,
        value: Value,
        index: Index,
        strides: Mapping[Value, tuple[int, ...]],
        down: str,
        along: str,
    ) -> Described | None:
        """The tile of a buffer as a tensor descriptor describes it; None where it cannot."""
        if not self.nest.descriptors or value in self.facts.context.misaligned:
            return None
        offset = offset_of(index, strides[value])
        return described(value, offset, self.nest.tile(down), self.nest.tile(along))
