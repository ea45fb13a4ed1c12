"""Stored schedules: found again by the same key alone, whole or not at all."""

from __future__ import annotations

import json
import multiprocessing
import os
from dataclasses import replace

import pytest
import torch

from tests.frontend.tune.fakes import softmax
from tritonfuser import FusionDefinition, options
from tritonfuser.cache.tuned import keys, store
from tritonfuser.cache.tuned.store import Stored


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty store that runs use."""
    monkeypatch.setenv("TRITONFUSER_CACHE_DIR", os.fspath(tmp_path))
    monkeypatch.setenv("TRITONFUSER_TUNED", "1")
    options.refresh()
    yield tmp_path / "schedules"
    monkeypatch.undo()
    options.refresh()


def other_schedule(fd, inputs):
    """A legal schedule that the heuristics do not choose."""
    schedule = fd.schedule(inputs)
    (segment,) = schedule.segments
    params = replace(segment.params, block_x=segment.params.block_x // 4)
    return replace(schedule, segments=(replace(segment, params=params),))


def key_of(fd, inputs):
    return fd._core().store_key(inputs)


def stored(fd, inputs):
    schedule = other_schedule(fd, inputs)
    found = Stored(schedule, 1e-5, 2e-5, "a GPU")
    store.save(key_of(fd, inputs), found)
    return schedule


def test_what_is_stored_is_found(folder):
    fd, inputs = softmax()
    assert store.load(key_of(fd, inputs)) is None and store.is_empty()
    schedule = stored(fd, inputs)
    found = store.load(key_of(fd, inputs))
    assert found.schedule == schedule and (found.seconds, found.heuristic_seconds) == (1e-5, 2e-5)
    assert not store.is_empty() and len(list(folder.glob("*.json"))) == 1
    store.remove(key_of(fd, inputs))
    assert store.load(key_of(fd, inputs)) is None
    store.remove(key_of(fd, inputs))


def test_the_next_run_uses_it():
    fd, inputs = softmax()
    schedule = stored(fd, inputs)
    assert fd.schedule(inputs) == schedule
    (out,) = fd.run(inputs)
    torch.testing.assert_close(out, torch.softmax(inputs[0], 1))
    assert fd.plan(inputs).params == [schedule.segments[0].params]
    again, _ = softmax()
    again.run(inputs)
    assert again.plan(inputs).params == [schedule.segments[0].params]


def test_explain_says_so():
    fd, inputs = softmax()
    assert fd.explain(inputs).origin == ""
    stored(fd, inputs)
    told = "schedule: tuned on cpu: 10.0 us, and the heuristics' schedule 20.0 us"
    assert told in str(fd.explain(inputs))
    fd.run(inputs)
    assert told in str(fd.explain(inputs))


def test_a_plan_that_is_there_stays_until_it_is_forgotten():
    fd, inputs = softmax()
    fd.run(inputs)
    before = fd.plan(inputs).params
    schedule = stored(fd, inputs)
    fd.run(inputs)
    assert fd.plan(inputs).params == before and fd.explain(inputs).origin == ""
    fd._core().forget(inputs)
    fd.run(inputs)
    assert fd.plan(inputs).params == [schedule.segments[0].params]


def test_other_inputs_do_not_use_it():
    fd, inputs = softmax()
    stored(fd, inputs)
    for other in ([torch.randn(64, 301)], [torch.randn(300 * 64 + 1)[1:].view(64, 300)]):
        assert fd.explain(other).origin == ""
        fd.run(other)
        assert fd.explain(other).origin == ""


def test_sizes_that_vary_leave_it_alone():
    """The variant with open sizes serves others; this signature keeps its own kernels."""
    fd, inputs = softmax()
    for rows in (3, 5, 7, 9):
        fd.run([torch.randn(rows, 300)])
    schedule = stored(fd, inputs)
    fd.run(inputs)
    assert fd.plan(inputs).params == [schedule.segments[0].params]
    fd.run([torch.randn(11, 300)])
    assert fd.explain([torch.randn(11, 300)]).origin == ""


def test_a_run_that_asks_for_something_does_not_use_it():
    fd, inputs = softmax()
    chosen = fd.heuristics(inputs)
    stored(fd, inputs)
    assert fd.plan(inputs, params=chosen).params == chosen


def test_an_option_turns_it_off(monkeypatch):
    fd, inputs = softmax()
    chosen = fd.heuristics(inputs)
    stored(fd, inputs)
    monkeypatch.setenv("TRITONFUSER_TUNED", "0")
    options.refresh()
    assert fd.plan(inputs).params == chosen and fd.explain(inputs).origin == ""


def test_a_schedule_that_is_refused_is_not_used():
    fd, inputs = softmax()
    wrong = replace(fd.schedule(inputs), segments=())
    store.save(key_of(fd, inputs), Stored(wrong, 1e-5, 2e-5, "a GPU"))
    assert fd.explain(inputs).origin == ""
    (out,) = fd.run(inputs)
    torch.testing.assert_close(out, torch.softmax(inputs[0], 1))


def _without(name):
    def change(data):
        del data[name]
        return json.dumps(data)

    return change


BROKEN = {
    "empty": lambda data: "",
    "cut": lambda data: json.dumps(data)[:-20],
    "no object": lambda data: "[1, 2]",
    "deep": lambda data: "[" * 100_000,
    "newer": lambda data: json.dumps({**data, "version": 99}),
    "no schedule": _without("schedule"),
    "no seconds": _without("seconds"),
    "seconds of a wrong type": lambda data: json.dumps({**data, "seconds": "1"}),
    "schedule of a wrong type": lambda data: json.dumps({**data, "schedule": [1]}),
    "of another key": lambda data: json.dumps({**data, "key": {**data["key"], "arch": "sm_1"}}),
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_file_that_cannot_be_read_is_not_there(change):
    fd, inputs = softmax()
    stored(fd, inputs)
    path = store.path_of(key_of(fd, inputs))
    path.write_text(change(json.loads(path.read_text())))
    assert store.load(key_of(fd, inputs)) is None
    assert fd.explain(inputs).origin == ""
    stored(fd, inputs)
    assert store.load(key_of(fd, inputs)) is not None


def test_a_file_that_is_no_text_is_not_there():
    fd, inputs = softmax()
    stored(fd, inputs)
    store.path_of(key_of(fd, inputs)).write_bytes(b"\xff\xfe\x00")
    assert store.load(key_of(fd, inputs)) is None


# --- the key -------------------------------------------------------------------------------------


def test_the_key_is_of_the_definition_not_of_its_lines():
    fd, inputs = softmax()
    moved = json.loads(json.dumps(fd.to_dict()))
    for op in moved["ops"]:
        op["loc"] = None
    again = FusionDefinition.from_dict(moved)
    assert key_of(again, inputs) == key_of(fd, inputs)


def test_another_definition_has_another_key():
    fd, inputs = softmax()
    with FusionDefinition() as other:
        x = other.define_tensor([-1, -1], contiguity=True)
        other.add_output(other.ops.neg(x))
    assert key_of(other, inputs) != key_of(fd, inputs)


def test_options_that_change_kernels_change_the_key(monkeypatch):
    fd, inputs = softmax()
    before = key_of(fd, inputs)
    monkeypatch.setenv("TRITONFUSER_FMA", "0")
    options.refresh()
    assert key_of(fd, inputs) != before


@pytest.mark.parametrize("name", keys.StoreKey._fields)
def test_each_part_of_the_key_is_in_the_name(name):
    fd, inputs = softmax()
    key = key_of(fd, inputs)
    assert key._replace(**{name: "other"}).name != key.name
    assert all(isinstance(part, str) for part in key)


# --- several processes ---------------------------------------------------------------------------


def _write(folder, key, data, number):
    os.environ["TRITONFUSER_CACHE_DIR"] = folder
    options.refresh()
    schedule = store.Schedule.from_dict(data)
    for _ in range(50):
        store.save(key, Stored(schedule, float(number), 10.0, "a GPU"))


def test_two_processes_write_and_a_third_reads(tmp_path):
    fd, inputs = softmax()
    schedule, key = other_schedule(fd, inputs), key_of(fd, inputs)
    context = multiprocessing.get_context("fork")
    writers = [
        context.Process(target=_write, args=(os.fspath(tmp_path), key, schedule.to_dict(), n))
        for n in (1, 2)
    ]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        found = store.load(key)
        if found is None:
            assert not seen, "what was there has gone"
        else:
            seen.add(found.seconds)
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert seen and seen <= {1.0, 2.0} and store.load(key).schedule == schedule
    assert [*store.folder().iterdir()] == [store.path_of(key)], "nothing is left of writing"


def test_where_nothing_can_be_written_that_is_an_error(tmp_path, monkeypatch):
    fd, inputs = softmax()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRITONFUSER_CACHE_DIR", os.fspath(tmp_path / "file"))
    options.refresh()
    with pytest.raises(OSError):
        stored(fd, inputs)
    assert fd.explain(inputs).origin == ""


UNREADABLE = {
    "too long a name": lambda folder: "a" * 300,
    "a file": lambda folder: (folder / "file").touch() or "file",
    "a loop": lambda folder: (folder / "loop").symlink_to("loop") or "loop",
}


@pytest.mark.parametrize("make", UNREADABLE.values(), ids=UNREADABLE)
def test_a_folder_that_cannot_be_looked_into_is_empty(make, tmp_path, monkeypatch):
    fd, inputs = softmax()
    monkeypatch.setenv("TRITONFUSER_CACHE_DIR", os.fspath(tmp_path / make(tmp_path)))
    options.refresh()
    check_unreadable(fd, inputs)


def test_a_folder_that_belongs_to_somebody_else_is_empty(monkeypatch):
    """As the home of another user is; whose files a superuser reads nevertheless."""
    fd, inputs = softmax()
    stored(fd, inputs)
    told = os.fspath(store.folder())

    def refusing(call):
        def refused(path, *given, **options):
            if isinstance(path, str | os.PathLike) and os.fspath(path).startswith(told):
                raise PermissionError(13, "Permission denied", path)
            return call(path, *given, **options)

        return refused

    for name in ("stat", "scandir", "open", "listdir"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name)))
    check_unreadable(fd, inputs)


def check_unreadable(fd, inputs):
    (out,) = fd.run(inputs)
    torch.testing.assert_close(out, torch.softmax(inputs[0], 1))
    assert store.is_empty() and [*store.entries()] == []
    with pytest.raises(OSError):
        stored(fd, inputs)
