"""Records of compilations and their reasons (``fd.explain_recompiles``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(eq=False)
class Recompile:
    """One compilation of a definition.

    Attributes
    ----------
    dynamic : bool
        Whether sizes are arguments of its kernels, so that it serves others too.
    reason : str
        Why nothing that was there would do.
    sizes : mapping
        The sizes that are arguments: ``{"size0": "tv0.shape[1]"}``.
    guards : tuple of str
        What must hold of them, beside what is equal in all its signatures.
    kernels : int
        How many it took.
    seconds : float
        Time it took on the host.
    served : int
        Signatures it has served.
    """

    dynamic: bool
    reason: str
    sizes: Mapping[str, str] = field(default_factory=dict)
    guards: tuple[str, ...] = ()
    kernels: int = 0
    seconds: float = 0.0
    served: int = 1

    def __str__(self) -> str:
        kind = "dynamic" if self.dynamic else "static"
        kernels = f"{self.kernels} kernel{'' if self.kernels == 1 else 's'}"
        served = f"{self.served} signature{'' if self.served == 1 else 's'}"
        lines = [f"{kind}, {kernels} in {self.seconds:.2f} s, {served}: {self.reason}"]
        lines += [f"    {name} = {what}" for name, what in self.sizes.items()]
        lines += [f"    guard {guard}" for guard in self.guards]
        return "\n".join(lines)


class Recompiles(tuple[Recompile, ...]):
    """All compilations of a definition, in order; prints as a report."""

    @property
    def kernels(self) -> int:
        """Kernels that were compiled."""
        return sum(made.kernels for made in self)

    def __str__(self) -> str:
        if not self:
            return "nothing was compiled yet"
        count = f"{len(self)} variant{'' if len(self) == 1 else 's'}"
        return "\n".join([f"{count}, {self.kernels} kernels", *map(str, self)])
