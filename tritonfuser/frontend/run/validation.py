"""``validate`` and ``audit``: run a definition, and compare with the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from ...cache.calls.diagnosis import explain_mismatch
from ...cache.keys.run_device import device_of
from ...cache.plan.copies import copied
from ...cache.plan.random_state import noted_draws
from ...ir import Fusion as Graph
from ..inspect.audit import Audit, AuditRow, audit_outputs, check
from ..inspect.expectation import Check, expected
from ..inspect.oracle import Evaluation, as_returned
from ..inspect.replay import replayed
from ..inspect.tolerances import tolerances
from ..record.inputs import Inputs, flatten_inputs
from ..vocabulary.location import user_line
from ..vocabulary.unavailable import UnavailableError
from .arguments import Device, run_options, with_device
from .deprecated_calls import Deprecated
from .fusion import Fusion


class Validated(Deprecated):
    """A definition that can check itself."""

    def validate(
        self,
        inputs: Inputs,
        reference_outputs: Sequence[torch.Tensor] | None = None,
        device: Device = None,
        *,
        atol: float | None = None,
        rtol: float | None = None,
    ) -> list[torch.Tensor]:
        """``run``, check every output, and return them.

        Each element may be as far from the result in float64 as rounding in the definition's
        dtypes explains (docs/validation.md). Inputs that outputs are written into are checked too.
        Random numbers are those that the run drew.

        Parameters
        ----------
        inputs : list or tuple
            As for ``run``.
        reference_outputs : sequence of Tensor, optional
            What should come out; by default what torch computes op by op in float64. They may be
            off as well: an element may differ by nvFuser's tolerance, too.
        device : torch.device or str, optional
            As for ``run``.
        atol, rtol : float, optional
            Allow ``atol + rtol * abs(expected)`` instead; one alone stands beside 0.

        Raises
        ------
        ValidationError
            Which output is wrong, where, and by how much.
        IndexRangeError
            An index is none of its dim.
        """
        given = flatten_inputs(inputs)
        check = Check(reference_outputs, atol, rtol)
        return self._validated(given, check, lambda: self.run(given, device=device), device)

    def manual_validate(
        self,
        inputs: Inputs,
        reference_outputs: Sequence[torch.Tensor] | None = None,
        *,
        atol: float | None = None,
        rtol: float | None = None,
    ) -> list[torch.Tensor]:
        """``run_kernel``, check every output as ``validate`` does, and return them."""
        given = flatten_inputs(inputs)
        check = Check(reference_outputs, atol, rtol)
        return self._validated(given, check, lambda: self.run_kernel(given), None)

    def audit(
        self,
        inputs: Inputs,
        reference_outputs: Sequence[torch.Tensor] | None = None,
        device: Device = None,
        *,
        atol: float | None = None,
        rtol: float | None = None,
    ) -> Audit:
        """``run``, and how far every output is off: what ``validate`` looks at, as a table.

        Parameters
        ----------
        inputs, reference_outputs, device, atol, rtol
            As for ``validate``.

        Returns
        -------
        Audit
            ``rows`` with dtype, shape, errors, the worst element and how far it may be off,
            undecided elements; prints as a table.

        Examples
        --------
        >>> print(fd.audit([x, y]))
        """
        given = flatten_inputs(inputs)
        check = Check(reference_outputs, atol, rtol, eager=True)
        rows, _ = self._audited(given, check, lambda: self.run(given, device=device), device)
        return Audit(tuple(rows))

    def _validated(
        self, inputs: Inputs, how: Check, run: Callable[[], list[torch.Tensor]], device: Device
    ) -> list[torch.Tensor]:
        rows, outputs = self._audited(inputs, how, run, device)
        for row in rows:
            check(row)
        return outputs

    def _audited(
        self, inputs: Inputs, how: Check, run: Callable[[], list[torch.Tensor]], device: Device
    ) -> tuple[Iterator[AuditRow], list[torch.Tensor]]:
        if self._ready().shardings:
            raise UnavailableError(
                "checking a definition over a mesh is not available in tritonfuser",
                loc=user_line(),
                hint="A device has its parts alone: gather the outputs, and compare with torch.",
            )
        fusion = as_returned(self._ready().ir)
        _fitting(fusion, inputs)
        before = copied(inputs) if any(o.alias_of for o in fusion.outputs) else inputs
        with noted_draws() as draws:
            outputs = run()
        seeded = fusion
        if draws:
            options = run_options(device=device)
            options = with_device(options, inputs, gpu_only=self._gpu_only())
            used = device_of(inputs, options.device)
            seeded = replayed(fusion, before, used, lambda count: draws[-1])
        return audit_outputs(fusion, expected(seeded, before, how), outputs, inputs), outputs


def _fitting(graph: Graph, inputs: Inputs) -> Inputs:
    """Flat inputs that fit a definition.

    Raises
    ------
    InputError
        They do not fit.
    """
    given = flatten_inputs(inputs)
    error = explain_mismatch(graph, given)
    if error is not None:
        raise error
    return given


def get_val_tolerances(fusion: Fusion, inputs: Inputs) -> list[tuple[float, float]]:
    """(atol, rtol) that each returned output may be off by, for inputs like these."""
    graph = as_returned(fusion.ir)
    evaluation = Evaluation(graph, _fitting(graph, inputs), double=True)
    return [
        tolerances(out.value.dtype, length)
        for out, length in zip(graph.outputs, evaluation.lengths, strict=True)
        if not out.hidden
    ]


def validate_with_auto_inferred_outputs(
    fusion: Fusion, fusion_outputs: Sequence[torch.Tensor], args: Inputs
) -> None:
    """Compare outputs with what torch computes from ``args``, which the run has not changed."""
    graph = as_returned(fusion.ir)
    given = _fitting(graph, args)
    Check(fusion_outputs)
    for row in audit_outputs(graph, expected(graph, given, Check()), fusion_outputs, given):
        check(row)
