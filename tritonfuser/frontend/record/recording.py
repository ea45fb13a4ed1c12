"""A definition being recorded: inputs, ops and outputs -> ``ir.Fusion``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from ...dtypes import DTYPE_TEXT, DataType, data_type, dtype_advice
from ...errors import DefinitionError, SourceLoc, TritonFuserError
from ...ir import Attr, Const, Fusion, Node, Operand, Output, ScalarType, Value
from ...ops import registry
from ...ops.arguments import bind
from ...ops.builder import GraphBuilder
from ...shapes.equal_extents import assume_extents_fit
from ...symbolic.extents import SymbolicExtent, symbol
from ..vocabulary.location import user_line
from .constants import constant, incompatible
from .device_mesh import DeviceMesh
from .handles import handle_of, unwrap, wrap
from .layouts import define_tensor_type
from .op_expressions import OpExpr, expression
from .sharding import Shardings, sharding_of
from .tensor_domain import TensorDomain, domain_of
from .tensor_view import TensorView
from .val import Val


class Recording:
    """Collects a definition; every step is whole or leaves nothing behind.

    ``open`` counts the ``with`` blocks in which it may be added to; ``written_axes`` has the dims
    of each reduction as the user wrote them, by its results.
    """

    namespace = "tritonfuser"
    """The module whose FusionDefinition records it: ours, or one that stands for nvFuser's."""

    def __init__(self) -> None:
        self.open = 0
        self.clear()

    @property
    def uses_nvfuser_names(self) -> bool:
        """Whether handles and errors name values as nvFuser does, not as ``print(fd)`` does."""
        return self.namespace != "tritonfuser"

    def clear(self) -> None:
        """Forget everything recorded; handles made so far belong to nothing any more."""
        self._builder = GraphBuilder()
        self._symbols = 0
        self._input_lines: dict[Value, SourceLoc] = {}
        self._ir: Fusion | None = None
        self.written_axes: dict[Value, Attr] = {}
        self._domains: dict[Value, TensorDomain] = {}
        self._partials: set[Value] = set()
        self.handles: dict[Operand, Val] = {}

    def adopt(self, builder: GraphBuilder, symbols: int) -> None:
        """Take inputs and ops that were recorded elsewhere, with extents ``i0`` to ``symbols``."""
        self._builder = builder
        self._symbols = symbols
        self._ir = None

    @property
    def ir(self) -> Fusion:
        """What is recorded so far, frozen."""
        if self._ir is None:
            self._ir = self._builder.fusion()
        return self._ir

    def handle_of(self, value: Operand) -> Any:
        """The handle of a value or a constant."""
        return handle_of(self, value)

    def expression(self, node: Node) -> OpExpr:
        """The handle of an op."""
        return expression(self, node)

    def domain_of(self, value: Value) -> TensorDomain:
        """The dims of a tensor, and what was done to them."""
        if value not in self._domains:
            self._domains[value] = domain_of(self, value)
        return self._domains[value]

    def domains(self) -> Iterator[tuple[Value, TensorDomain]]:
        """Tensors whose dims were asked for, and these dims; in order of their numbers."""
        found = (pair for pair in self._domains.items() if pair[0] not in self._partials)
        yield from sorted(found, key=lambda pair: pair[0].index)

    @property
    def shardings(self) -> Shardings:
        """How tensors are spread over a mesh, for those that are; in order of their numbers."""
        for partial in self._partials:
            if self._domains[partial].mesh is not None:
                sharding_of(self._domains[partial])
        return tuple((v, sharding_of(d)) for v, d in self.domains() if d.mesh is not None)

    def put(self, value: Value, mesh: DeviceMesh) -> None:
        """Put a tensor on a mesh, the one that the others are on."""
        other = next((d for v, d in self._domains.items() if v != value and d.mesh), None)
        if other is not None and other.mesh != mesh:
            raise DefinitionError(
                f"set_device_mesh: one definition over several meshes: {other.mesh} and {mesh}",
                loc=user_line(),
                hint="Put all tensors on one mesh, or make a definition for each.",
            )
        self.domain_of(value).mesh = mesh

    def partial_of(self, value: Value, dims: Sequence[int]) -> TensorView:
        """The partial results of a tensor that reduces some of its loops first."""
        domain = self.domain_of(value).partial(dims)
        made = self._builder.new_value(value.tensor)
        self._domains[made] = domain
        self._partials.add(made)
        partial: TensorView = handle_of(self, made)
        return partial

    def line_of(self, value: Value) -> SourceLoc | None:
        """The user's line that defined an input."""
        return self._input_lines.get(value)

    def set_line(self, value: Value, line: SourceLoc) -> None:
        """Say which line defined an input."""
        self._input_lines[value] = line

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Record the op ``name``: handles and numbers in, handles out."""
        with self._step(f"fd.ops.{name}") as builder:

            def own(handle: Val) -> Operand:
                return self._own(handle, f"fd.ops.{name}")

            given = [unwrap(arg, own) for arg in args]
            named = {key: unwrap(arg, own) for key, arg in kwargs.items()}
            before = len(builder.nodes)
            made = builder.call(name, *given, **named)
            if registry.get(name).category == "reduction":
                written = bind(registry.get(name), given, named).attrs["dims"]
                added = builder.nodes[before:]
                self.written_axes.update({n.out: written for n in added if n.op == name})
            return wrap(self, made)

    def new_tensor(self, *args: Any, **kwargs: Any) -> TensorView:
        """A tensor that is no input yet; arguments as for ``define_tensor``."""
        with self._step("define_tensor") as builder:
            type_ = define_tensor_type(args, kwargs, self._new_symbol)
            value = builder.new_value(type_)
            self._input_lines[value] = user_line()
            made: TensorView = handle_of(self, value)
            return made

    def new_scalar(self, value: Any = None, dtype: DataType | torch.dtype | None = None) -> Val:
        """A constant, or a scalar that is no input yet; arguments as for ``define_scalar``."""
        with self._step("define_scalar") as builder:
            if isinstance(value, DataType | torch.dtype):
                value, dtype = None, value
            asked, dtype = dtype, None if dtype is None else data_type(dtype)
            if asked is not None and dtype is None:
                wrong = f"dtype must be {DTYPE_TEXT}, got {asked!r}"
                raise incompatible("define_scalar", wrong, dtype_advice(asked))
            if dtype is DataType.Null:
                raise DefinitionError("define_scalar: a scalar cannot be of DataType.Null")
            if value is not None:
                found: Val = handle_of(self, constant(value, dtype))
                return found
            scalar = builder.new_value(ScalarType(dtype or DataType.Double))
            self._input_lines[scalar] = user_line()
            handle: Val = handle_of(self, scalar)
            return handle

    def add_input(self, handle: Val) -> None:
        """Make a tensor or a scalar that nothing computes the next input."""
        with self._step("add_input") as builder:
            value = self._own(handle, "add_input")
            if isinstance(value, Const):
                raise DefinitionError("add_input: a constant cannot be an input")
            if value in builder.inputs:
                raise DefinitionError(f"add_input: {value.name} is an input already")
            if value in self.ir.producers:
                raise DefinitionError(f"add_input: {value.name} is computed by an op")
            builder.inputs.append(value)

    def add_output(self, output: Any, alias_input: Any = None) -> None:
        """Return a tensor, or write it into an input; see ``FusionDefinition.add_output``."""
        with self._step("add_output") as builder:
            value = self._tensor(output, "output")
            if alias_input is None:
                self._return(builder, value)
            else:
                target = self._aliased_input(builder, self._tensor(alias_input, "alias_input"))
                self._write_back(builder, value, target)

    # --- outputs ---------------------------------------------------------------------------

    def _return(self, builder: GraphBuilder, value: Value) -> None:
        alias = next((o.alias_of for o in builder.outputs if o.value == value), None)
        # A hidden entry moves to the place of the plain one.
        builder.outputs = [o for o in builder.outputs if not (o.hidden and o.value == value)]
        builder.outputs.append(Output(value, alias))

    def _aliased_input(self, builder: GraphBuilder, value: Value) -> Value:
        if value in builder.inputs:
            return value
        node = self.ir.producers.get(value)
        source = None if node is None or len(node.outs) > 1 else next(node.operands(), None)
        # What a tracer calls the input may be its cast to another dtype.
        if node is not None and source in builder.inputs and _is_cast(node.out, source):
            return source
        raise DefinitionError(
            f"add_output: alias_input must be an input of the fusion, {value.name} is computed",
            hint="Pass the tensor that define_tensor returned.",
        )

    def _write_back(self, builder: GraphBuilder, value: Value, target: Value) -> None:
        into, made = target.tensor, value.tensor
        fits = into.rank == made.rank and all(
            assume_extents_fit(a, b) for a, b in zip(into.shape, made.shape, strict=True)
        )
        if not fits:
            raise DefinitionError(
                f"add_output: {value.name} of shape {list(made.shape)} cannot be written into "
                f"{target.name} of shape {list(into.shape)}"
            )
        if any(o.alias_of == target and o.value != value for o in builder.outputs):
            raise DefinitionError(f"add_output: {target.name} is written by another output")
        if made.dtype is not into.dtype:
            value = builder.call("cast", value, into.dtype)
        elif value in builder.inputs:
            value = builder.call("set", value)
        listed = [o for o in builder.outputs if o.value == value]
        if not listed:
            builder.outputs.append(Output(value, target, hidden=True))
            return
        if any(o.alias_of not in (None, target) for o in listed):
            raise DefinitionError(f"add_output: {value.name} is written into another input")
        builder.outputs = [
            Output(value, target, o.hidden) if o.value == value else o for o in builder.outputs
        ]

    # --- steps -----------------------------------------------------------------------------

    @contextmanager
    def _step(self, what: str) -> Iterator[GraphBuilder]:
        """One call of the user's: refused outside ``with``, undone where it fails."""
        line = replace(user_line(), called=what.rpartition(".")[2])
        if not self.open:
            raise outside(what, line)
        builder = self._builder
        mark, symbols = builder.mark(), self._symbols
        builder.loc = line
        self._ir = None
        try:
            yield builder
        except TritonFuserError as error:
            builder.rollback(mark)
            self._symbols = symbols
            raise error.located(line) from error.__cause__
        except BaseException:
            builder.rollback(mark)
            self._symbols = symbols
            raise
        finally:
            self._ir = None

    def _new_symbol(self) -> SymbolicExtent:
        self._symbols += 1
        return unknown_extent(self._symbols - 1)

    def _own(self, handle: Any, what: str) -> Operand:
        if not isinstance(handle, Val):
            raise incompatible(what, f"expected a value of this definition, got {handle!r}")
        value = handle.value
        if isinstance(value, Const):
            return value
        if handle.container is not self or not self._builder.knows(value):
            raise DefinitionError(
                f"{what}: {value.name} belongs to another definition",
                hint="Use values of the definition that is being recorded.",
            )
        if value in self._partials:
            raise DefinitionError(
                f"{what}: {value.name} are partial results that rfactor() gave",
                hint="They can be put on a mesh. Ops take the tensor that rfactor() was called on.",
            )
        return value

    def _tensor(self, handle: Any, name: str) -> Value:
        if not isinstance(handle, TensorView):
            kind = "a scalar" if isinstance(handle, Val) else f"{handle!r}"
            raise incompatible("add_output", f"{name} must be a TensorView, got {kind}")
        value = self._own(handle, "add_output")
        assert isinstance(value, Value)
        return value


def unknown_extent(number: int) -> SymbolicExtent:
    """An extent that is known only at run time."""
    return symbol(f"i{number}")


def outside(what: str, line: SourceLoc) -> DefinitionError:
    """The error for recording where nothing is being recorded."""
    return DefinitionError(
        f"{what}() is used outside of a definition",
        loc=line,
        hint="Record inside `with FusionDefinition() as fd: ...`.",
    )


def _is_cast(out: Value, source: Value) -> bool:
    return out.is_tensor and out.tensor.shape == source.tensor.shape and out.dtype != source.dtype
