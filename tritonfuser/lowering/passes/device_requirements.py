"""Fusion and device in, an error out for ops that need instructions the device lacks."""

from __future__ import annotations

import re

from ...device import DeviceProperties
from ...errors import UnsupportedDeviceError
from ...ir import Fusion
from ...ops.builder import as_call
from ...ops.table import Library


def check_device(fusion: Fusion, device: DeviceProperties) -> None:
    """Refuse ops whose instructions the device lacks.

    Raises
    ------
    UnsupportedDeviceError
        The message names the op and the compute capability that it needs.
    """
    for node in fusion.nodes:
        call = as_call(node)
        form = call.op.form
        if not isinstance(form, Library) or form.capability is None:
            continue
        needed = form.capability(call)
        if needed > capability_of(device):
            raise UnsupportedDeviceError(
                f"{call.op.name}: {device.name} ({device.arch}) lacks the instructions for these "
                f"operands, which GPUs from sm_{needed} on have",
                loc=node.loc,
                hint="Cast to DataType.BFloat16 and use ops of that precision here.",
            )


def capability_of(device: DeviceProperties) -> int:
    """The compute capability times ten, as ``sm_90``; 0 for what is no NVIDIA GPU."""
    found = re.fullmatch(r"sm_(\d+)", device.arch)
    return int(found[1]) if found else 0
