"""``validate``: run a definition and compare with the torch oracle under nvFuser's tolerances."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from ..ir import Fusion as Graph
from .fusion import Fusion
from .inputs import Inputs, flat
from .oracle import Evaluation
from .running import Device, Runnable
from .tolerances import ValidationError, compare, tolerances


class Validated(Runnable):
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
        given = flat(inputs)
        return self._validated(given, reference_outputs, lambda: self.run(given, device=device))

    def manual_validate(
        self, inputs: Inputs, reference_outputs: Sequence[torch.Tensor] | None = None
    ) -> list[torch.Tensor]:
        """``run_kernel``, check every output as ``validate`` does, and return them."""
        given = flat(inputs)
        return self._validated(given, reference_outputs, lambda: self.run_kernel(given))

    def _validated(
        self,
        inputs: Inputs,
        reference_outputs: Sequence[torch.Tensor] | None,
        run: Callable[[], list[torch.Tensor]],
    ) -> list[torch.Tensor]:
        fusion = self._ready().ir
        before = copied(inputs) if any(o.alias_of for o in fusion.outputs) else inputs
        outputs = run()
        expected = Evaluation(fusion, before, double=True)
        if reference_outputs is not None:
            expected.replace(fusion, reference_outputs)
        check_outputs(fusion, expected, outputs, inputs)
        return outputs


def check_outputs(
    fusion: Graph, expected: Evaluation, outputs: Sequence[torch.Tensor], inputs: Inputs
) -> None:
    """Compare what a run returned, and what it wrote into inputs, with the reference."""
    shown = [place for place, out in enumerate(fusion.outputs) if not out.hidden]
    if len(outputs) != len(shown):
        raise ValidationError(f"expected {len(shown)} outputs, got {len(outputs)}")
    for number, (place, actual) in enumerate(zip(shown, outputs, strict=True)):
        _check(fusion, expected, place, f"output {number}", actual)
    for place, out in enumerate(fusion.outputs):
        if out.hidden and out.alias_of is not None:
            number = fusion.inputs.index(out.alias_of)
            _check(fusion, expected, place, f"input {number}, written by the run,", inputs[number])


def _check(
    fusion: Graph, expected: Evaluation, place: int, what: str, actual: torch.Tensor
) -> None:
    wanted = expected.outputs[place]
    if not expected.determined[place]:
        wanted = actual if actual.shape == wanted.shape else wanted
    dtype = fusion.outputs[place].value.dtype
    compare(what, actual, wanted, dtype, expected.lengths[place])


def copied(inputs: Inputs) -> list[object]:
    """Inputs with memory of their own, laid out the same."""
    return [_copied(x) if isinstance(x, torch.Tensor) else x for x in inputs]


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    if not tensor.numel():
        return tensor.clone()
    reach = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    storage = tensor.as_strided((reach,), (1,), tensor.storage_offset()).clone()
    return storage.as_strided(tensor.shape, tensor.stride())


def get_val_tolerances(fusion: Fusion, inputs: Inputs) -> list[tuple[float, float]]:
    """(atol, rtol) that each returned output may be off by, for inputs like these."""
    graph = fusion.ir
    evaluation = Evaluation(graph, flat(inputs), double=True)
    return [
        tolerances(out.value.dtype, length)
        for out, length in zip(graph.outputs, evaluation.lengths, strict=True)
        if not out.hidden
    ]


def validate_with_auto_inferred_outputs(
    fusion: Fusion, fusion_outputs: Sequence[torch.Tensor], args: Inputs
) -> None:
    """Compare outputs with what torch computes from ``args``, which the run has not changed."""
    given = flat(args)
    check_outputs(fusion.ir, Evaluation(fusion.ir, given, double=True), fusion_outputs, given)
