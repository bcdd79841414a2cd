"""Run simulated experiments: cells in worker processes, each kept in the store as soon as it is finished."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass

from lidp._runtime.interrupts import Interrupts
from lidp._runtime.workers import die_with_parent, ignore_interrupts, use_one_core
from lidp.errors import AuditFailed
from lidp.reproduce.experiment import Scale, Session, Source, key_of
from lidp.reproduce.tables import Row


@dataclass(frozen=True)
class Simulation(Source):
    """Rows of a simulated mechanism. A cell is described by its settings alone, from which it also takes its seeds.

    The same cell gives the same rows whenever and wherever it runs (another kind of processor may round differently).
    """

    name: str
    cells: Callable[[Scale], list[Row]]
    """returns the settings of all cells, in the order in which they are computed"""
    run: Callable[[Row], list[Row]]
    """computes the rows of a cell, in a worker process"""
    scales: tuple[Scale, ...] = (Scale.SMOKE, Scale.PAPER)
    code = ("streams.py", "scores.py", "reproduce/setting.py", "mechanisms/*.py", "_compiled/*.py", "stats/*.py")

    def compute(self, session: Session) -> tuple[list[Row], int]:
        cells = [(key_of(cell), cell) for cell in self.cells(session.scale)]
        finished: dict[str, list[Row]] = {key: rows for key, _ in cells if (rows := session.store.fact(key)) is not None}
        missing = {} if session.is_over() else {key: cell for key, cell in cells if key not in finished}
        with Interrupts() as interrupts, _worker_pool(session.workers) as pool:
            running = {pool.submit(self.run, cell): key for key, cell in missing.items()}
            for future in as_completed(running):
                if future.cancelled():
                    continue
                with interrupts.deferred():
                    session.store.keep_fact(running[future], future.result())
                    finished[running[future]] = future.result()
                if interrupts.seen:  # also if the interrupt came in code that ignores exceptions
                    raise KeyboardInterrupt
                session.report(self.name, sum(key in finished for key, _ in cells), len(cells))
                if session.is_over():  # cells that a worker has begun are finished
                    for other in running:
                        other.cancel()
        rows = [row for key, _ in cells for row in finished.get(key, [])]
        return rows, sum(key not in finished for key, _ in cells)


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
