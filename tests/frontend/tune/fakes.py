"""A definition to tune, and a device that takes as long as a formula says."""

from __future__ import annotations

import math
from concurrent.futures import Future

import torch

from tritonfuser import FusionDefinition
from tritonfuser.frontend.tune.compiling import Compiler


def softmax():
    """Rows of a softmax, and inputs for it."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        powers = fd.ops.exp(fd.ops.sub(x, fd.ops.max(x, [1], keepdim=True)))
        fd.add_output(fd.ops.div(powers, fd.ops.sum(powers, [1], keepdim=True)))
    return fd, [torch.randn(64, 300)]


class FakeClock:
    """Seconds that pass when somebody says so."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class FakeDevice:
    """A measurer: seconds by a formula of the params of the last segment."""

    def __init__(self, clock, seconds, each=0.01):
        self.clock, self.seconds, self.each = clock, seconds, each
        self.wrong, self.faults, self.asked = set(), set(), []
        self.interrupt_after = math.inf

    def is_ready(self, seconds):
        return True

    def measure(self, schedules, rounds):
        self.clock.now += self.each * len(schedules)
        self.asked.append((len(schedules), rounds))
        if len(self.asked) > self.interrupt_after:
            self.interrupt_after = math.inf
            raise KeyboardInterrupt
        return ["it faults" if s in self.faults else self.seconds(s, rounds) for s in schedules]

    def judge(self, schedules):
        return ["wrong: output 0" if s in self.wrong else "" for s in schedules]


class AtOnce:
    """A pool that does everything at once, so that a search is the same each time."""

    def __init__(self, threads, name):
        pass

    def submit(self, task, *args):
        made = Future()
        made.set_result(task(*args))
        return made

    def shutdown(self, wait, cancel_futures):
        pass


def compiler_for(fd, inputs):
    """A compiler of the definition, for the device of the inputs."""
    return Compiler(fd._ready().ir, inputs)
