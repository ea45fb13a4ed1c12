"""The contenders of a case: tritonfuser, eager torch, torch.compile in two modes, Liger-Kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tritonfuser import FusionDefinition

from ..cases import Case, Inputs, Run, liger
from ..measure.inductor import compiled
from ..tables.records import OURS, PEERS

MODES = {"compile": None, "autotune": "max-autotune-no-cudagraphs"}


@dataclass(frozen=True)
class Contender:
    """One way to compute a case; ``bind(inputs)`` returns a call that computes it once."""

    name: str
    bind: Callable[[Inputs], Run]

    @property
    def peer(self) -> bool:
        """Whether it is skipped after the deadline."""
        return self.name not in (OURS, "eager")


def contenders(case: Case, fd: FusionDefinition, names: tuple[str, ...]) -> list[Contender]:
    """tritonfuser first, then the named peers that implement the case."""
    makers: dict[str, Callable[[Case], Contender | None]] = {
        "eager": lambda case: Contender("eager", lambda x: case.eager_run(case.peer_inputs(x))),
        "compile": partial(_compiled, "compile"),
        "autotune": partial(_compiled, "autotune"),
        "liger": _liger,
    }
    found = [makers[name](case) for name in PEERS if name in names]
    return [Contender(OURS, lambda inputs: partial(fd.run, inputs)), *filter(None, found)]


def _compiled(name: str, case: Case) -> Contender:
    function = compiled(case.eager, MODES[name])
    return Contender(name, lambda inputs: partial(function, *case.peer_inputs(inputs)))


def _liger(case: Case) -> Contender | None:
    if case.liger is None or not liger.available():
        return None
    bound, ops = case.liger, liger.load()
    return Contender("liger", lambda inputs: bound(ops, inputs))
