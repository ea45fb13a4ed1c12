"""What a run would do with example inputs: a definition lowered or compiled, and not run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from .. import devices
from ..device import DeviceProperties
from ..errors import InputError
from ..ir import Fusion
from ..lowering.build import KernelReport, report_of
from ..lowering.lowered import Lowered
from ..lowering.memo import Memo, no_memo
from ..lowering.pipeline import alternatives_of, lower
from ..lowering.run_options import DEFAULT, RunOptions
from ..lowering.segments.segmented_fusion import SegmentedFusion
from .calls.diagnosis import explain_mismatch
from .kernels import compiled, wanted_kernels
from .keys.open_sizes import KeyNumbers, KeyReader, OpenSignature, with_open_sizes
from .keys.run_device import device_of
from .keys.signature import key_maker, signature
from .register_feedback import with_register_feedback
from .variants import log_fallback


def checked_device(
    fusion: Fusion,
    inputs: Sequence[Any],
    device: torch.device | None = None,
    *,
    abstract: bool = False,
) -> torch.device:
    """The device of a run; with ``abstract`` fake and meta tensors are taken.

    Raises
    ------
    InputError
        The inputs do not fit the definition, or are on two GPUs.
    """
    error = explain_mismatch(fusion, inputs, abstract=abstract)
    if error is not None:
        raise error
    return device_of(inputs, device)


def properties_of(device: torch.device, options: RunOptions) -> DeviceProperties:
    """What kernels are made for: the device of the run, or the architecture asked for."""
    return devices.of(device) if options.arch is None else devices.known(options.arch)


def lower_for(
    fusion: Fusion,
    inputs: Sequence[Any],
    options: RunOptions = DEFAULT,
    varying: Sequence[Sequence[Any]] = (),
    memo: Memo = no_memo,
) -> tuple[Lowered, DeviceProperties]:
    """Segments, params and kernels for example inputs, and the device they are for.

    Parameters
    ----------
    inputs : sequence
        Flat inputs. CPU or meta tensors stand for tensors on ``options.arch``.
    varying : sequence of sequences
        Inputs of earlier runs: sizes that differ become arguments of the kernels.
    memo : Memo
        Memoizes what lowerings under other schedules have in common.

    Raises
    ------
    InputError
        The inputs do not fit, or those of earlier runs differ in more than sizes.
    """
    where = checked_device(fusion, inputs, options.device, abstract=True)
    properties = properties_of(where, options)
    sizes = _open_signature(fusion, inputs, where, varying) if varying else None
    if sizes is None:
        found = signature(fusion, inputs, where)
        return lower(fusion, found, properties, options, memo=memo), properties
    return _lowered(fusion, sizes, properties, options), properties


def alternatives_for(
    fusion: Fusion,
    inputs: Sequence[Any],
    options: RunOptions,
    should_continue: Callable[[], bool],
) -> list[SegmentedFusion]:
    """Other ways to cut a definition into kernels, those that are predicted to be fastest first.

    Parameters
    ----------
    inputs, options
        As for ``lower_for``.
    should_continue : callable
        Whether there is time for another one.
    """
    where = checked_device(fusion, inputs, options.device, abstract=True)
    properties = properties_of(where, options)
    return alternatives_of(
        fusion, signature(fusion, inputs, where), properties, options, should_continue
    )


def lower_to_compile(fusion: Fusion, inputs: Sequence[Any], options: RunOptions) -> Lowered:
    """As ``lower_for``, and as a run compiles it: where kernels take more registers than predicted,
    params are chosen again."""
    made, properties = lower_for(fusion, inputs, options)
    return with_register_feedback(fusion, made, inputs, properties, options)


def lower_with_open_sizes(
    fusion: Fusion, inputs: Sequence[Any], options: RunOptions, sizes: OpenSignature
) -> tuple[Lowered, DeviceProperties] | None:
    """As ``lower_for``, with open sizes; None where that fails and a run takes constant ones."""
    properties = properties_of(device_of(inputs, options.device), options)
    try:
        return _lowered(fusion, sizes, properties, options), properties
    except Exception as error:  # as in a run, constant sizes may do, or say better what is wrong
        log_fallback(error)
        return None


def _lowered(
    fusion: Fusion, sizes: OpenSignature, properties: DeviceProperties, options: RunOptions
) -> Lowered:
    made = lower(fusion, sizes.signature, properties, options, sizes.env)
    sizes.env.close()
    return made


def compile_for(
    fusion: Fusion, inputs: Sequence[Any], arch: str, options: RunOptions = DEFAULT
) -> list[KernelReport]:
    """Compile the kernels for a GPU that need not be here.

    Parameters
    ----------
    inputs : sequence
        CPU or meta tensors that stand for tensors on that GPU, and numbers.
    arch : str
        ``"sm_80"``, ``"sm_90"``, ``"sm_100"`` or ``"gfx942"``.
    options : RunOptions
        As for a run.

    Returns
    -------
    list of KernelReport
        One for each kernel, in the order of a run.
    """
    lowered = lower_to_compile(fusion, inputs, replace(options, arch=arch))
    schedulers = (
        segment.scheduler
        for segment, source in zip(lowered.segmented.segments, lowered.sources, strict=True)
        if source is not None
    )
    wanted = zip(wanted_kernels(fusion, inputs, lowered), schedulers, strict=True)
    return [
        report_of(compiled(source, arch, flags), scheduler) for (source, flags), scheduler in wanted
    ]


def _open_signature(
    fusion: Fusion, inputs: Sequence[Any], where: torch.device, varying: Sequence[Sequence[Any]]
) -> OpenSignature | None:
    """The signature with symbols for the sizes that differ from earlier runs; None without any."""
    reader, key = KeyReader(fusion), key_maker(fusion, abstract=True)
    now = reader.split(key(inputs))
    seen: list[KeyNumbers] = []
    for place, earlier in enumerate(varying):
        checked_device(fusion, earlier, abstract=True)
        before = reader.split(key(earlier))
        if before.family != now.family:
            raise InputError(
                f"varying[{place}] differs from the inputs in more than sizes: "
                f"{reader.family_difference(before.family, now.family)}",
                hint="Give inputs of the same ranks, dtypes, device and alignment.",
            )
        seen.append(before.numbers)
    found = signature(fusion, inputs, where)
    return with_open_sizes(fusion, found, [*seen, now.numbers], reader.scalars(now))
