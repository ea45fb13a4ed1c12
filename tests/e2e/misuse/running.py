"""Right definitions run wrongly: inputs, options, params, devices, plans, tensors to write into."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import torch

from tests.e2e.graphs.growing import Grown
from tests.e2e.misuse.judging import fault_of
from tests.e2e.misuse.outcome import Wrong, fresh, same
from tests.e2e.misuse.wrong_inputs import changed
from tests.e2e.misuse.wrong_values import WRONG, OfDefinition
from tritonfuser import FusionDefinition, InputError, ValidationError
from tritonfuser.frontend.inspect.oracle import NoReferenceError

Inputs = list[Any]
Attempt = tuple[str, Callable[[], Any], Callable[[Any], None] | None]
"""What it is, the call, and a check of what it gives, or None where it has to be refused."""

ENTRIES: Mapping[str, Callable[[FusionDefinition, Any], Any]] = {
    "run": lambda fd, given: fd.run(given),
    "run again": lambda fd, given: fd.run(given),
    "plan": lambda fd, given: fd.plan(given)(given),
    "run_kernel": lambda fd, given: fd.run_kernel(given),
    "heuristics": lambda fd, given: fd.heuristics(given),
    "kernels": lambda fd, given: fd.kernels(given),
    "segments": lambda fd, given: fd.segments(given),
    "explain": lambda fd, given: str(fd.explain(given)),
    "audit": lambda fd, given: str(fd.audit(given)),
    "compile_for": lambda fd, given: fd.heuristics(given, arch="sm_90"),
    "repro_script_for": lambda fd, given: fd.repro_script_for(given),
    "execute of the fusion": lambda fd, given: fd.fusion.execute(given),
}
"""Where inputs go in."""
RETURNING = ("run", "run again", "plan", "run_kernel", "execute of the fusion")


def wrong_inputs(rng: random.Random, grown: Grown) -> Attempt:
    """Inputs that do not fit, or do: then the numbers have to be right."""
    fd = grown.fd
    entry = rng.choice([*ENTRIES, "run", "run", "run again"])
    what, given = changed(rng, fresh(grown.inputs))
    if entry == "run again":
        fd.run(fresh(grown.inputs))

    def check(found: Any) -> None:
        if entry not in RETURNING or any(x.is_meta for x in found) or not _plain(given):
            return
        try:
            fd.fusion.ir  # noqa: B018
            validated = _again(fd)
            validated.validate(fresh(given))
        except NoReferenceError:
            return

    return f"{entry}, {what}", lambda: ENTRIES[entry](fd, given), check


def _plain(given: Any) -> bool:
    """Whether the inputs can be copied and run once more."""
    flat = given if isinstance(given, list) else []
    return all(
        type(x) is torch.Tensor and not x.is_meta if isinstance(x, torch.Tensor) else True
        for x in flat
    )


def _again(fd: FusionDefinition) -> FusionDefinition:
    """The definition in an object of its own."""
    return FusionDefinition(fd.fusion)


def wrong_keyword(rng: random.Random, grown: Grown) -> Attempt:
    """Options, params, devices and archs of wrong types and values."""
    fd, given = grown.fd, fresh(grown.inputs)
    entry, key = rng.choice(KEYWORDS)
    what = rng.choice(sorted(k for k, v in WRONG.items() if not isinstance(v, OfDefinition)))
    value = WRONG[what]
    if rng.random() < 0.5:
        what = rng.choice(sorted(NAMED))
        value = NAMED[what]
    call = getattr(fd, entry)
    return f"{entry}({key}={what})", lambda: call(given, **{key: value}), lambda found: None


NAMED: Mapping[str, Any] = {
    "'sm_1'": "sm_1",
    "'sm_90'": "sm_90",
    "'cuda:99'": "cuda:99",
    "'nonsense'": "nonsense",
    "'meta'": "meta",
    "'cpu'": "cpu",
    "['nonsense']": ["nonsense"],
    "'fuse_matmul'": "fuse_matmul",
    "[1]": [1],
    "{'block_x': 1}": {"block_x": 1},
    "{'scheduler': 'pointwise'}": {"scheduler": "pointwise"},
    "[{}] * 9": [{}] * 9,
    "{}": {},
    "-0.5": -0.5,
    "torch.device('cuda', 9)": torch.device("cuda", 9),
}
KEYWORDS: Sequence[tuple[str, str]] = (
    *(("run", key) for key in ("params", "device", "_enable_options", "_disable_options")),
    *(("plan", key) for key in ("params", "device", "_enable_options")),
    *(("heuristics", key) for key in ("arch", "params", "_disable_options")),
    *(("kernels", key) for key in ("arch", "varying", "params")),
    *(("segments", key) for key in ("arch", "varying")),
    *(("explain", key) for key in ("arch", "varying", "params", "measure")),
    *(("validate", key) for key in ("reference_outputs", "device", "atol", "rtol")),
    *(("audit", key) for key in ("reference_outputs", "atol")),
    ("run_kernel", "params"),
    ("run", "nonsense"),
    ("plan", "nonsense"),
)


def wrong_params(rng: random.Random, grown: Grown) -> Attempt:
    """Params of the definition with a field changed, too few or too many."""
    fd, given = grown.fd, fresh(grown.inputs)
    params: list[Any] = fd.heuristics(given)
    if not params:
        raise ValueError
    place = rng.randrange(len(params))
    values = (0, -1, 3, 1 << 20, 2**63, 1.5, None, "1", True, (), (1, 2), math.nan, [1], False, 64)
    names = [row.name for row in fields(params[place])]
    name = rng.choice(names or ["scheduler"])
    value = rng.choice(values)
    how = rng.choice(("object", "dict", "dict", "fewer", "more", "unknown"))
    if how == "object" and not names:  # there is no field to change: that is Python's to say
        how = "dict"
    what = f"params[{place}] of {type(params[place]).__name__}, {how}: {name}={value!r}"
    if how == "object":
        return (
            what,
            lambda: fd.run(given, params=_replaced(params, place, name, value)),
            _right(grown),
        )
    if how == "fewer":
        params = params[1:] or [[]]
    elif how == "more":
        params = [*params, params[0]]
    else:
        key = name if how == "dict" else "nonsense"
        params[place] = {**params[place].to_dict(), key: value}
    return what, lambda: fd.run(given, params=params), _right(grown)


def _replaced(params: list[Any], place: int, name: str, value: Any) -> list[Any]:
    return [replace(one, **{name: value}) if at == place else one for at, one in enumerate(params)]


def _right(grown: Grown) -> Callable[[Any], None]:
    """The numbers of a run with other params, which may be rounded otherwise."""

    def check(found: list[torch.Tensor]) -> None:
        try:
            _again(grown.fd).validate(fresh(grown.inputs), found)
        except NoReferenceError:
            return

    return check


def wrong_out(rng: random.Random, grown: Grown) -> Attempt:
    """Tensors to write into that do not fit."""
    fd, given = grown.fd, fresh(grown.inputs)
    plan = fd.plan(given)
    out: Any = plan.allocate()
    what = rng.choice(sorted(OUTS))
    place = rng.randrange(max(1, len(out)))
    out = OUTS[what](out, place, given)
    return (
        f"plan(out={what} at {place})",
        lambda: plan(given, out),
        lambda found: same(found, _again(fd).run(fresh(grown.inputs)), what),
    )


def _at(out: list[Any], place: int, change: Callable[[torch.Tensor], Any]) -> list[Any]:
    return [
        change(x) if at == place and isinstance(x, torch.Tensor) else x for at, x in enumerate(out)
    ]


OUTS: Mapping[str, Callable[[list[Any], int, Inputs], Any]] = {
    "fewer": lambda out, p, given: out[1:],
    "more": lambda out, p, given: [*out, torch.ones(3)],
    "a tensor": lambda out, p, given: torch.ones(3),
    "a dict": lambda out, p, given: dict(enumerate(out)),
    "an int": lambda out, p, given: 3,
    "numbers": lambda out, p, given: [1.0] * len(out),
    "an input": lambda out, p, given: [*given][: len(out)],
    "the same twice": lambda out, p, given: [out[0]] * len(out) if out else out,
    "all None": lambda out, p, given: [None] * len(out),
    "another dtype": lambda out, p, given: _at(out, p, lambda x: x.to(torch.complex64)),
    "another rank": lambda out, p, given: _at(out, p, lambda x: x.unsqueeze(0)),
    "expanded": lambda out, p, given: _at(
        out, p, lambda x: x[:1].expand(x.shape) if x.dim() and x.shape[0] else x
    ),
    "on meta": lambda out, p, given: _at(out, p, lambda x: x.to("meta")),
    "with a gradient": lambda out, p, given: _at(
        out, p, lambda x: x.requires_grad_() if x.is_floating_point() else x
    ),
    "an array": lambda out, p, given: _at(out, p, lambda x: x.double().numpy()),
    "sparse": lambda out, p, given: _at(out, p, lambda x: torch.ones(3).to_sparse()),
    "two of one memory": lambda out, p, given: _at(
        out, p, lambda x: torch.zeros((), dtype=x.dtype).expand(x.shape)
    ),
}
KINDS: Sequence[Callable[[random.Random, Grown], Attempt]] = (
    *(wrong_inputs,) * 5,
    *(wrong_keyword,) * 3,
    *(wrong_params,) * 2,
    *(wrong_out,) * 2,
)


NAMES = frozenset(
    [
        "params",
        "device",
        "option",
        "out",
        "arch",
        "varying",
        "reference",
        "kernel",
        "atol",
        "Scalar",
        "segment",
    ]
)
"""What errors name beside the ops and the inputs."""


def misuse(rng: random.Random, grown: Grown) -> str:
    """One wrong call of a right definition; the outcome in a word.

    Raises
    ------
    Wrong
        It is refused badly, or gives wrong numbers, or the definition does not run afterwards.
    """
    wanted = None
    while wanted is None:
        try:
            what, call, check = rng.choice(KINDS)(rng, grown)
        except ValueError:
            continue
        wanted = _again(grown.fd).run(fresh(grown.inputs))
    names = {node.op for node in grown.fd.fusion.ir.nodes} | {"input", "Input", *what.split("(")}
    names |= NAMES
    outcome = _attempt(what, call, check, names)
    if outcome == "refused":
        same(_again(grown.fd).run(fresh(grown.inputs)), wanted, f"after {what}")
    return outcome


def _attempt(
    what: str, call: Callable[[], Any], check: Callable[[Any], None] | None, names: set[str]
) -> str:
    try:
        found = call()
    except Wrong:
        raise
    except Exception as error:
        fault = fault_of(error, names)
        if fault is not None or (isinstance(error, ValidationError) and "reference" not in what):
            raise Wrong(f"{what}\n{fault or error!r}") from error
        return "refused"
    if check is not None:
        try:
            check(found)
        except (ValidationError, InputError) as error:
            raise Wrong(f"{what}\ntaken, and {error}") from error
    return "taken"
