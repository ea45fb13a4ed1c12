"""What choosing params is measured on, and how it is counted."""

from __future__ import annotations

from functools import lru_cache

from bench import choosing
from bench.choosing import Chosen, calls_of, forget, kernels, lowered, measure, rows_of
from bench.random_graphs.growing import entry
from tritonfuser.heuristics.search.choice import chosen


def test_kernels_of_definitions_are_there_once():
    graph = entry(0, 2)
    once = kernels([graph])
    assert once and kernels([graph, graph]) == once
    assert len(once) <= len(lowered(graph).segments)


def test_no_definition_that_is_held_out_is_read():
    assert not any(each.held_out for each in choosing.definitions(3))


def test_nothing_is_kept_from_before():
    given = kernels([entry(0, 2)])
    measure(given, 1)  # what modules read once
    first, second = measure(given, 1), measure(given, 1)
    assert [each.calls for each in first] == [each.calls for each in second]
    assert all(each.seconds > 0 and each.calls > 10 for each in first)
    chosen(*given[0])
    forget()
    assert chosen.cache_info().currsize == 0


def test_calls_are_counted_with_those_that_they_make():
    @lru_cache
    def inner():
        return len("abc")

    assert calls_of(lambda: [inner(), inner()]) == calls_of(lambda: [inner(), inner()]) + 2


def test_rows_are_the_schedulers_and_all():
    found = [Chosen("scan", 2e-3, 10), Chosen("scan", 4e-3, 20), Chosen("reduction", 1e-3, 3)]
    rows = {row["scheduler"]: row for row in rows_of(found)}
    assert set(rows) == {"scan", "reduction", "all"}
    assert (rows["scan"]["mean ms"], rows["scan"]["calls"]) == ("3.00", "15")
    assert (rows["all"]["kernels"], rows["all"]["longest ms"]) == ("3", "4.00")
