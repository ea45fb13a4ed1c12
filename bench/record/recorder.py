"""Run a step through Thunder and keep every definition that is executed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch

from tritonfuser.ir import Fusion

from ..families.family import Step, Table
from ..recorded.corpus import Pair
from ..recorded.definitions import Input, ScalarInput, TensorInput
from .thunder_without_gpu import DEVICE, as_if_on_gpu, executors, on_gpu, thunder


@dataclass
class Executed:
    """A definition that was executed.

    Attributes
    ----------
    text : str
        The program.
    inputs : tuple of Input
        Its inputs, in order.
    ops : tuple of str
        Names of the ops of the program, in order.
    calls : int
        Number of runs in the step.
    """

    text: str
    inputs: tuple[Input, ...]
    ops: tuple[str, ...]
    calls: int = 1


@dataclass
class _Recorder:
    """The definitions of a step, and the backward that Thunder compiled."""

    found: list[Executed] = field(default_factory=list)
    backwards: list[dict[str, Any]] = field(default_factory=list)

    def keep(self, fd: Any, inputs: Sequence[Any]) -> None:
        made = Executed(
            repr(fd), tuple(map(_described, inputs)), tuple(node.op for node in fd.fusion.ir.nodes)
        )
        for known in self.found:
            if (known.text, known.inputs) == (made.text, made.inputs):
                known.calls += 1
                return
        self.found.append(made)

    def connect(self, **given: Any) -> None:
        self.backwards.append(given)


def _described(value: Any) -> Input:
    if isinstance(value, torch.Tensor):
        return TensorInput(tuple(value.shape), tuple(value.stride()), value.dtype)
    return ScalarInput(value)


def recorded(build: Any, table: Table) -> list[Executed]:
    """The definitions of a step, forward and backward, in the order they first ran."""
    thunder()  # first: it replaces nvFuser's modules where Thunder imports them
    with torch.device("meta"):
        step: Step = build(**table)
    recorder = _Recorder()
    with as_if_on_gpu(recorder.connect) as mode, _executions(recorder):
        run = on_gpu(mode, step.run) if isinstance(step.run, torch.nn.Module) else step.run
        inputs = on_gpu(mode, step.inputs)
        with torch.set_grad_enabled(step.training):
            found = thunder().jit(run, executors=executors())(*inputs)
        if step.training:
            _backward(recorder, found)
    return recorder.found


def pairs(build: Any, table: Table, reduced: Table) -> list[Pair]:
    """The definitions of a step, each with the same one at reduced sizes.

    Raises
    ------
    ValueError
        The step at reduced sizes has other definitions: a size of it is 1, or two are equal, where
        they are not at the sizes of ``table``.
    """
    small, large = recorded(build, reduced), recorded(build, table)
    if [one.ops for one in small] != [one.ops for one in large]:
        ops = [[len(one.ops) for one in found] for found in (large, small)]
        raise ValueError(f"ops of definitions: {ops[0]}, at reduced sizes {ops[1]}")
    return [
        Pair(a.text, a.inputs, a.calls, b.text, b.inputs) for a, b in zip(large, small, strict=True)
    ]


def _backward(recorder: _Recorder, result: Any) -> None:
    """Run the compiled backward on gradients like the results."""
    for given in recorder.backwards:
        grads = [
            torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
            for x in given["flat_output"]
            if isinstance(x, torch.Tensor)
        ]
        given["backward_fn"]([list(given["saved_tensors"]), given["saved_other"]], grads)


def _made(fusion: Fusion) -> list[torch.Tensor]:
    """Results like those of a definition without tensors among its inputs."""
    return [
        torch.empty(
            [int(size) for size in out.value.tensor.sizes],
            dtype=out.value.dtype.info.torch,
            device=DEVICE,
        )
        for out in fusion.outputs
    ]


@contextmanager
def _executions(recorder: _Recorder) -> Iterator[None]:
    """Every ``execute`` of a definition is kept before it runs."""
    definition = importlib.import_module("tritonfuser.compat.nvfuser_direct").FusionDefinition
    execute = definition.execute

    def kept(self: Any, inputs: Sequence[Any], **options: Any) -> Any:
        recorder.keep(self, inputs)
        options.pop("device", None)  # a GPU is named where a definition makes tensors
        if not any(isinstance(x, torch.Tensor) for x in inputs):
            return _made(self.fusion.ir)
        return execute(self, inputs, **options)

    with mock.patch.object(definition, "execute", kept):
        yield
