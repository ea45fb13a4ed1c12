"""Lower a corpus with the importable tritonfuser: JSON entries in, lines of JSON records out.

A standalone script that uses only the public API, since it runs with other versions::

    PYTHONPATH=tree python collector.py corpus.json records.jsonl

It prints a byte per finished entry. The first line of the output is the path of tritonfuser. Each
further line is a record: ``key`` (part, name, arch, change of params), ``kernels``, ``texts``, and
``skipped``, the reason why the entry was not lowered.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import linecache
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import torch

import tritonfuser
from tritonfuser import DataType, FusionDefinition, HeuristicParams

Record = dict[str, Any]
CPU = "cpu"
PACKAGE = "tritonfuser"
UNREAD = ("name", "text", "args", "lines")
"""Fields of a kernel that are recorded in another form, or only locate comments."""


def main(corpus: str, path: str) -> None:
    """Write a record for each entry of a corpus, arch and change of params."""
    library = Library()
    with Path(path).open("w") as out:

        def write(record: Record) -> None:
            out.write(json.dumps(record) + "\n")
            out.flush()

        write({"package": str(Path(tritonfuser.__file__).parent.parent)})
        for entry in json.loads(Path(corpus).read_text()):
            for record in records_of(entry):
                for kernel in record["kernels"]:
                    library.read(kernel["text"])
                write(record)
            print(end=".", flush=True)
        for record in library.records():
            write(record)


def records_of(entry: dict[str, Any]) -> Iterator[Record]:
    """The records of an entry: one per arch, or per change of params in mode ``given``."""
    try:
        fd = program(entry["name"], entry["text"])
    except Exception as error:
        fault = {"error": _text(error)}
        for arch in entry["archs"]:
            yield _record(entry, arch, texts=fault)
        return
    for arch in entry["archs"]:
        if entry["mode"] == "given":
            yield from _given(fd, entry, arch)
        else:
            yield _tried(entry, arch, "", partial(MODES[entry["mode"]], fd, entry, arch))


def program(name: str, text: str) -> FusionDefinition:
    """Run the text of a program."""
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope: dict[str, Any] = {"FusionDefinition": FusionDefinition, "DataType": DataType}
    exec(compile(text, file, "exec"), scope)
    with FusionDefinition() as fd:
        scope["nvfuser_fusion"](fd)
    return fd


def made(specs: list[dict[str, Any]], device: str = "meta") -> list[Any]:
    """Make the inputs: on the meta device, or uninitialized ones on the CPU for a plan."""
    return [_input(spec, device) for spec in specs]


def _input(spec: dict[str, Any], device: str) -> Any:
    if "scalar" in spec:
        return spec["scalar"]
    if "complex" in spec:
        return complex(*spec["complex"])
    shape, stride, offset = spec["shape"], spec["stride"], spec["offset"]
    last = sum((n - 1) * s for n, s in zip(shape, stride, strict=True)) if all(shape) else 0
    storage = torch.empty(offset + last + 1, dtype=getattr(torch, spec["dtype"]), device=device)
    return storage.as_strided(shape, stride, offset)


# --- the modes: kernels and texts ----------------------------------------------------------------

Found = tuple[list[Any], dict[str, str]]


def _plain(fd: FusionDefinition, entry: dict[str, Any], arch: str) -> Found:
    inputs = made(entry["inputs"])
    explained = explained_text(fd.explain(inputs, False, arch=arch))
    texts = {"program": repr(fd), "explain": explained}
    if arch != CPU:
        return fd.kernels(inputs, arch=arch), texts
    plan = fd.plan(made(entry["inputs"], CPU))
    return plan.kernels, {**texts, "plan": plan.text}


def _open(fd: FusionDefinition, entry: dict[str, Any], arch: str) -> Found:
    inputs, varying = made(entry["inputs"]), [made(specs) for specs in entry["varying"]]
    if arch == CPU:  # from the sizes of earlier runs
        plans = [fd.plan(made(specs, CPU)) for specs in (*entry["varying"], entry["inputs"])]
        texts = {f"plan {place}": plan.text for place, plan in enumerate(plans)}
        texts["recompiles"] = "\n".join(map(_recompile, fd.explain_recompiles()))
        return [kernel for plan in plans for kernel in plan.kernels], texts
    if "varying" not in inspect.signature(fd.kernels).parameters:
        raise Skipped("fd.kernels has no varying=")
    explained = fd.explain(inputs, False, arch=arch, varying=varying)
    texts = {"explain": explained_text(explained), "guards": "\n".join(explained.guards)}
    return fd.kernels(inputs, arch=arch, varying=varying), texts


def _fused(fd: FusionDefinition, entry: dict[str, Any], arch: str) -> Found:
    plan = fd.plan(made(entry["inputs"], CPU), _enable_options=["fuse_matmul"])
    params = "\n\n".join(map(_params, plan.params))
    return plan.kernels, {"params": params, "plan": plan.text}


MODES: dict[str, Callable[[FusionDefinition, dict[str, Any], str], Found]] = {
    "plain": _plain,
    "open": _open,
    "fused": _fused,
}


# --- given params --------------------------------------------------------------------------------


def _given(fd: FusionDefinition, entry: dict[str, Any], arch: str) -> Iterator[Record]:
    """One record per field of each segment's params, with only that field changed."""
    inputs = made(entry["inputs"], CPU)
    try:
        chosen = fd.heuristics(inputs)
    except Exception as error:
        yield _record(entry, arch, texts={"error": _text(error)})
        return
    dicts = [params.to_dict() for params in chosen]
    for place, before in enumerate(dicts):
        for name, value in before.items():
            for other in others(value):
                changed = [*dicts[:place], {**before, name: other}, *dicts[place + 1 :]]
                yield _tried(
                    entry,
                    arch,
                    f"s{place} {name}={other}",
                    partial(_planned, fd, inputs, changed),
                )


def others(value: Any) -> list[Any]:
    """Other values for a field of params."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value * 2, value // 2] if value > 1 else [2 if value else 32]
    if isinstance(value, list | tuple):
        return [[]] if value else [[16]]
    return []


def _planned(fd: FusionDefinition, inputs: list[Any], params: list[dict[str, Any]]) -> Found:
    plan = fd.plan(inputs, params=[HeuristicParams.from_dict(each) for each in params])
    return plan.kernels, {"params": "\n\n".join(map(_params, plan.params))}


# --- records -------------------------------------------------------------------------------------


class Skipped(Exception):
    """This version of tritonfuser lacks the API."""


def _tried(entry: dict[str, Any], arch: str, change: str, make: Callable[[], Found]) -> Record:
    try:
        kernels, texts = make()
        return _record(entry, arch, change, list(map(_kernel, kernels)), texts)
    except Skipped as reason:
        return {**_record(entry, arch, change), "skipped": str(reason)}
    except Exception as error:
        return _record(entry, arch, change, texts={"error": _text(error)})


def _record(
    entry: dict[str, Any],
    arch: str,
    change: str = "",
    kernels: list[Record] | None = None,
    texts: dict[str, str] | None = None,
) -> Record:
    key = [entry["part"], entry["name"], arch, change]
    return {"key": key, "kernels": kernels or [], "texts": texts or {}, "skipped": ""}


def _kernel(source: Any) -> Record:
    """A kernel's text, and the other facts that decide its compilation and launch."""
    rest = {row.name: getattr(source, row.name) for row in fields(source)}
    facts = {name: _plainly(value) for name, value in rest.items() if name not in UNREAD}
    args = [f"{arg.name}: {arg.dtype}{' *' * arg.is_tensor}" for arg in source.args]
    return {"name": source.name, "text": source.text, "facts": {"args": str(args), **facts}}


def _plainly(value: Any) -> str:
    return repr(sorted(value)) if isinstance(value, set | frozenset) else repr(value)


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def explained_text(found: Any) -> str:
    """The facts of an explanation, without layout."""
    lines: list[str] = []
    for segment in found.segments:
        lines += [
            f"{segment.name}: {segment.scheduler} {segment.kernel} {segment.grid}",
            f"    reason: {segment.reason}",
            f"    cut: {segment.cut}",
            f"    ops: {', '.join(segment.ops)}",
            f"    lines: {', '.join(f'{loc.file}:{loc.line}' for loc in segment.lines)}",
            f"    bytes: {segment.bytes_read} read, {segment.bytes_written} written",
            *(f"    not {refusal}" for refusal in segment.refusals),
            *(f"    {line}" for line in _params(segment.params).splitlines()),
        ]
    return "\n".join([*lines, *(f"cut: {cut}" for cut in found.cuts)])


def _params(params: HeuristicParams) -> str:
    return "\n".join(f"{name} = {value}" for name, value in params.to_dict().items())


def _recompile(made: Any) -> str:
    """The text of a recompilation, without times."""
    sizes = (f"    {name} = {what}" for name, what in made.sizes.items())
    guards = (f"    guard {guard}" for guard in made.guards)
    head = f"dynamic={made.dynamic}, {made.kernels} kernels, {made.served} served: {made.reason}"
    return "\n".join([head, *sizes, *guards])


# --- the device library --------------------------------------------------------------------------


class Library:
    """The device functions that kernels import, and the functions that these call."""

    def __init__(self) -> None:
        self._heads: set[str] = set()
        self._known: dict[str, Any] = {}

    def read(self, text: str) -> None:
        """Add the imports of a kernel's module."""
        self._heads.add(text.partition("@triton.jit")[0].rpartition('"""')[2])

    def records(self) -> Iterator[Record]:
        """A record for each function or constant, under its name."""
        for head in sorted(self._heads):
            for node in ast.parse(head).body:
                if isinstance(node, ast.ImportFrom) and str(node.module).startswith(PACKAGE):
                    module = importlib.import_module(str(node.module))
                    for alias in node.names:
                        self._note(alias.name, getattr(module, alias.name))
        for name, found in sorted(self._known.items()):
            entry = {"part": "library", "name": name}
            # A function that `launch` calls is none of Triton's.
            function = getattr(found, "fn", found)
            text = inspect.getsource(function) if inspect.isfunction(function) else repr(found)
            yield _record(entry, "", "", [{"name": name, "text": text, "facts": {}}])

    def _note(self, name: str, found: Any) -> None:
        if name in self._known:
            return
        self._known[name] = found
        function = getattr(found, "fn", None)
        if function is None:
            return
        for other in function.__code__.co_names:
            inner = function.__globals__.get(other)
            home = getattr(getattr(inner, "fn", None), "__module__", "")
            if home.startswith(PACKAGE) or type(inner).__name__ == "constexpr":
                self._note(other, inner)


if __name__ == "__main__":
    main(*sys.argv[1:])
