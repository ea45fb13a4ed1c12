"""Threads that record, run, ask, copy and forget at once: every value is right, nobody waits."""

from __future__ import annotations

import copy
import faulthandler
import pickle
import random
import sys
import threading
import time

import pytest
import torch

from tritonfuser import FusionDefinition

THREADS = 16
HANGS = 120
"""Seconds after which all stacks are printed."""


def softmax(ops, x):
    powers = ops.exp(ops.sub(x, ops.max(x, [1], keepdim=True)))
    return ops.div(powers, ops.sum(powers, [1], keepdim=True))


BODIES = {
    "softmax": (softmax, lambda x: x.softmax(1)),
    "sum": (lambda ops, x: ops.sum(x, [0]), lambda x: x.sum(0)),
    "centred": (
        lambda ops, x: ops.sub(x, ops.var_mean(x, [1], 0, True)[1]),
        lambda x: x - x.mean(1, keepdim=True),
    ),
    "turned": (lambda ops, x: ops.permute(ops.relu(x), [1, 0]), lambda x: x.relu().t()),
    "joined": (lambda ops, x: ops.cat([x, ops.neg(x)], 1), lambda x: torch.cat([x, -x], 1)),
}


def made(name):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(BODIES[name][0](fd.ops, x))
    return fd


def into_given(fd, x):
    plan = fd.plan([x])
    out = plan.allocate()
    plan([x], out=out)
    return out


def forgotten(fd, x):
    fd._core().forget([x])
    return fd.run([x])


RUNS = {
    "run": lambda fd, x: fd.run([x]),
    "plan": lambda fd, x: fd.plan([x])([x]),
    "into given": into_given,
    "copied": lambda fd, x: copy.deepcopy(fd).run([x]),
    "sent": lambda fd, x: pickle.loads(pickle.dumps(fd)).run([x]),
    "forgotten": forgotten,
    "its schedule": lambda fd, x: fd.run([x], schedule=fd.schedule([x]).to_dict()),
}
QUESTIONS = {
    "explain": lambda fd, x: str(fd.explain([x])),
    "audit": lambda fd, x: fd.audit([x]).ok or pytest.fail("the audit found a wrong value"),
    "kernels": lambda fd, x: fd.kernels([x]),
    "recompiles": lambda fd, x: str(fd.explain_recompiles()),
    "text": lambda fd, x: repr(fd),
    "space": lambda fd, x: fd.search_space([x]).draw(random.Random(0)),
}


def work(seed, shared, until, errors):
    rng = random.Random(seed)
    try:
        while time.monotonic() < until and not errors:
            name = rng.choice([*BODIES])
            fd = shared[name] if rng.random() < 0.7 else made(name)
            x = torch.randn(rng.randint(1, 9), rng.choice((1, 2, 3, 5, 8, 13, 33, 64, 100)))
            if rng.random() < 0.1:
                shared[name] = made(name)
            if rng.random() < 0.3:
                rng.choice([*QUESTIONS.values()])(fd, x)
            else:
                (found,) = rng.choice([*RUNS.values()])(fd, x)
                torch.testing.assert_close(found, BODIES[name][1](x), rtol=1e-4, atol=1e-5)
    except BaseException as error:
        errors.append(error)


def run_threads(seconds):
    shared, errors = {name: made(name) for name in BODIES}, []
    until, before = time.monotonic() + seconds, sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    faulthandler.dump_traceback_later(seconds + HANGS, exit=True)
    try:
        threads = [
            threading.Thread(target=work, args=(seed, shared, until, errors))
            for seed in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        faulthandler.cancel_dump_traceback_later()
        sys.setswitchinterval(before)
    if errors:
        raise errors[0]


def test_threads():
    run_threads(1.0)


@pytest.mark.slow
def test_threads_for_longer():
    run_threads(20.0)
