"""Definitions in, results out: the cached path (FusionExecutorCache) and the one-shot one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .. import device as devices
from .. import options
from ..device import DeviceProperties
from ..errors import ExecutionModeError, InputError, SchedulingError
from ..heuristics.params import HeuristicParams
from ..ir import Fusion
from ..lowering.build import KernelReport, digest_ahead, report
from ..lowering.kernel_source import KernelSource
from ..lowering.passes.concretize import InputSignature
from ..lowering.pipeline import Lowered, lower
from ..lowering.product_policy import ProductPolicy
from ..lowering.segments import SegmentedFusion
from ..symbolic.shape_env import Ledger
from .calls.diagnosis import explain_mismatch
from .calls.entries import Checked, Nowhere, way_in
from .calls.profiling import watched
from .keys.open_sizes import KeyReader, Numbers, Opened, opened
from .keys.recompiles import Recompiles
from .keys.signature import default_device, is_aligned, key_maker, signature
from .lru import LRU
from .plan.capture import refuse_first_run
from .plan.execution_plan import ExecutionPlan, make_plan
from .variants import Request, Variants

_ODD = (AttributeError, TypeError, ValueError)
"""What making a key raises for inputs of the wrong number or kind."""


class FusionExecutorCache:
    """A definition with its compiled variants, one a signature of inputs, in an LRU.

    Parameters
    ----------
    fusion : Fusion
        The recorded definition.
    max_plans : int
        Variants kept.
    fusion_id : int
        The number that profiles call it by.
    two_steps : bool
        Whether a reduction of few rows may take two kernels.
    """

    def __init__(
        self,
        fusion: Fusion,
        *,
        max_plans: int = 256,
        fusion_id: int = 0,
        two_steps: bool = True,
    ) -> None:
        self.fusion = fusion
        self._fusion_id = fusion_id
        self._two_steps = two_steps
        self._key = key_maker(fusion)
        self._plans: LRU[Any, ExecutionPlan] = LRU(max_plans)
        self._variants = Variants(fusion)
        self._settings = options.current()
        self._find = self._plans.get
        self._last: Checked | type[Nowhere] = Nowhere

    def execute(
        self,
        inputs: Sequence[Any],
        *,
        params: Sequence[HeuristicParams] | None = None,
        device: torch.device | str | None = None,
        products: ProductPolicy = ProductPolicy.AUTO,
    ) -> list[torch.Tensor]:
        """Run the definition on flat inputs: tensors and Python numbers, in definition order.

        Raises
        ------
        InputError, UnsupportedDeviceError
            The inputs do not fit the definition.
        ParamsError
            ``params`` do not fit the segments.
        SchedulingError
            A matrix product that torch may not run cannot be a kernel.
        """
        usual = params is None and device is None and products is ProductPolicy.AUTO
        if usual and options.current() is self._settings:
            return self._last.run(inputs, self._looked_up)
        return self.plan(inputs, params=params, device=device, products=products).run(inputs)

    def _looked_up(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """Run by the plan for inputs like these, which then is the first to be tried."""
        try:
            plan = self._find(self._key(inputs))
        except _ODD:
            plan = None
        if plan is None:
            return self.plan(inputs).run(inputs)
        if any(value.is_tensor for value in self.fusion.inputs):  # else torch's device counts
            self._last = way_in(plan, self.fusion, inputs, self._last)
        return plan.run(inputs)

    def plan(
        self,
        inputs: Sequence[Any],
        *,
        params: Sequence[HeuristicParams] | None = None,
        device: torch.device | str | None = None,
        products: ProductPolicy = ProductPolicy.AUTO,
    ) -> ExecutionPlan:
        """The bound plan for inputs like these, compiled if it is not yet."""
        where = self._checked(inputs, device)
        if options.current() is not self._settings:
            self._plans.clear()
            self._variants.clear()
            self._settings = options.current()
        self._last = Nowhere  # what runs now is the newest
        key = self._key(inputs)
        if params is not None or device is not None:
            key = (key, None if params is None else tuple(params), where)
        if products is not ProductPolicy.AUTO:
            key = (key, products)
        properties = devices.of(where)

        def compiled(found: InputSignature, ledger: Ledger | None) -> ExecutionPlan:
            refuse_first_run(where)
            if not properties.is_cpu:
                digest_ahead()
            lowered = lower(
                self.fusion, found, properties, params, self._two_steps, products, ledger
            )
            return make_plan(lowered, inputs, where, properties, self._fusion_id)

        request = Request(
            self._key(inputs),
            (where, products),
            lambda: signature(self.fusion, inputs, where),
            compiled,
            "" if params is None else "params were given",
        )
        return self._plans.get_or_make(key, lambda: watched(self._variants.serve(request)))

    def recompiles(self) -> Recompiles:
        """What was compiled for runs, in order, and what made it necessary."""
        return Recompiles(self._variants.records)

    def is_compiled(self, inputs: Sequence[Any]) -> bool:
        """Whether inputs like these have been run."""
        try:
            return self._key(inputs) in self._plans
        except _ODD:
            return False

    def newest(self) -> ExecutionPlan | None:
        """The plan that ran last."""
        return self._plans.newest()

    def segments(
        self,
        inputs: Sequence[Any],
        *,
        arch: str | None = None,
        varying: Sequence[Sequence[Any]] = (),
    ) -> SegmentedFusion:
        """How the definition is cut for inputs like these, here or on another GPU."""
        return self._lowered(inputs, arch, varying).segmented

    def heuristics(self, inputs: Sequence[Any]) -> list[HeuristicParams]:
        """The params that would be used, one a segment."""
        return [s.params for s in self.segments(inputs).segments]

    def kernels(
        self,
        inputs: Sequence[Any],
        *,
        arch: str | None = None,
        varying: Sequence[Sequence[Any]] = (),
    ) -> list[KernelSource]:
        """The kernels' sources, in execution order."""
        return [s for s in self._lowered(inputs, arch, varying).sources if s is not None]

    def compile_for(self, arch: str, inputs: Sequence[Any]) -> list[KernelReport]:
        """Compile the kernels for a GPU that need not be here.

        Parameters
        ----------
        arch : str
            ``"sm_80"``, ``"sm_90"``, ``"sm_100"`` or ``"gfx942"``.
        inputs : sequence
            CPU or meta tensors that stand for tensors on that device, and numbers.
        """
        lowered = self._lowered(inputs, arch)
        known = {
            value: is_aligned(given)
            for value, given in zip(self.fusion.inputs, inputs, strict=True)
            if value.is_tensor
        }
        by_name = {value.name: flag for value, flag in known.items()}
        for part in lowered.parts:
            by_name[part.value.name] = by_name.get(part.source.name, False)
        reports: list[KernelReport] = []
        for piece, source in zip(lowered.segmented.segments, lowered.sources, strict=True):
            if source is not None:
                aligned = tuple(by_name.get(a.value.name, a.is_tensor) for a in source.args)
                reports.append(report(source, piece.scheduler, arch, aligned))
        return reports

    def lowered(
        self,
        inputs: Sequence[Any],
        *,
        arch: str | None = None,
        varying: Sequence[Sequence[Any]] = (),
    ) -> tuple[Lowered, DeviceProperties]:
        """All that is decided for inputs like these, and for which device.

        Parameters
        ----------
        varying : sequence of sequences
            Inputs of earlier runs: sizes that differ become arguments of the kernels.

        Raises
        ------
        InputError
            Earlier inputs differ in more than sizes.
        """
        where = self._checked(inputs, None)
        properties = devices.of(where) if arch is None else devices.known(arch)
        sizes = self._opened(inputs, where, varying)
        if sizes is None:
            found = signature(self.fusion, inputs, where)
            return lower(self.fusion, found, properties, None, self._two_steps), properties
        made = lower(
            self.fusion, sizes.signature, properties, None, self._two_steps, ledger=sizes.ledger
        )
        sizes.ledger.close()
        return made, properties

    # -- helpers -------------------------------------------------------------

    def _checked(self, inputs: Sequence[Any], device: torch.device | str | None) -> torch.device:
        error = explain_mismatch(self.fusion, inputs)
        if error is not None:
            raise error
        return device_of(inputs, device)

    def _lowered(
        self, inputs: Sequence[Any], arch: str | None, varying: Sequence[Sequence[Any]] = ()
    ) -> Lowered:
        return self.lowered(inputs, arch=arch, varying=varying)[0]

    def _opened(
        self, inputs: Sequence[Any], where: torch.device, varying: Sequence[Sequence[Any]]
    ) -> Opened | None:
        """The signature with the sizes open that differ in earlier runs; None where none does."""
        if not varying:
            return None
        reader = KeyReader(self.fusion)
        now = reader.split(self._key(inputs))
        seen: list[Numbers] = []
        for place, earlier in enumerate(varying):
            self._checked(earlier, None)
            before = reader.split(self._key(earlier))
            if before.family != now.family:
                raise InputError(
                    f"varying[{place}] differs from the inputs in more than sizes: "
                    f"{reader.other_kind(before.family, now.family)}",
                    hint="Give inputs of the same ranks, dtypes, device and alignment.",
                )
            seen.append(before.numbers)
        found = signature(self.fusion, inputs, where)
        return opened(self.fusion, found, [*seen, now.numbers], reader.scalars(now))


def device_of(inputs: Sequence[Any], device: torch.device | str | None = None) -> torch.device:
    """Where a run happens: the inputs' GPU, else the CPU; with no tensors, torch's GPU if any.

    Raises
    ------
    InputError
        Tensors on two GPUs, or on another device than asked for.
    """
    found = {x.device for x in inputs if isinstance(x, torch.Tensor)}
    gpus = {d for d in found if d.type not in ("cpu", "meta")}
    if len(gpus) > 1:
        names = ", ".join(sorted(str(d) for d in gpus))
        raise InputError(
            "KernelExecutor does not support the Fusion provided. "
            f"Inputs on several devices: {names}",
            hint="Move all inputs to one device.",
        )
    if device is not None:
        return _indexed(torch.device(device))
    if gpus:
        return gpus.pop()
    return torch.device("cpu") if found else default_device()


def _indexed(device: torch.device) -> torch.device:
    index: int | None = device.index
    if device.type == "cuda" and index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


class KernelExecutor:
    """One kernel for one definition at one signature: no segmenting, no cache."""

    def __init__(self) -> None:
        self._plan: ExecutionPlan | None = None
        self._fusion: Fusion | None = None
        self._keys: tuple[Any, Any] = (None, None)

    def compile(
        self,
        fusion: Fusion,
        inputs: Sequence[Any],
        params: HeuristicParams | Sequence[HeuristicParams] | None = None,
        device: torch.device | None = None,
    ) -> None:
        """Compile the definition as one kernel for inputs like these.

        Raises
        ------
        SchedulingError
            It takes more than one kernel; the message says where it would be cut.
        """
        cache = FusionExecutorCache(fusion, two_steps=False)
        chosen = [params] if isinstance(params, HeuristicParams) else params
        found = cache.segments(inputs)
        if len(found.segments) > 1:
            cuts = "\n  ".join(found.cuts or [f"{s.name}: {s.reason}" for s in found.segments])
            raise SchedulingError(
                "KernelExecutor does not support the Fusion provided. It takes "
                f"{len(found.segments)} kernels:\n  {cuts}",
                hint="Use fd.run(inputs), which cuts a definition into kernels.",
            )
        self._plan = cache.plan(inputs, params=chosen, device=device)
        self._fusion = fusion
        self._keys = key_maker(fusion), key_maker(fusion)(inputs)

    def fits(self, inputs: Sequence[Any]) -> bool:
        """Whether inputs have the signature that was compiled for."""
        maker, key = self._keys
        try:
            return maker is not None and maker(inputs) == key
        except _ODD:
            return False

    def run(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """Run the kernel on inputs of the signature it was compiled for.

        Raises
        ------
        InputError
            They have another one: sizes, strides and alignment are built into the kernel.
        """
        if self._plan is None or self._fusion is None:
            raise ExecutionModeError("KernelExecutor.run() before compile()")
        if not self.fits(inputs):
            raise explain_mismatch(self._fusion, inputs) or InputError(
                "KernelExecutor: the kernel was compiled for other inputs",
                hint="Sizes, strides and alignment are built in: compile again for these.",
            )
        return self._plan.run(inputs)

    def is_compiled(self) -> bool:
        return self._plan is not None

    @property
    def params(self) -> HeuristicParams:
        """The params of the kernel."""
        if self._plan is None:
            raise ExecutionModeError("KernelExecutor.params before compile()")
        (piece,) = self._plan.lowered.segmented.segments
        return piece.params
