"""Text of a kernel under construction: nested scopes of lines, and the names bound in each."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace

from ...dtypes import DataType
from ...errors import SourceLoc
from ...ir import Value
from .expressions import cast_text, is_widening
from .lines import Block, Line
from .memory.masked_loads import MaskedLoads, after_cast
from .names import Name, Run


@dataclass
class Scope:
    """A block of the kernel: the function body, or the body of a loop.

    Attributes
    ----------
    axes : frozenset of str
        The kernel axes that the loop moves; none for the function body.
    lines, tail : list of Line
        Its lines, and those that end a step of the loop.
    names : dict
        What is bound in it: a value at an index, a digit, a cast.
    """

    axes: frozenset[str] = frozenset()
    lines: list[Line] = field(default_factory=list)
    tail: list[Line] = field(default_factory=list)
    names: dict[Hashable, Name] = field(default_factory=dict)


class Writer:
    """Scopes from the outermost in; a value is written where its axes are known, no deeper."""

    def __init__(self) -> None:
        self.scopes = [Scope()]
        self.masked_loads = MaskedLoads()
        self._used: dict[str, int] = {}

    # -- names ---------------------------------------------------------------

    def fresh(self, wanted: str) -> str:
        """``wanted``, with a numeric suffix where the name is taken."""
        count = self._used.get(wanted, 0)
        self._used[wanted] = count + 1
        return wanted if count == 0 else self.fresh(f"{wanted}_{count}")

    def numbered(self, wanted: str) -> str:
        """``x0``, ``x1``, ...: the next name of a series."""
        count = self._used.get(f"{wanted}#", 0)
        self._used[f"{wanted}#"] = count + 1
        return self.fresh(f"{wanted}{count}")

    def find(self, key: Hashable) -> Name | None:
        """What is bound to a key here, if anything is."""
        for scope in reversed(self.scopes):
            if key in scope.names:
                return scope.names[key]
        return None

    def bind(self, key: Hashable, name: Name) -> None:
        """Bind a name to a key, in the scope where the name's axes run."""
        self.scope_for(name.dims).names[key] = name

    # -- lines ---------------------------------------------------------------

    def define(
        self,
        value: Value,
        text: str,
        dims: frozenset[str],
        dtype: DataType,
        loc: SourceLoc | None = None,
        mark: str = "",
        loads: str = "",
        block: Block | None = None,
    ) -> Name:
        """Write ``name = text`` in the scope where ``dims`` run.

        Parameters
        ----------
        value : Value
            Whose name the variable has.
        mark : str
            Put behind the name, where the variable is not the value itself.
        loads : str
            The tensor that the line loads from, if it does.
        block : Block, optional
            What it loads.
        """
        scope = self.scope_for(dims)
        name = Name(self.fresh(f"{value.name}{mark}"), dtype, dims)
        scope.lines.append(Line(f"{name.text} = {text}", loc, loads=loads, block=block))
        return name

    def spread(self, value: Value, run: Run, mark: str = "") -> Name:
        """Write what neighbours have in common for each of them."""
        text = f"spread({run.each.text}, {run.repeat.count})"
        name = self.define(value, text, run.each.dims, run.each.dtype, mark=mark)
        return replace(name, run=run)

    def cast(
        self,
        name: Name,
        dtype: DataType,
        value: Value,
        loc: SourceLoc | None = None,
        function: str = "",
    ) -> Name:
        """A number converted to another dtype, once for all uses.

        Parameters
        ----------
        function : str
            Converts the number, in the place of a plain cast.
        """
        if name.dtype is dtype:
            return name
        key = ("cast", name.text, dtype)
        found = self.find(key)
        if found is None:
            mark = "" if loc is not None else f"_{dtype.info.triton}"

            def text(each: str) -> str:
                return f"{function}({each})" if function else cast_text(each, name.dtype, dtype)

            found = self._converted(name, text, dtype, value, loc, mark)
            widened = is_widening(name.dtype, dtype)
            held = (name.held or name.dtype) if widened else None
            found = replace(found, held=held, outside=after_cast(name, dtype))
            self.bind(key, found)
            if widened or name.held is dtype:
                # The way back changes nothing.
                self.bind(("cast", found.text, name.dtype), name)
        return found

    def rounded(self, name: Name, value: Value, loc: SourceLoc | None = None) -> Name:
        """Float32 numbers of a block rounded to bfloat16, in float32."""
        narrow, wide = DataType.BFloat16, DataType.Float
        key = ("rounded", name.text)
        found = self.find(key)
        if found is None:
            between = replace(name, dtype=narrow, outside=after_cast(name, narrow))
            found = self._converted(name, "round_to_bfloat16({})".format, wide, value, loc, "")
            found = replace(found, held=narrow, outside=after_cast(between, wide))
            self.bind(key, found)
        return found

    def _converted(
        self,
        name: Name,
        text: Callable[[str], str],
        dtype: DataType,
        value: Value,
        loc: SourceLoc | None,
        mark: str,
    ) -> Name:
        """A function of a number, or of what neighbours have in common."""
        if name.run is None:
            return self.define(value, text(name.text), name.dims, dtype, loc, mark)
        each = self.define(value, text(name.run.each.text), name.dims, dtype, loc, f"{mark}_lane")
        return self.spread(value, replace(name.run, each=each), mark)

    def line(self, text: str, loc: SourceLoc | None = None, loads: str = "") -> None:
        """Write a line in the innermost scope."""
        self.scopes[-1].lines.append(Line(text, loc, loads=loads))

    def line_before_loop(self, text: str, loads: str = "") -> None:
        """Write a line before the innermost loop."""
        self.scopes[-2].lines.append(Line(text, loads=loads))

    def line_at_step_end(self, text: str) -> None:
        """Write a line at the end of the innermost loop's step."""
        self.scopes[-1].tail.append(Line(text))

    # -- scopes --------------------------------------------------------------

    def scope_for(self, dims: frozenset[str]) -> Scope:
        """The outermost scope in which all these axes run."""
        for scope in reversed(self.scopes):
            if not scope.axes.isdisjoint(dims):
                return scope
        return self.scopes[0]

    def open_loop(self, *axes: str) -> None:
        """Begin a loop that moves these kernel axes."""
        self.scopes.append(Scope(frozenset(axes)))

    def close_loop(self, header: str, *first: str) -> None:
        """End the innermost loop: append its lines to those of its parent.

        Parameters
        ----------
        header : str
            The ``for`` line.
        *first : str
            Lines that begin each step.
        """
        scope = self.scopes.pop()
        parent = self.scopes[-1]
        parent.lines.append(Line(header))
        for line in (*(Line(text) for text in first), *scope.lines, *scope.tail):
            parent.lines.append(replace(line, depth=line.depth + 1))
