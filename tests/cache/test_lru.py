"""The bounded mapping: order of eviction, one maker a key, errors."""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.interrupting import interrupted
from tritonfuser.cache.lru import LRU


def test_the_least_recently_used_goes():
    cache = LRU(2)
    cache.get_or_make("a", lambda: 1)
    cache.get_or_make("b", lambda: 2)
    assert cache.get("a") == 1
    cache.get_or_make("c", lambda: 3)
    assert "b" not in cache
    assert "a" in cache
    assert "c" in cache
    assert len(cache) == 2


def test_a_hit_by_get_or_make_counts_as_use():
    cache = LRU(2)
    for key in "ab":
        cache.get_or_make(key, lambda: 1)
    cache.get_or_make("a", lambda: pytest.fail("it is there"))
    cache.get_or_make("c", lambda: 1)
    assert "a" in cache
    assert "b" not in cache


def test_the_newest_entry_is_the_one_used_last():
    cache = LRU(3)
    assert cache.newest() is None
    cache.get_or_make("a", lambda: 1)
    cache.get_or_make("b", lambda: 2)
    cache.get("a")
    assert cache.newest() == 1
    cache.clear()
    assert cache.newest() is None
    assert len(cache) == 0


def test_missing():
    assert LRU(1).get("a") is None


def test_a_cache_holds_something():
    with pytest.raises(ValueError, match="at least one"):
        LRU(0)


def test_an_error_is_not_kept():
    cache = LRU(2)

    def fails():
        raise KeyError("once")

    with pytest.raises(KeyError, match="once"):
        cache.get_or_make("a", fails)
    assert "a" not in cache
    assert cache.get_or_make("a", lambda: 1) == 1


def test_threads_make_an_entry_once():
    cache = LRU(4)
    made = []
    start = threading.Barrier(16)

    def make():
        time.sleep(0.02)
        made.append(threading.get_ident())
        return object()

    def ask():
        start.wait()
        return cache.get_or_make("a", make)

    with ThreadPoolExecutor(16) as pool:
        found = [task.result() for task in [pool.submit(ask) for _ in range(16)]]
    assert len(made) == 1
    assert len(set(map(id, found))) == 1


def test_threads_share_an_error_and_the_next_tries_again():
    cache = LRU(4)
    calls = []
    start = threading.Barrier(8)

    def make():
        calls.append(1)
        time.sleep(0.05)
        raise ValueError("no")

    def ask():
        start.wait()
        with pytest.raises(ValueError, match="no"):
            cache.get_or_make("a", make)

    with ThreadPoolExecutor(8) as pool:
        for task in [pool.submit(ask) for _ in range(8)]:
            task.result()
    assert 1 <= len(calls) < 8
    assert cache.get_or_make("a", lambda: 1) == 1


def test_what_interrupts_a_thread_is_its_own():
    cache = LRU(4)
    waiting = threading.Event()
    calls = []

    def make():
        calls.append(1)
        if len(calls) > 1:
            return "made"
        waiting.wait()
        time.sleep(0.05)
        raise KeyboardInterrupt

    def ask():
        waiting.set()
        return cache.get_or_make("a", make)

    with ThreadPoolExecutor(1) as pool:
        interrupted = pool.submit(cache.get_or_make, "a", make)
        while not calls:
            time.sleep(0.001)
        assert ask() == "made"
    assert isinstance(interrupted.exception(), KeyboardInterrupt)
    assert len(calls) == 2


def test_an_interrupted_thread_keeps_nobody_waiting():
    """Wherever in making an entry it is interrupted, another thread makes it."""
    pool = ThreadPoolExecutor(1)
    for number in itertools.count():
        cache = LRU(4)
        if not interrupted(lambda c=cache: c.get_or_make("a", lambda: 1), "cache/lru.py", number):
            break
        assert pool.submit(cache.get_or_make, "a", lambda: 1).result(timeout=10) == 1, number
    assert number > 10


def test_different_keys_are_made_at_once():
    """A slow compilation does not keep others waiting."""
    cache = LRU(4)
    both = threading.Barrier(2, timeout=10)
    with ThreadPoolExecutor(2) as pool:
        tasks = [pool.submit(cache.get_or_make, key, both.wait) for key in "ab"]
        assert sorted(task.result() for task in tasks) == [0, 1]


def test_threads_and_evictions():
    cache = LRU(3)

    def ask(seed):
        for step in range(300):
            key = (seed * 7 + step) % 9
            assert cache.get_or_make(key, lambda key=key: key + 1) == key + 1
            found = cache.get(key)
            assert found in (None, key + 1)
            cache.newest()

    with ThreadPoolExecutor(8) as pool:
        for task in [pool.submit(ask, seed) for seed in range(8)]:
            task.result()
    assert len(cache) <= 3


def test_values_in_the_order_of_use():
    cache = LRU(3)
    for number in (1, 2, 3):
        cache.get_or_make(number, lambda number=number: -number)
    cache.get(1)
    assert cache.values() == [-2, -3, -1]
