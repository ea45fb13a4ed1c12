"""Repro scripts: a definition and inputs like those it was run with, as a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
import triton

from ...errors import ArgumentError
from ..vocabulary.literals import number_text


def describe_inputs(inputs: Sequence[Any]) -> list[str]:
    """A line of Python for each input: random tensors of its shape, strides, dtype and device.

    Raises
    ------
    ArgumentError
        An input is neither a dense tensor nor a number.
    """
    return [_describe(place, given) for place, given in enumerate(inputs)]


def _describe(number: int, given: Any) -> str:
    if isinstance(given, bool | int | float | complex):
        return number_text(given)
    tensor = isinstance(given, torch.Tensor) and not given.is_nested
    if not tensor or given.layout is not torch.strided:
        raise ArgumentError(
            f"repro script: expected a dense tensor or a number as input {number}, "
            f"got {type(given).__name__}"
        )
    sizes, place = tuple(given.shape), f"dtype={given.dtype}, device='{given.device}'"
    if given.is_contiguous():
        return f"torch.testing.make_tensor({sizes}, {place})"
    reach = 1 + sum((n - 1) * s for n, s in zip(sizes, given.stride(), strict=True))
    if given.dtype.itemsize == 1 and given.dtype.is_floating_point:
        storage = f"torch.randn({reach}, device='{given.device}').to({given.dtype})"
    elif given.dtype.is_floating_point or given.dtype.is_complex:
        storage = f"torch.randn({reach}, {place})"
    else:
        bound = 2 if given.dtype is torch.bool else 10
        storage = f"torch.randint(0, {bound}, ({reach},), {place})"
    return f"{storage}.as_strided({sizes}, {given.stride()})"


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
