"""Wrong schedules, and right ones that nobody would choose, made of right ones by chance."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from tritonfuser.heuristics.params import PARAMS

Data = dict[str, Any]
NAMES = ("computes", "stores", "loads", "co_reduced")
REWRITES = ("pieces", "materialized", "recomputed", "invariants", "products")


def mutated(data: Data, rng: random.Random) -> Data:
    """A schedule with one to three things changed."""
    found = copy.deepcopy(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        rng.choice(MUTATIONS)(found, rng)
    return found


def _names(data: Data) -> list[str]:
    """All names that a schedule has, and some near them."""
    found = [n for piece in data["segments"] for field in NAMES for n in piece.get(field, ())]
    return [*found, *(f"tv{n}" for n in range(12)), "tv99", "tv1[0]", "tv2.copy", "tv2.put", "c0"]


def _lists(data: Data) -> list[list[str]]:
    return [piece[field] for piece in data["segments"] for field in NAMES if field in piece]


def _swap(data: Data, rng: random.Random) -> None:
    """Two names change places."""
    places = [(names, at) for names in _lists(data) for at in range(len(names))]
    if len(places) > 1:
        (a, i), (b, j) = rng.sample(places, 2)
        a[i], b[j] = b[j], a[i]


def _move(data: Data, rng: random.Random) -> None:
    """A name goes to another list."""
    full = [names for names in _lists(data) if names]
    if full:
        source = rng.choice(full)
        name = source.pop(rng.randrange(len(source)))
        names = rng.choice(_lists(data))
        names.insert(rng.randrange(len(names) + 1), name)


def _own_kernel(data: Data, rng: random.Random) -> None:
    """A value gets a kernel of its own."""
    pieces = [p for p in data["segments"] if p.get("computes") or p.get("stores")]
    if pieces:
        piece = rng.choice(pieces)
        field = rng.choice([field for field in ("computes", "stores") if piece.get(field)])
        name = piece[field].pop(rng.randrange(len(piece[field])))
        fresh = {**copy.deepcopy(piece), **{f: [] for f in NAMES}, field: [name]}
        if rng.random() < 0.5:
            fresh |= _any_params(rng)
        data["segments"].insert(rng.randrange(len(data["segments"]) + 1), fresh)


def _merge(data: Data, rng: random.Random) -> None:
    """Two kernels become one."""
    if len(data["segments"]) > 1:
        one, other = rng.sample(data["segments"], 2)
        for field in NAMES:
            one[field] = [*one.get(field, ()), *other.get(field, ())]
        data["segments"].remove(other)


def _drop(data: Data, rng: random.Random) -> None:
    lists = [names for names in [data["segments"], *_lists(data)] if names]
    if lists:
        names = rng.choice(lists)
        names.pop(rng.randrange(len(names)))


def _duplicate(data: Data, rng: random.Random) -> None:
    lists = [names for names in [data["segments"], *_lists(data)] if names]
    if lists:
        names = rng.choice(lists)
        names.append(copy.deepcopy(rng.choice(names)))


def _add(data: Data, rng: random.Random) -> None:
    """A name more in some list."""
    lists = [*_lists(data), *(data[field] for field in REWRITES)]
    rng.choice(lists).append(rng.choice(_names(data)))


def _reorder(data: Data, rng: random.Random) -> None:
    rng.shuffle(rng.choice([data["segments"], *_lists(data)]))


def _split(data: Data, rng: random.Random) -> None:
    """A reduction in two steps."""
    reduced = [n for piece in data["segments"] for n in piece.get("computes", ())]
    parts = rng.choice([2, 3, 4, 7, 100, 1, 0, -1, [2], [-2], [2, 2], [3, -1], [], [0], "tv3"])
    split = {
        "value": rng.choice(reduced or _names(data)),
        "parts": rng.choice(reduced or ["tv3"]) if parts == "tv3" else parts,
        "interleave": rng.choice([0, 0, 1, 2, 4]),
        "padded": rng.choice([-1, -1, 0, 1]),
        "remainder": rng.random() < 0.25,
    }
    data[rng.choice(["splits", "splits", "tile_splits"])].append(split)


def _unsplit(data: Data, rng: random.Random) -> None:
    field = rng.choice([*REWRITES, "splits", "tile_splits"])
    if data[field]:
        data[field].pop(rng.randrange(len(data[field])))


def _any_params(rng: random.Random) -> Data:
    """Legal params of some scheduler."""
    name = rng.choice([*PARAMS])
    values = {row.name: _value(row.name, name, rng) for row in fields(PARAMS[name])}
    return {"scheduler": name, "params": values}


def _value(field: str, scheduler: str, rng: random.Random) -> Any:
    if field.startswith("block_"):
        return 1 << rng.randrange(4 if scheduler == "matmul" else 0, 7)
    if field in ("persistent", "staged", "prefetch", "descriptors", "backwards", "evict_hints"):
        return rng.random() < 0.5
    if field == "tails":
        return [1 << rng.randrange(7) for _ in range(rng.choice((0, 0, 0, 1, 2, 3)))]
    if field in ("axes", "across"):
        return rng.sample(range(4), rng.choice((0, 0, 1, 2, 3)))
    few: dict[str, Any] = {
        "loads_first": (None, None, False, True),
        "first": ("", "x", "y"),
        "num_warps": (1, 2, 4, 8),
        "num_stages": (1, 2, 3, 5),
        "unroll": (1, 1, 2, 4),
        "max_registers": (0, 0, 64),
        "align": (1, 1, 2, 4, 8),
        "vectorization_factor": (0, 1, 4),
        "parts": (1, 1, 2) if scheduler == "matmul" else (1, 1, 2, 4),
        "delay": (1, 1, 2, 9),
        "group_m": (1, 3, 8),
        "programs": (0, 0, 1, 3),
    }
    return rng.choice(few[field])


def _other_scheduler(data: Data, rng: random.Random) -> None:
    if data["segments"]:
        rng.choice(data["segments"]).update(_any_params(rng))


def _other_params(data: Data, rng: random.Random) -> None:
    """A field or all fields of the params of a segment."""
    pieces = [piece for piece in data["segments"] if piece["params"]]
    if pieces:
        piece = rng.choice(pieces)
        names = [*piece["params"]]
        for name in names if rng.random() < 0.5 else [rng.choice(names)]:
            piece["params"][name] = _value(name, piece["scheduler"], rng)


def _other_overlap(data: Data, rng: random.Random) -> None:
    if data["segments"]:
        rng.choice(data["segments"])["overlap"] = rng.random() < 0.5


def _other_launch(data: Data, rng: random.Random) -> None:
    if data["segments"]:
        field = rng.choice(("finishes", "beside"))
        rng.choice(data["segments"])[field] = rng.random() < 0.7


MUTATIONS: list[Callable[[Data, random.Random], None]] = [
    _swap,
    _move,
    _own_kernel,
    _own_kernel,
    _merge,
    _drop,
    _duplicate,
    _add,
    _reorder,
    _split,
    _split,
    _unsplit,
    _other_overlap,
    _other_launch,
    _other_launch,
    _other_scheduler,
    _other_params,
    _other_params,
    _other_params,
]
