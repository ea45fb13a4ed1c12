"""Which dims of which values share a loop: every dim as a product of shared atomic axes.

Dims of operands that broadcast together in a pointwise op share an axis. A reshape splits and
merges axes, a reduction drops them; what is broadcast after a reduction takes those up again that
it dropped, if it has as many positions. Two values over the same atomic axes can be computed in one
loop nest. Where two dims fail to match, fusion is lost but not correctness: kernels read operands
through index maps.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir import Fusion, Node, Value
from ...ops.builder import as_call
from ...ops.forms import Contraction, Materialize, Moments, Pointwise, Reduction, Scan
from ...ops.table import Call, Scatter, View
from ...shapes.index_map import Pull
from ...symbolic.index_expr import Affine, Axis, digit
from ...symbolic.loaded_index import LoadedIndex
from ...symbolic.queries import (
    assume_empty,
    assume_equal,
    is_known_equal,
)
from .axis_atoms import Atoms, AxisAtoms
from .returned_dims import Returned, returned_dims


class AtomicAxes:
    """The atomic axes ("atoms") of every dim of every tensor of a concrete fusion."""

    def __init__(self, fusion: Fusion) -> None:
        self._atoms = AxisAtoms()
        self._dims: dict[Value, tuple[Atoms, ...]] = {}
        for value in fusion.inputs:
            if value.is_tensor:
                self._place(value, [self._atoms.fresh(n) for n in value.tensor.sizes])
        for node in fusion.nodes:
            for out in node.outs:
                if out.is_tensor:
                    self._place(out, self._dims_of(node, out))
        for returned in returned_dims(fusion):
            self._share_reduced(returned)

    def atoms(self, value: Value) -> tuple[Atoms, ...]:
        """The atoms of each dim, outermost first; none for a size-1 dim."""
        return tuple(self._atoms.resolve(dim) for dim in self._dims[value])

    def domain(self, value: Value) -> Atoms:
        """All atoms of a value, dims in order."""
        return self._atoms.resolve([atom for dim in self._dims[value] for atom in dim])

    def extent(self, atom: int) -> int:
        """The positions of an atom."""
        return self._atoms.extent(atom)

    def axis(self, atom: int) -> Axis:
        """An atom as an axis of loop nests."""
        return Axis(f"a{atom}", self._atoms.extent(atom))

    def index(self, value: Value) -> tuple[Affine, ...]:
        """The index of each dim of a value, as a function of the axes of its atoms."""
        return tuple(self._join(dim) for dim in self.atoms(value))

    def _join(self, atoms: Atoms) -> Affine:
        total = Affine()
        for atom in atoms:
            total = total * self._atoms.extent(atom) + digit(self.axis(atom))
        return total

    def _place(self, value: Value, dims: Sequence[Atoms]) -> None:
        self._dims[value] = tuple(dims)
        self._atoms.note_user(value, self.domain(value))

    def _share_reduced(self, returned: Returned) -> None:
        """Let dims along which a result is broadcast share the axes that were reduced for it.

        Only where they have the same extents: what is reduced and what is computed of the result
        can be in one loop nest then. No other loop nest gets more axes.
        """
        reduced = self._of_dims(returned.operand, returned.reduced)
        along = self._of_dims(returned.value, returned.along)
        pairs = list(zip(reduced, along, strict=False))
        alike = all(is_known_equal(self._atoms.extent(a), self._atoms.extent(b)) for a, b in pairs)
        if alike and len(reduced) == len(along):
            for pair in pairs:
                self._atoms.unite(*pair)

    def _of_dims(self, value: Value, dims: Sequence[int]) -> Atoms:
        return self._atoms.resolve([atom for dim in dims for atom in self._dims[value][dim]])

    # -- ops -----------------------------------------------------------------

    def _dims_of(self, node: Node, out: Value) -> list[Atoms]:
        call = as_call(node)
        form = call.op.form
        if isinstance(form, Pointwise):
            return self._pointwise(node, out)
        if isinstance(form, Scan):
            return list(self._dims[call.value("arg")])
        if isinstance(form, Reduction | Moments):
            dims = call.dims()
            return [d for i, d in enumerate(self._dims[call.value("arg")]) if i not in dims]
        if isinstance(form, View):
            return self._view(call, out)
        if isinstance(form, Materialize):
            return list(self._dims[call.value("arg")])
        if isinstance(form, Scatter):
            return self._scatter(call)
        if isinstance(form, Contraction):
            left, right = self._dims[call.value("arg1")], self._dims[call.value("arg2")]
            return self._distinct([*left[:-1], right[-1]], out)
        return [self._atoms.fresh(n) for n in out.tensor.sizes]

    def _scatter(self, call: Call) -> list[Atoms]:
        """Dims of ``arg`` for the copy; those of ``src`` match ``index`` where extents agree."""
        index, src = call.value("index"), call.operand("src")
        if isinstance(src, Value) and src.is_tensor:
            for dim, size in enumerate(index.tensor.sizes):
                if assume_equal(size, src.tensor.sizes[dim]):
                    self._atoms.match(self._dims[index][dim], self._dims[src][dim])
        return list(self._dims[call.value("arg")])

    def _pointwise(self, node: Node, out: Value) -> list[Atoms]:
        result: list[Atoms] = [()] * out.tensor.rank
        for value in node.operands():
            if not value.is_tensor:
                continue
            offset = len(result) - value.tensor.rank
            for place, dim in enumerate(self._dims[value]):
                if assume_equal(value.tensor.sizes[place], 1):
                    continue
                if result[offset + place]:
                    self._atoms.match(result[offset + place], dim)
                else:
                    result[offset + place] = dim
        return self._distinct(result, out)

    def _distinct(self, dims: list[Atoms], out: Value) -> list[Atoms]:
        """New axes where two dims would share an axis, as in ``x[i] * x[j]``."""
        seen: set[int] = set()
        for place, dim in enumerate(dims):
            atoms = self._atoms.resolve(dim)
            if not seen.isdisjoint(atoms):
                dims[place] = atoms = self._atoms.fresh(out.tensor.sizes[place])
            seen.update(atoms)
        return dims

    def _view(self, call: Call, out: Value) -> list[Atoms]:
        """Dims that the view passes on keep their atoms; others get new axes."""
        assert isinstance(call.op.form, View)
        if call.op.form.regroups:
            return self._reshape(call.value("arg"), out)
        flat = [item for a in call.args for item in (a if isinstance(a, tuple) else (a,))]
        operand = next(item for item in flat if isinstance(item, Value) and item.is_tensor)
        passed = _unchanged_dims(call, operand, out)
        return [
            self._dims[operand][passed[place]] if place in passed else self._atoms.fresh(size)
            for place, size in enumerate(out.tensor.sizes)
        ]

    def _reshape(self, operand: Value, out: Value) -> list[Atoms]:
        pool = [a for dim in self._dims[operand] for a in dim]
        if assume_empty(out.tensor.sizes):
            return [self._atoms.fresh(n) for n in out.tensor.sizes]
        left = list(self._atoms.resolve(pool))
        dims: list[Atoms] = []
        for size in reversed(out.tensor.sizes):
            taken = self._atoms.take(left, size)
            if taken is None:
                return [self._atoms.fresh(n) for n in out.tensor.sizes]
            dims.insert(0, taken)
        return dims


def _unchanged_dims(call: Call, operand: Value, out: Value) -> dict[int, int]:
    """Result dim -> operand dim, where the view's index map leaves the index unchanged."""
    # What is left of a dim may be all of it at some sizes: a new axis is right at these too.
    same = is_known_equal if call.op.name == "slice" else assume_equal
    marks = tuple(digit(Axis(f"d{i}", n)) for i, n in enumerate(out.tensor.sizes))
    form = call.op.form
    assert isinstance(form, View)
    sources = form.pull(
        call, Pull(marks, lambda value, index, dim: digit(LoadedIndex((value, index))))
    )
    if not sources or sources[0].operand != operand:
        return {}
    dims = {mark: dim for dim, mark in enumerate(marks) if mark.terms}
    found = ((dims[item], place) for place, item in enumerate(sources[0].index) if item in dims)
    return {
        dim: place
        for dim, place in found
        if same(out.tensor.sizes[dim], operand.tensor.sizes[place])
    }
