"""Run simulated experiments: cells in worker processes, each kept in the store as soon as it is finished."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field

from lidp._runtime.interrupts import Interrupts
from lidp._runtime.workers import die_with_parent, ignore_interrupts, use_one_core
from lidp.errors import AuditFailed
from lidp.reproduce.experiment import Computed, Scale, Session, Source, seed_of
from lidp.reproduce.tables import Row


@dataclass(frozen=True)
class Cell:
    """A simulation that is computed at once and kept when finished.

    Its random numbers depend on ``settings`` only: the same cell gives the same rows whenever and wherever it runs (another
    kind of processor may round differently). ``given`` are results of other cells that it uses.
    """

    settings: Row
    given: list[Row] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The cell as text, the same text for equal cells."""
        return json.dumps([self.settings, self.given], sort_keys=True)

    @property
    def seed(self) -> int:
        """The seed of its simulations."""
        return seed_of(self.settings)


@dataclass(frozen=True)
class Simulation(Source):
    """Rows of a simulated mechanism."""

    name: str
    cells: Callable[[Scale, Sequence[Row]], list[Cell]]
    """returns all cells that can be computed given the rows so far; called again until it returns nothing new"""
    run: Callable[[Cell], list[Row]]
    """computes a cell, in a worker process"""
    scales: tuple[Scale, ...] = (Scale.SMOKE, Scale.PAPER)
    code = ("streams.py", "scores.py", "reproduce/setting.py", "mechanisms/*.py", "_compiled/*.py", "stats/*.py")

    def compute(self, session: Session) -> Computed:
        finished: dict[str, list[Row]] = {}
        with Interrupts() as interrupts, _worker_pool(session.workers) as pool:
            while True:
                cells = self.cells(session.scale, [row for key in sorted(finished) for row in finished[key]])
                unread = [cell.key for cell in cells if cell.key not in finished]
                kept = {key: rows for key in unread if (rows := session.store.fact(key)) is not None}
                finished |= kept
                missing = [cell for cell in cells if cell.key not in finished]
                if not kept and (not missing or session.is_over()):
                    return Computed([row for cell in cells for row in finished.get(cell.key, [])], len(missing))
                computed = self._run_all([] if kept else missing, pool, session)
                for done, (cell, rows) in enumerate(computed, start=1 + len(cells) - len(missing)):
                    with interrupts.deferred():
                        session.store.keep_fact(cell.key, rows)
                        finished[cell.key] = rows
                    if interrupts.seen:  # also if the interrupt came in code that ignores exceptions
                        raise KeyboardInterrupt
                    session.report(self.name, done, len(cells))

    def _run_all(
        self, cells: Sequence[Cell], pool: ProcessPoolExecutor, session: Session
    ) -> Iterator[tuple[Cell, list[Row]]]:
        """Run cells until all are finished, or until the deadline and then those that have been started."""
        waiting = list(reversed(cells))
        running: dict[Future[list[Row]], Cell] = {}
        while running or waiting:
            # Enough to keep every worker busy, and few that have been started when time is up.
            while waiting and len(running) < 2 * session.workers:
                cell = waiting.pop()
                running[pool.submit(self.run, cell)] = cell
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()
            if session.is_over():
                waiting = []


@contextmanager
def _worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Return a pool whose processes are killed on an error or interrupt: unfinished cells are computed again."""
    with ProcessPoolExecutor(workers, initializer=_start_worker) as pool:
        try:
            yield pool
        except BrokenProcessPool:
            raise AuditFailed(
                "a worker process died (out of memory?); finished cells are kept: run the same command again"
            ) from None
        except BaseException:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _start_worker() -> None:
    die_with_parent()
    ignore_interrupts()
    use_one_core()
