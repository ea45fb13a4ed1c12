"""Stored schedules as one JSON document, and strictly back: nothing in it is taken unchecked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from ... import devices
from ...cache.tuned.keys import StoreKey, versions
from ...cache.tuned.store import Entry, Stored
from ...device import DeviceProperties
from ...errors import DefinitionError, ParamsError, TritonFuserError
from ...heuristics.schedule import Schedule
from ...ir import Fusion
from ...lowering.passes.concretize import InputSignature, TensorSpec
from ...lowering.passes.numbering import in_order
from ...lowering.pipeline import lower
from ...lowering.run_options import RunOptions
from ...lowering.schedules import schedule_of
from ..record.recording import Recording
from ..serialization.decode import restore
from ..serialization.signatures import signature_from

FORMAT = "tritonfuser tuned schedules"
VERSION = 1
"""Of the document."""

_FIELDS = ("key", "seconds", "heuristic_seconds", "definition", "inputs", "schedule")
T = TypeVar("T")


def exported(entries: Iterable[Entry]) -> dict[str, Any]:
    """The document of some files of the store.

    The definitions are in it without the lines that recorded them.

    Raises
    ------
    ParamsError
        A schedule was stored without its definition.
    """
    return {"format": FORMAT, "version": VERSION, "entries": [_entry_data(e) for e in entries]}


def _entry_data(entry: Entry) -> dict[str, Any]:
    problem = entry.stored.problem
    if not problem:
        raise ParamsError(f"{entry.name}: it is stored without its definition")
    _problem(problem, entry.name)
    return {
        "key": entry.key._asdict(),
        "seconds": entry.stored.seconds,
        "heuristic_seconds": entry.stored.heuristic_seconds,
        "definition": _without_lines(problem["definition"]),
        "inputs": problem["inputs"],
        "schedule": entry.stored.schedule.to_dict(),
    }


def _without_lines(definition: Mapping[str, Any]) -> dict[str, Any]:
    lists = ("inputs", "ops")
    bare = {name: [{**item, "loc": None} for item in definition[name]] for name in lists}
    return {**definition, **bare}


def heuristics_of(entry: Entry) -> Schedule:
    """The schedule that the heuristics choose now for what an entry was tuned for.

    Where the device is not here, for the built-in facts of its architecture.

    Raises
    ------
    ParamsError
        It is stored without its definition, or with something else in its place.
    """
    problem = entry.stored.problem
    if not problem:
        raise ParamsError(f"{entry.name}: it is stored without its definition")
    fusion, signature = _problem(problem, entry.name)
    device = _at(f"{entry.name}.arch", lambda: devices.known(entry.key.arch))
    return schedule_of(_at(entry.name, lambda: lower(fusion, signature, device)).segmented)


def _problem(data: Mapping[str, Any], where: str) -> tuple[Fusion, InputSignature]:
    """The definition and the inputs of plain data."""
    recording = Recording()
    _at(f"{where}.definition", lambda: restore(recording, data["definition"]))
    signature = _at("", lambda: signature_from(data["inputs"], f"{where}.inputs"))
    _check_fits(recording.ir, signature, f"{where}.inputs")
    return recording.ir, signature


def imported(
    data: Any, here: Sequence[DeviceProperties] | None = None
) -> list[tuple[StoreKey, Stored]]:
    """The keys and schedules of a document, all of them checked, each lowered once.

    Parameters
    ----------
    here : sequence of DeviceProperties, optional
        The devices that schedules may be for. None for any that is known.

    Raises
    ------
    ParamsError
        Something in the document is unknown, for another device or version, or not legal. The
        message begins with its path: ``entries[0].schedule.segments[0].params.num_warps``.
    """
    _check(isinstance(data, dict), "the document", "an object", data)
    _check(data.get("format") == FORMAT, "format", repr(FORMAT), data.get("format"))
    version = data.get("version")
    _check(type(version) is int and version == VERSION, "version", str(VERSION), version)
    _check_names(data, ("format", "version", "entries"), "")
    entries = data["entries"]
    _check(isinstance(entries, list), "entries", "a list", entries)
    return [_imported(item, f"entries[{place}]", here) for place, item in enumerate(entries)]


def _imported(
    data: Any, where: str, here: Sequence[DeviceProperties] | None
) -> tuple[StoreKey, Stored]:
    _check(isinstance(data, dict), where, "an object", data)
    _check_names(data, _FIELDS, f"{where}.")
    key, device = _key(data["key"], f"{where}.key", here)
    seconds, before = (_seconds(data[n], f"{where}.{n}") for n in _FIELDS[1:3])
    fusion, signature = _problem(data, where)
    for name, meant in (
        ("definition", in_order(fusion).fingerprint),
        ("signature", repr(signature)),
    ):
        given = getattr(key, name)
        _check(given == meant, f"{where}.key.{name}", f"that of {where}, {meant!r}", given)
    schedule = _at(f"{where}.schedule", lambda: Schedule.from_dict(data["schedule"]))
    options = RunOptions(schedule=schedule)
    _at(f"{where}.schedule", lambda: lower(fusion, signature, device, options))
    problem = {name: data[name] for name in ("definition", "inputs")}
    return key, Stored(schedule, seconds, before, key.device, problem)


def _key(
    data: Any, where: str, here: Sequence[DeviceProperties] | None
) -> tuple[StoreKey, DeviceProperties]:
    """The key, and the device that it is for."""
    _check(isinstance(data, dict), where, "an object", data)
    _check_names(data, StoreKey._fields, f"{where}.")
    for name, part in data.items():
        _check(type(part) is str, f"{where}.{name}", "a string", part)
    key = StoreKey(**data)
    for name, found in versions().items():
        if getattr(key, name) != found:
            raise ParamsError(
                f"{where}.{name}: expected {found!r}, which is here, got {getattr(key, name)!r}",
                hint="A schedule is found again by the same versions alone: tune again.",
            )
    if here is None:
        return key, _at(f"{where}.arch", lambda: devices.known(key.arch))
    for device in here:
        if (device.name, device.arch) == (key.device, key.arch):
            return key, device
    names = ", ".join(f"{device.name} ({device.arch})" for device in here) or "no GPU"
    raise ParamsError(f"{where}.device: expected what is here, {names}, got {key.device!r}")


def _seconds(given: Any, where: str) -> float:
    _check(type(given) is float and 0 < given < math.inf, where, "seconds", given)
    return float(given)


def _check_fits(fusion: Fusion, signature: InputSignature, where: str) -> None:
    """The inputs are as many and of such kinds as the definition takes."""
    count = len(fusion.inputs)
    _check(len(signature) == count, where, f"{count} inputs", len(signature))
    for place, (value, spec) in enumerate(zip(fusion.inputs, signature, strict=True)):
        at = f"{where}[{place}]"
        kind = "a tensor" if value.is_tensor else "a number"
        _check(isinstance(spec, TensorSpec) == value.is_tensor, at, kind, spec)
        _check(spec.dtype is value.dtype, f"{at}.dtype", value.dtype.name, spec.dtype.name)
        if isinstance(spec, TensorSpec):
            rank = value.tensor.rank
            _check(len(spec.sizes) == rank, f"{at}.sizes", f"{rank} sizes", [*spec.sizes])


# --- errors --------------------------------------------------------------------------------------

SHOWN = 60
"""Characters of a wrong value that an error shows."""


def _check(holds: bool, where: str, expected: str, given: Any) -> None:
    if not holds:
        _refuse(where, expected, given)


def _refuse(where: str, expected: str, given: Any) -> NoReturn:
    text = repr(given)
    shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
    raise ParamsError(f"{where}: expected {expected}, got {shown}")


def _check_names(data: Mapping[str, Any], names: Sequence[str], where: str) -> None:
    for name in names:
        _check(name in data, f"{where}{name}", "a value", "nothing")
    for name in data:
        if name not in names:
            raise ParamsError(f"{where}{name}: unknown field, expected {', '.join(names)}")


def _at(where: str, read: Callable[[], T]) -> T:
    """What ``read`` returns; its errors with the path of what is read."""
    try:
        return read()
    except TritonFuserError as error:
        message = error.message
        if isinstance(error, DefinitionError):
            message = message.removeprefix("from_dict: ")
        joint = "." if isinstance(error, ParamsError) else ": "
        raise ParamsError(f"{where}{joint if where else ''}{message}", hint=error.hint) from error
    except (ValueError, TypeError, AssertionError, KeyError, IndexError, RecursionError) as error:
        raise ParamsError(f"{where}: it does not fit its definition: {error!r}") from error
