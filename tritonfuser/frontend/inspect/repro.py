"""Repro scripts: a definition and inputs like those it was run with, as a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import triton


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
