"""The same search by Optuna: ``python examples/optuna_search.py [TRIALS]``."""

from __future__ import annotations

import sys
from typing import Any

import torch
from random_search import seconds

from tritonfuser import FusionDefinition, LoweringError

try:
    import optuna
except ImportError:
    sys.exit("This example needs Optuna: pip install optuna")


def suggested(trial: Any, place: int, segment: dict[str, Any]) -> dict[str, Any]:
    """A scheduler and params for a segment, out of its space as plain data."""
    names = [(s["scheduler"], n) for s in segment["spaces"] for n in range(len(s["alternatives"]))]
    kind = trial.suggest_categorical(f"{place}", [f"{name} {n}" for name, n in names])
    scheduler, n = kind.split()
    (space,) = (s for s in segment["spaces"] if s["scheduler"] == scheduler)
    alternative = space["alternatives"][int(n)]
    params = dict(alternative["fixed"])
    for choice in alternative["choices"]:
        name = f"{place} {kind} {','.join(choice['fields'])}"
        picked = trial.suggest_int(name, 0, len(choice["values"]) - 1)
        params |= zip(choice["fields"], choice["values"][picked], strict=True)
    return {"scheduler": scheduler, "params": params}


def search(fd: FusionDefinition, inputs: list[torch.Tensor], trials: int) -> tuple[dict, float]:
    """The fastest schedule that was found, as plain data, and its time over the heuristics'."""
    space = fd.search_space(inputs).to_dict()
    first = seconds(fd.plan(inputs), inputs)

    def objective(trial: Any) -> float:
        pairs = enumerate(zip(space["schedule"]["segments"], space["segments"], strict=True))
        segments = [{**own, **suggested(trial, n, found)} for n, (own, found) in pairs]
        schedule = {**space["schedule"], "segments": segments}
        trial.set_user_attr("schedule", schedule)
        if not fd.is_legal(schedule, inputs):
            raise optuna.TrialPruned
        try:
            return seconds(fd.plan(inputs, schedule=schedule), inputs) / first
        except LoweringError:  # more registers or shared memory than there are
            raise optuna.TrialPruned from None

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=trials)
    done = [t for t in study.trials if t.value is not None and t.value < 1]
    if not done:
        return space["schedule"], 1.0
    return study.best_trial.user_attrs["schedule"], study.best_value


if __name__ == "__main__":
    x = torch.randn(4096, 2048, device="cuda") if torch.cuda.is_available() else torch.randn(32, 64)
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        e = fd.ops.exp(fd.ops.sub(t, fd.ops.max(t, [1], keepdim=True)))
        fd.add_output(fd.ops.div(e, fd.ops.sum(e, [1], keepdim=True)))
    found, ratio = search(fd, [x], int(sys.argv[1]) if len(sys.argv) > 1 else 100)
    print(f"{ratio:.2f} of the heuristics' time")
    for segment in found["segments"]:
        print(segment["scheduler"], segment["params"])
