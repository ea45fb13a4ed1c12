"""Whether the devices of a mesh were given parts of the same sizes.

The sizes of whole tensors are told from the part of one device. Where another has parts of other
sizes, parts cannot be exchanged: gloo ends the process and NCCL gives what was in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...cache.calls.diagnosis import InputMismatch
from ...errors import InputError
from ...ir import Fusion
from .communicator import Communicator, process_group
from .exchanges import collectives
from .mesh_program import Exchange, Program


def exchanges_parts(program: Program) -> bool:
    """Whether a program talks to other devices."""
    return any(
        program.mesh.size_of(collective.kind) > 1
        for step in program.steps
        if isinstance(step, Exchange)
        for collective in collectives(step.have, step.want)
    )


def has_open_sizes(fusion: Fusion) -> bool:
    """Whether the size of some dim of an input is known only when a tensor is given."""
    tensors = [value.tensor for value in fusion.inputs if value.is_tensor]
    return any(not isinstance(dim.size, int) for tensor in tensors for dim in tensor.dims)


def check_sizes(
    fusion: Fusion, program: Program, inputs: Sequence[Any], where: torch.device
) -> None:
    """Compare the sizes of this device's parts with those of all devices of the mesh.

    All of them take part, and where sizes differ all of them raise.

    Raises
    ------
    InputError
        Names the first input whose parts have several sizes, and all of these.
    """
    tensors = [(p, t) for p, t in enumerate(inputs) if isinstance(t, torch.Tensor)]
    own = torch.tensor([n for _, t in tensors for n in t.shape], dtype=torch.int64, device=where)
    devices = [*program.mesh.device_ids]
    rows = torch.stack(process_group(tuple(devices)).all_gather_list(own)).tolist()
    if all(row == rows[0] for row in rows):
        return
    start = 0
    for place, tensor in tensors:
        end = start + tensor.dim()
        found = [row[start:end] for row in rows]
        if any(sizes != found[0] for sizes in found):
            raise _error(fusion, place, dict(zip(devices, found, strict=True)))
        start = end


def _error(fusion: Fusion, place: int, found: dict[int, list[int]]) -> InputError:
    name = fusion.inputs[place].name
    own = found[Communicator.instance().rank()]
    other = next(device for device, sizes in found.items() if sizes != own)
    return InputMismatch(
        f"Expected {InputMismatch.named(place, name)} to be of one shape on all devices of the "
        f"mesh, but got {own} here and {found[other]} on device {other}",
        hint="A dim is cut evenly: pad it, or cut another one. What is not cut is the same "
        "everywhere.",
        place=place,
        name=name,
    )
