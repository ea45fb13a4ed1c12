"""Repro scripts: a definition and inputs like those it was run with, as a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
import triton

from ...errors import ArgumentError
from ...ir import Fusion
from ..vocabulary.literals import number_text
from .index_inputs import IndexValues, index_values


def describe_inputs(fusion: Fusion, inputs: Sequence[Any]) -> list[str]:
    """A line of Python for each input: random tensors of its shape, strides, dtype and device.

    Those that indices are computed from are drawn in the range of what is given.

    Parameters
    ----------
    fusion : Fusion
        What they are the inputs of.
    inputs : sequence
        Flat: tensors and numbers.

    Raises
    ------
    ArgumentError
        An input is neither a dense tensor nor a number.
    """
    for number, given in enumerate(inputs):
        _check(number, given)
    known = index_values(fusion, inputs)
    return [_describe(given, known.get(number)) for number, given in enumerate(inputs)]


def _check(number: int, given: Any) -> None:
    tensor = isinstance(given, torch.Tensor) and not given.is_nested
    if isinstance(given, bool | int | float | complex):
        return
    if not tensor or given.layout is not torch.strided:
        raise ArgumentError(
            f"repro script: expected a dense tensor or a number as input {number}, "
            f"got {type(given).__name__}"
        )


def _describe(given: Any, known: IndexValues | None) -> str:
    if not isinstance(given, torch.Tensor):
        return number_text(given)
    sizes, place = tuple(given.shape), f"dtype={given.dtype}, device='{given.device}'"
    if known is not None and known.all is not None:
        return f"torch.tensor({known.all}, {place})"
    if given.is_contiguous():
        return _drawn(sizes, place, given, known)
    reach = 1 + sum((n - 1) * s for n, s in zip(sizes, given.stride(), strict=True))
    if known is not None:
        storage = _drawn((reach,), place, given, known)
    elif given.dtype.itemsize == 1 and given.dtype.is_floating_point:
        storage = f"torch.randn({reach}, device='{given.device}').to({given.dtype})"
    elif given.dtype.is_floating_point or given.dtype.is_complex:
        storage = f"torch.randn({reach}, {place})"
    else:
        bound = 2 if given.dtype is torch.bool else 10
        storage = f"torch.randint(0, {bound}, ({reach},), {place})"
    return f"{storage}.as_strided({sizes}, {given.stride()})"


def _drawn(
    sizes: tuple[int, ...], place: str, given: torch.Tensor, known: IndexValues | None
) -> str:
    """A dense tensor of these sizes, with elements of the range that is known."""
    if known is None:
        return f"torch.testing.make_tensor({sizes}, {place})"
    least, most = known.least, known.most
    if least == most:
        return f"torch.full({sizes}, {least}, {place})"
    high = most if given.is_floating_point() else int(most) + 1
    return f"torch.testing.make_tensor({sizes}, {place}, low={least}, high={high})"


def repro_script(
    definition: str, inputs: Sequence[str] | None, *, module: str, method: str, version: str
) -> str:
    """The program: versions as comments, imports, the definition, inputs and the call.

    Parameters
    ----------
    definition : str
        ``repr(fd)``.
    inputs : sequence of str, optional
        As ``describe_inputs`` gives them; without them the definition is not run.
    module : str
        What FusionDefinition is imported from.
    method : str
        What runs a definition there.
    version : str
        Of this package.
    """
    lines = [
        *_versions(version),
        "import torch",
        f"from {module} import FusionDefinition, DataType",
        *definition.splitlines(),
        "",
        "with FusionDefinition() as fd:",
        "    nvfuser_fusion(fd)",
    ]
    if inputs is not None:
        lines += [
            "",
            "inputs = [",
            *(f"    {text}," for text in inputs),
            "]",
            f"fd.{method}(inputs)",
        ]
    return "\n".join(lines) + "\n"


def _versions(version: str) -> Iterator[str]:
    yield "# CUDA devices:"
    for index in range(torch.cuda.device_count()):
        yield f"#  {index}: {torch.cuda.get_device_name(index)}"
    yield f"# torch version: {torch.__version__}"
    yield f"# cuda version: {torch.version.cuda}"
    yield f"# triton version: {triton.__version__}"
    yield f"# tritonfuser version: {version}"
