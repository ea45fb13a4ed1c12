"""``validate``: run a definition and compare with the torch oracle under nvFuser's tolerances."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from ...cache.plan.copies import copied
from ...ir import Fusion as Graph
from ..inspect.audit import Audit, AuditRow, audit_outputs, check
from ..inspect.oracle import Evaluation
from ..inspect.tolerances import tolerances
from ..record.inputs import Inputs, flatten_inputs
from ..vocabulary.location import user_line
from ..vocabulary.unavailable import UnavailableError
from .arguments import Device
from .deprecated_calls import Deprecated
from .fusion import Fusion


class Validated(Deprecated):
    """A definition that can check itself."""

    def validate(
        self,
        inputs: Inputs,
        reference_outputs: Sequence[torch.Tensor] | None = None,
        device: Device = None,
    ) -> list[torch.Tensor]:
        """``run``, check every output, and return them.

        Inputs that outputs are written into are checked too; outputs that depend on random
        numbers drawn without a seed are checked for their shape.

        Parameters
        ----------
        inputs : list or tuple
            As for ``run``.
        reference_outputs : sequence of Tensor, optional
            What should come out; by default what torch computes op by op in float64.
        device : torch.device or str, optional
            As for ``run``.

        Raises
        ------
        ValidationError
            Which output is wrong, where, and by how much.
        """
        given = flatten_inputs(inputs)
        return self._validated(given, reference_outputs, lambda: self.run(given, device=device))

    def manual_validate(
        self, inputs: Inputs, reference_outputs: Sequence[torch.Tensor] | None = None
    ) -> list[torch.Tensor]:
        """``run_kernel``, check every output as ``validate`` does, and return them."""
        given = flatten_inputs(inputs)
        return self._validated(given, reference_outputs, lambda: self.run_kernel(given))

    def audit(
        self,
        inputs: Inputs,
        reference_outputs: Sequence[torch.Tensor] | None = None,
        device: Device = None,
    ) -> Audit:
        """``run``, and how far every output is off: what ``validate`` looks at, as a table.

        Parameters
        ----------
        inputs, reference_outputs, device
            As for ``validate``.

        Returns
        -------
        Audit
            ``rows`` with dtype, shape, errors, the worst element, tolerance; prints as a table.

        Examples
        --------
        >>> print(fd.audit([x, y]))
        """
        given = flatten_inputs(inputs)
        rows, _ = self._audited(given, reference_outputs, lambda: self.run(given, device=device))
        return Audit(tuple(rows))

    def _validated(
        self,
        inputs: Inputs,
        reference_outputs: Sequence[torch.Tensor] | None,
        run: Callable[[], list[torch.Tensor]],
    ) -> list[torch.Tensor]:
        rows, outputs = self._audited(inputs, reference_outputs, run)
        for row in rows:
            check(row)
        return outputs

    def _audited(
        self,
        inputs: Inputs,
        reference_outputs: Sequence[torch.Tensor] | None,
        run: Callable[[], list[torch.Tensor]],
    ) -> tuple[Iterator[AuditRow], list[torch.Tensor]]:
        if self._ready().shardings:
            raise UnavailableError(
                "checking a definition over a mesh is not available in tritonfuser",
                loc=user_line(),
                hint="A device has its parts alone: gather the outputs, and compare with torch.",
            )
        fusion = self._ready().ir
        before = copied(inputs) if any(o.alias_of for o in fusion.outputs) else inputs
        outputs = run()
        expected = Evaluation(fusion, before, double=True)
        if reference_outputs is not None:
            expected.replace(fusion, reference_outputs)
        return audit_outputs(fusion, expected, outputs, inputs), outputs


def check_outputs(
    fusion: Graph, expected: Evaluation, outputs: Sequence[torch.Tensor], inputs: Inputs
) -> None:
    """Compare what a run returned, and what it wrote into inputs, with the reference."""
    for row in audit_outputs(fusion, expected, outputs, inputs):
        check(row)


def get_val_tolerances(fusion: Fusion, inputs: Inputs) -> list[tuple[float, float]]:
    """(atol, rtol) that each returned output may be off by, for inputs like these."""
    graph = fusion.ir
    evaluation = Evaluation(graph, flatten_inputs(inputs), double=True)
    return [
        tolerances(out.value.dtype, length)
        for out, length in zip(graph.outputs, evaluation.lengths, strict=True)
        if not out.hidden
    ]


def validate_with_auto_inferred_outputs(
    fusion: Fusion, fusion_outputs: Sequence[torch.Tensor], args: Inputs
) -> None:
    """Compare outputs with what torch computes from ``args``, which the run has not changed."""
    given = flatten_inputs(args)
    check_outputs(fusion.ir, Evaluation(fusion.ir, given, double=True), fusion_outputs, given)
