"""Names of nvFuser's that have no meaning here: they exist, and say so when they are used."""

from __future__ import annotations

from typing import Any, NoReturn

from ..errors import TritonFuserError
from .location import user_line


class UnavailableError(TritonFuserError, RuntimeError):
    """Something of nvFuser's that has no meaning here, or is not there yet."""


class Unavailable:
    """A name to import; calling it, reading an attribute or testing a type raises.

    Parameters
    ----------
    name : str
        As nvFuser has it.
    instead : str
        What to do.
    """

    def __init__(self, name: str, instead: str) -> None:
        self._name = name
        self._instead = instead

    def _refuse(self, used: str) -> NoReturn:
        raise UnavailableError(
            f"{used} is not available in tritonfuser", loc=user_line(), hint=self._instead
        )

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._refuse(f"{self._name}()")

    def __getattr__(self, attribute: str) -> NoReturn:
        # Tools that look at modules ask for names like __file__ and __wrapped__.
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        self._refuse(f"{self._name}.{attribute}")

    def __instancecheck__(self, instance: object) -> NoReturn:
        self._refuse(f"isinstance(..., {self._name})")

    def __repr__(self) -> str:
        return f"<{self._name}: not available in tritonfuser>"


_SCHEDULE = (
    "Kernels are scheduled by params: change those that fd.heuristics(inputs) gives and pass "
    "them to fd.run(inputs, params=[...])."
)
_DEVICES = "Definitions run on one device; communication between several is not there yet."
_PROFILE = "Time with torch.profiler, or with triton.testing.do_bench(lambda: fd.run(inputs))."
_SCHEDULED_IR = "The IR has ops, not loops: fd.fusion.ir lists them, fd.segments(inputs) the loops."

schedule = Unavailable("schedule", _SCHEDULE)
idm = Unavailable("idm", _SCHEDULE)
multidevice = Unavailable("multidevice", _DEVICES)
execute_with_dtensors = Unavailable("execute_with_dtensors", _DEVICES)
IterDomain = Unavailable("IterDomain", _SCHEDULED_IR)
TensorDomain = Unavailable("TensorDomain", _SCHEDULED_IR)
Merge = Unavailable("Merge", _SCHEDULED_IR)
Split = Unavailable("Split", _SCHEDULED_IR)
BroadcastOp = Unavailable("BroadcastOp", _SCHEDULED_IR)
SqueezeOp = Unavailable("SqueezeOp", _SCHEDULED_IR)
ReshapeOp = Unavailable("ReshapeOp", _SCHEDULED_IR)
CompileParams = Unavailable("CompileParams", _SCHEDULE)
LaunchParams = Unavailable("LaunchParams", _SCHEDULE)
MatmulParams = Unavailable("MatmulParams", "Matrix products are not there yet.")
PythonProfiler = Unavailable("PythonProfiler", _PROFILE)
get_fusion_profile = Unavailable("get_fusion_profile", _PROFILE)
reset_profiler = Unavailable("reset_profiler", _PROFILE)
KernelProfile = Unavailable("KernelProfile", _PROFILE)
FusionProfile = Unavailable("FusionProfile", _PROFILE)
