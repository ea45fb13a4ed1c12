"""The arguments of a run, validated once: what a call was given in, ``RunOptions`` out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Union

import torch

from ... import options as settings
from ...cache.keys.run_device import default_device
from ...errors import ArgumentError, InputError, ParamsError
from ...heuristics.params import HeuristicParams
from ...heuristics.schedule import Schedule
from ...lowering.product_policy import ProductPolicy
from ...lowering.run_options import DEFAULT, RunOptions
from ..record.inputs import Inputs
from ..vocabulary.location import user_line
from ..vocabulary.nvfuser_options import products_of
from ..vocabulary.nvfuser_params import plain

Device = Union[torch.device, str, int, None]
"""A device as users name it; an int is the index of a CUDA device."""

MOST_DEVICES = 128
"""Devices that torch numbers."""

Params = Union[
    HeuristicParams, Mapping[str, Any], Sequence[Union[HeuristicParams, Mapping[str, Any]]]
]
"""Params for one segment, or one for each segment; a dict is what ``to_dict`` gives."""


ScheduleLike = Union[Schedule, Mapping[str, Any]]
"""A schedule; a dict is what ``to_dict`` gives."""


def run_options(
    params: Params | None = None,
    device: Device = None,
    enable: Sequence[str] = (),
    disable: Sequence[str] = (),
    schedule: ScheduleLike | None = None,
) -> RunOptions:
    """The options of a run; ``DEFAULT`` itself where nothing is asked for.

    Parameters
    ----------
    params : HeuristicParams or sequence of HeuristicParams, optional
        One for each segment.
    device : torch.device, str or int, optional
        Where to run a definition that takes no tensors.
    enable, disable : sequence of str
        Names of nvFuser's options.
    schedule : Schedule or dict, optional
        How to cut the definition into kernels, with the params of each.

    Raises
    ------
    ArgumentError
        ``device`` has a wrong type, or there are params and a schedule.
    DefinitionError
        nvFuser has no option of such a name.
    InputError
        torch knows no such device.
    ParamsError
        ``params`` holds something other than params, or a field of the schedule is wrong.
    """
    products = products_of(enable, disable)
    chooses = params is not None or products is not ProductPolicy.AUTO
    if not chooses and device is None and schedule is None:
        return DEFAULT
    if chooses and schedule is not None:
        raise ArgumentError(
            "schedule was given together with params, or with an option about matrix products",
            loc=user_line(),
            hint="A schedule has the params of its kernels and the products that they compute.",
        )
    return RunOptions(
        params=_params(params),
        schedule=_schedule(schedule),
        device=_device(device),
        products=products,
    )


def with_device(options: RunOptions, inputs: Inputs, *, gpu_only: bool = False) -> RunOptions:
    """The options with the device to ask the executor for: None where tensors determine it.

    Parameters
    ----------
    inputs : sequence
        Flat inputs.
    gpu_only : bool
        Whether CPU scalars are run on a GPU, as nvFuser does.

    Raises
    ------
    InputError
        The tensors are on another device, or there is no such device.
    """
    wanted = options.device
    if wanted is None and not gpu_only:
        return options
    tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
    if wanted is None:
        on_cpu = tensors and all(x.is_cpu for x in tensors)
        return replace(options, device=default_device()) if on_cpu else options
    there = wanted.type != "cuda" or torch.cuda.is_available()
    if not there and settings.current().cpu_as_cuda:
        wanted, there = torch.device("cpu"), True
    found = {x.device for x in tensors if x.dim() or not x.is_cpu}
    for other in found:
        if other.type != wanted.type or wanted.index not in (None, other.index):
            raise InputError(
                f"device={str(wanted)!r} was asked for, but inputs are on {other}",
                loc=user_line(),
                hint="A definition runs on the device of its inputs.",
            )
    if not found and not there:
        raise InputError(
            f"device={str(wanted)!r} was asked for, but there is no CUDA device", loc=user_line()
        )
    return replace(options, device=None if found else wanted)


def _params(given: Any) -> tuple[HeuristicParams, ...] | None:
    if given is None:
        return None
    chosen = (given,) if isinstance(given, HeuristicParams | Mapping) else given
    if not isinstance(chosen, list | tuple):
        raise _not_params(given)
    return tuple(map(_of_one_segment, chosen))


def _of_one_segment(given: Any) -> HeuristicParams:
    if isinstance(given, HeuristicParams):
        return plain(given)
    if not isinstance(given, Mapping):
        raise _not_params(given)
    try:
        return HeuristicParams.from_dict(given)
    except ParamsError as error:
        raise error.located(user_line()) from None


def _schedule(given: Any) -> Schedule | None:
    if given is None or isinstance(given, Schedule):
        return _plain_schedule(given)
    try:
        return Schedule.from_dict(given)
    except ParamsError as error:
        raise error.located(user_line()) from None


def _plain_schedule(given: Schedule | None) -> Schedule | None:
    """The schedule with params that nobody can change."""
    if given is None or all(plain(s.params) is s.params for s in given.segments):
        return given
    segments = tuple(replace(s, params=plain(s.params)) for s in given.segments)
    return replace(given, segments=segments)


def _not_params(given: object) -> ParamsError:
    return ParamsError(
        f"params: expected one HeuristicParams for each segment, got {given!r}",
        loc=user_line(),
        hint="Change those that fd.heuristics(inputs) gives with dataclasses.replace, or give "
        "dicts as their to_dict() makes them.",
    )


def _device(given: Any) -> torch.device | None:
    if given is None or isinstance(given, torch.device):
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        if 0 <= given < MOST_DEVICES:
            return torch.device("cuda", given)
        raise InputError(f"device: there is no CUDA device {given}", loc=user_line())
    if not isinstance(given, str):
        raise ArgumentError(
            f"device: expected a torch.device, a str or an int, got {given!r}", loc=user_line()
        )
    try:
        return torch.device(given)
    except RuntimeError as error:
        raise InputError(
            f"device: {given!r} is no device of torch",
            loc=user_line(),
            hint=str(error).splitlines()[0],
        ) from None
