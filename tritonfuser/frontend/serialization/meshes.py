"""How the dims of tensors are split and spread over a mesh, as plain data and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..record.device_mesh import DeviceMesh
from ..record.handles import handle_of
from ..record.iter_domains import IterDomain
from ..record.recording import Recording
from ..record.tensor_domain import TensorDomain
from ..vocabulary.enums import ParallelType
from . import plain_data
from .operands import Values

_KEYS = ("tensor", "mesh", "splits", "loop", "parallel")


def mesh_data(recording: Recording) -> Iterator[dict[str, Any]]:
    """Of each tensor that was put on a mesh, or whose dims were split, reordered or parallelized.

    ``splits`` has ``[loop, factor, inner]`` in an order in which they can be done again, ``loop``
    the places of the loops then, ``parallel`` the type of each loop. Merged loops are sent apart,
    and what ``rfactor`` took away is behind the others: that changes nothing of where parts are.
    """
    for value, domain in recording.domains():
        splits, order = _replayed(domain)
        types = [loop.parallel_type.name for loop in domain.loop() for _ in loop.pieces()]
        types += [ParallelType.serial.name] * (len(order) - len(types))
        plain = order == sorted(order) and set(types) <= {ParallelType.serial.name}
        if domain.mesh is None and not splits and plain:
            continue
        mesh = None if domain.mesh is None else domain.mesh.devices.tolist()
        yield {
            "tensor": value.name,
            "mesh": mesh,
            "splits": splits,
            "loop": order,
            "parallel": types,
        }


def _replayed(domain: TensorDomain) -> tuple[list[list[Any]], list[int]]:
    """The splits, outer ones first, and where the loops are after them."""
    loops: list[IterDomain] = domain.logical()
    splits: list[list[Any]] = []
    place = 0
    while place < len(loops):
        split = loops[place].parts
        if split is None:
            place += 1
            continue
        splits.append([place, split.factor, split.inner_split()])
        loops[place : place + 1] = split.outputs()
    places = {id(loop): place for place, loop in enumerate(loops)}
    order = [places.pop(id(piece)) for loop in domain.loop() for piece in loop.pieces()]
    return splits, [*order, *places.values()]


def restore_mesh(recording: Recording, given: Any, values: Values, where: str) -> None:
    """Do to a tensor's dims what ``mesh_data`` says."""
    data = plain_data.record(given, where, _KEYS)
    value = values.get(plain_data.text(data["tensor"], where))
    if value is None or not value.is_tensor:
        plain_data.refuse(where, "the name of a tensor", data["tensor"])
    domain: TensorDomain = handle_of(recording, value).domain()
    for split in plain_data.items(data["splits"], f"{where}.splits"):
        if len(plain_data.items(split, f"{where}.splits")) != 3:
            plain_data.refuse(f"{where}.splits", "a loop, a factor and whether it is inner", split)
        loop, factor = (plain_data.integer(item, f"{where}.splits") for item in split[:2])
        is_inner = plain_data.flag(split[2], f"{where}.splits")
        with plain_data.taken_at(f"{where}.splits"):
            domain.split(loop, factor, is_inner)
    order = plain_data.items(data["loop"], f"{where}.loop")
    places = [plain_data.integer(place, f"{where}.loop") for place in order]
    with plain_data.taken_at(f"{where}.loop"):
        domain.reorder(places)
    types = plain_data.items(data["parallel"], f"{where}.parallel")
    if len(types) != domain.ndim:
        plain_data.refuse(f"{where}.parallel", f"{domain.ndim} names of parallel types", types)
    for part, name in zip(domain.loop(), types, strict=True):
        parallel_type = _parallel_type(name, f"{where}.parallel")
        with plain_data.taken_at(f"{where}.parallel"):
            part.parallelize(parallel_type)
    domain.mesh = _mesh(data["mesh"], f"{where}.mesh")


def _parallel_type(given: Any, where: str) -> ParallelType:
    found = ParallelType.__members__.get(plain_data.text(given, where))
    if found is None:
        plain_data.refuse(where, "the name of a parallel type", given)
    return found


def _mesh(given: Any, where: str) -> DeviceMesh | None:
    if given is None:
        return None
    _check_devices(given, where, 1)
    with plain_data.taken_at(where):
        return DeviceMesh(given)


def _check_devices(given: Any, where: str, depth: int) -> None:
    """Refuse all but ints in up to three lists inside one another."""
    for item in plain_data.items(given, where):
        if depth < 3 and isinstance(item, list | tuple):
            _check_devices(item, where, depth + 1)
        else:
            plain_data.integer(item, where)
