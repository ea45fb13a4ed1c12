"""``Segment``: the nodes of one kernel with its loop nest, stores and params."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from ...heuristics.cost.work import KernelWork
from ...heuristics.params import HeuristicParams, KernelParams
from ...heuristics.problem import Problem
from ...ir import Node, Value
from ...symbolic.index_expr import Affine, Axis
from ..access.aliases import BufferView
from .member import Member, Share
from .store import Store


@dataclass(frozen=True)
class Segment:
    """The nodes of one kernel.

    Attributes
    ----------
    name : str
        ``s0``, ``s1``, ...; the kernel's name starts with it.
    scheduler : str
        One of nvFuser's scheduler names, or ``scan``.
    nodes : tuple of Node
        All nodes the kernel computes, in recording order.
    inputs : tuple of Value
        The values that it loads, and the scalars that it takes.
    outputs : tuple of Value
        The values that it stores.
    parallel : tuple of Axis
        The axes of the loop nest that results run over, the slowest first by the rules; params
        may have them in another order (``axis_order.py``). A position of them is a row.
    reduced : tuple of Axis
        The axes along rows, that members reduce or scan along. Empty for a flat kernel.
    batch_axes : tuple of Axis
        Those of ``parallel`` that reductions over rows keep: one program each.
    crossing : tuple of Axis
        Those of ``parallel`` that make up the second tile axis of a transpose, where its params do
        not say which.
    numbered : tuple of Axis or None
        Those of ``parallel`` by the numbers that params name them by. None for a dim of one
        position.
    members : tuple of Member
        Its reductions and scans in order of dependence.
    stores : tuple of Store
        What it writes.
    params : HeuristicParams
        The scheduler's decisions, tile sizes among them.
    problem : Problem or None
        What the scheduler decided by. None for what torch runs.
    reason : str
        Why these nodes are together.
    loads : tuple of Value
        The values of other kernels that it loads although it could compute them.
    co_reduced : tuple of Axis
        Those of ``parallel`` that one program has whole: results of its rows are reduced over them.
    operands : tuple of BufferView
        For ``expr_eval``: where the tensors that torch is given lie, in the node's order.
    refusals : tuple of str
        Why each scheduler before the chosen one does not take it.
    overruled : str
        By what the cost model chose other params than the scheduler proposes. Empty where it did
        not.
    cut : str
        Why the kernels before it did not take it in. Empty where there were none.
    work : KernelWork
        The instructions of its nodes, as the cost model counts them. None of what torch runs.
    bytes_read, bytes_written : int
        Bytes of tensors that it has to move, each element once.
    depth : int
        The longest chain of reductions along its rows. 0 without reductions.
    row_start : Affine or None
        The element of memory at which a row begins, for most of the bytes along rows. None where
        tensors differ, or sizes vary.
    loaded_later : tuple of Value
        Those of ``inputs`` that a later kernel may find in the L2 cache, if a loop does not mark
        them as used for the last time.
    overlap : bool
        Its kernel may start while the one before it ends, where the device can do that.
    finishes : str
        The segment whose kernel computes it too: each of its tiles by the last program that arrives
        of those that make what the tile reads. Empty for a kernel of its own.
    beside : str
        The segment whose launch it shares: programs are divided among both. Empty for a launch of
        its own.
    follows : bool
        Its kernel starts while the one before it ends (programmatic dependent launch).
    followed : bool
        The kernel after it starts while this one ends.
    """

    name: str
    scheduler: str
    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    parallel: tuple[Axis, ...]
    reduced: tuple[Axis, ...]
    batch_axes: tuple[Axis, ...]
    crossing: tuple[Axis, ...]
    members: tuple[Member, ...]
    stores: tuple[Store, ...]
    params: HeuristicParams
    reason: str
    problem: Problem | None = None
    loads: tuple[Value, ...] = ()
    co_reduced: tuple[Axis, ...] = ()
    numbered: tuple[Axis | None, ...] = ()
    operands: tuple[BufferView, ...] = ()
    refusals: tuple[str, ...] = ()
    overruled: str = ""
    cut: str = ""
    work: KernelWork = field(default=KernelWork())
    bytes_read: int = 0
    bytes_written: int = 0
    depth: int = 0
    row_start: Affine | None = None
    loaded_later: tuple[Value, ...] = ()
    overlap: bool = True
    finishes: str = ""
    beside: str = ""
    follows: bool = False
    followed: bool = False

    @property
    def kernel_params(self) -> KernelParams:
        """The params, of a segment that has a kernel."""
        assert isinstance(self.params, KernelParams)
        return self.params

    @property
    def runs_torch(self) -> bool:
        """Whether torch runs its op."""
        return self.scheduler == "expr_eval"

    @property
    def has_launch(self) -> bool:
        """Whether something is launched for it first of all: its kernel, or what torch runs."""
        return self.scheduler != "no_op" and not self.launched_by

    @property
    def launched_by(self) -> str:
        """The segment whose kernel computes it; empty for one of its own, if it has any."""
        return self.finishes or self.beside

    @property
    def parallel_extent(self) -> int:
        """Rows: positions of ``parallel``."""
        return prod(a.extent for a in self.parallel)

    @property
    def reduced_extent(self) -> int:
        """Elements of a row: positions of ``reduced``."""
        return prod(a.extent for a in self.reduced)

    @property
    def shares(self) -> tuple[Share, ...]:
        """How the rows are shared out, for each reduction over them; empty where parts divide."""
        return tuple(m.share for m in self.members if m.share is not None)

    @property
    def looped_axes(self) -> tuple[Axis, ...]:
        """The axes of ``parallel`` that a program loops over where it reduces over rows."""
        return tuple(a for a in self.parallel if a not in self.batch_axes)
