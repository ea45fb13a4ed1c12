"""Definitions in spawned processes."""

from __future__ import annotations

import pickle

import pytest
import torch
import torch.multiprocessing as mp

from tests.frontend.travel.modules import Rows, fail_there, gelu, run_there
from tests.lowering.graphs import noise
from tritonfuser import FusionDefinition, InputError, errors


def test_a_spawned_process_runs_what_it_was_given():
    fd, x = gelu(FusionDefinition()), noise(3, 5)
    fd.run([x])
    context = mp.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=run_there, args=(fd, x, answers))
    process.start()
    found = answers.get(timeout=120)
    process.join(timeout=60)
    assert found == [out.tolist() for out in fd.run([x])]


@pytest.mark.slow
def test_a_loader_with_workers():
    rows = Rows(gelu(FusionDefinition()))
    loader = torch.utils.data.DataLoader(
        rows, batch_size=2, num_workers=1, multiprocessing_context="spawn"
    )
    assert torch.equal(torch.cat([*loader]), torch.stack([rows[n] for n in range(4)]))


@pytest.mark.slow
def test_an_error_comes_back_as_it_was():
    expected = pytest.raises(InputError, match="to be bound to a tensor of rank 2")
    with mp.get_context("spawn").Pool(1) as pool, expected as caught:
        pool.apply(fail_there, (gelu(FusionDefinition()),))
    assert caught.value.loc is not None


def every_error(cls=errors.TritonFuserError):
    for sub in cls.__subclasses__():
        yield sub
        yield from every_error(sub)


def test_errors_are_pickled_whole():
    """What a worker raises is pickled for its parent."""
    x = torch.zeros(2)
    fd = gelu(FusionDefinition())
    with pytest.raises(InputError) as caught:
        fd.run([x])
    line = errors.SourceLoc(__file__, 3)
    given = [cls("what", loc=line, hint="do") for cls in every_error() if own_init(cls)]
    for error in (caught.value, *given):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert (again.message, again.loc, again.hint) == (error.message, error.loc, error.hint)
        assert vars(again) == vars(error)


def own_init(cls):
    return cls.__init__ is errors.TritonFuserError.__init__
