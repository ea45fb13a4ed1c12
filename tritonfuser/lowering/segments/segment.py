"""``Segment``: the nodes of one kernel with its loop nest, stores and params."""

from __future__ import annotations

from dataclasses import dataclass

from ...heuristics.params import HeuristicParams, KernelParams
from ...heuristics.problem import Problem
from ...ir import Node, Value
from ...symbolic.index_expr import Affine
from ..access.aliases import BufferView
from .kernel_cost import KernelCost
from .launch import Launch
from .loop_nest import LoopNest
from .member import Member, Share
from .rationale import Rationale
from .store import Store


@dataclass(frozen=True, kw_only=True)
class Segment(LoopNest, KernelCost, Launch, Rationale):
    """The nodes of one kernel: what it computes, loads and stores, and by which params.

    Its axes are in ``LoopNest``, its instructions and bytes in ``KernelCost``, how it is launched
    in ``Launch``, why it is so in ``Rationale``.

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
    members : tuple of Member
        Its reductions and scans in order of dependence.
    stores : tuple of Store
        What it writes.
    params : HeuristicParams
        The scheduler's decisions, tile sizes among them.
    problem : Problem or None
        What the scheduler decided by. None for what torch runs.
    loads : tuple of Value
        The values of other kernels that it loads although it could compute them.
    loaded_later : tuple of Value
        Those of ``inputs`` that a later kernel may find in the L2 cache, if a loop does not mark
        them as used for the last time.
    row_start : Affine or None
        The element of memory at which a row begins, for most of the bytes along rows. None where
        tensors differ, or sizes vary.
    operands : tuple of BufferView
        For ``expr_eval``: where the tensors that torch is given lie, in the node's order.
    """

    name: str
    scheduler: str
    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    params: HeuristicParams
    members: tuple[Member, ...] = ()
    stores: tuple[Store, ...] = ()
    problem: Problem | None = None
    loads: tuple[Value, ...] = ()
    loaded_later: tuple[Value, ...] = ()
    row_start: Affine | None = None
    operands: tuple[BufferView, ...] = ()

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
    def shares(self) -> tuple[Share, ...]:
        """How the rows are shared out, for each reduction over them; empty where parts divide."""
        return tuple(m.share for m in self.members if m.share is not None)
