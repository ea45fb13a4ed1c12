"""``PrepareQueue``: schedules that threads prepare, given back in the order they were asked for."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait

from ...heuristics.schedule import Schedule
from .interfaces import Prepare, PreparedSchedule


class PrepareQueue:
    """Schedules that are being prepared.

    Parameters
    ----------
    prepare : callable
        Compiles a schedule; text where it cannot run.
    pool : Executor
        The threads.
    """

    def __init__(self, prepare: Prepare, pool: Executor) -> None:
        self._prepare, self._pool = prepare, pool
        self._asked: dict[Future[PreparedSchedule | str], Schedule] = {}

    def __len__(self) -> int:
        return len(self._asked)

    def ask(self, schedule: Schedule) -> None:
        """Prepare a schedule once a thread is free."""
        self._asked[self._pool.submit(self._prepare, schedule)] = schedule

    def finished(self, patience: float) -> list[tuple[Schedule, PreparedSchedule | str]]:
        """What was prepared, after a wait of at most ``patience`` seconds for the first one."""
        done, _ = wait(self._asked, patience, FIRST_COMPLETED)
        finished = [future for future in self._asked if future in done]
        return [(self._asked.pop(future), future.result()) for future in finished]

    def cancelled(self) -> list[Schedule]:
        """Cancel what no thread has begun."""
        cancelled = [future for future in self._asked if future.cancel()]
        return [self._asked.pop(future) for future in cancelled]
