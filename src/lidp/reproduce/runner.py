"""Running experiments: cells in worker processes, each kept when it is done; then table, figures and summary."""

from __future__ import annotations

import csv
import json
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from lidp import checks
from lidp._runtime.interrupts import Interrupts
from lidp._runtime.workers import die_with_parent, ignore_interrupts, use_one_core
from lidp.errors import AuditFailed, InvalidArgument
from lidp.reproduce.catalogue import EXPERIMENTS, SOURCES
from lidp.reproduce.experiment import Cell, Experiment, Finding, Row, Scale, Source
from lidp.reproduce.kept_cells import KeptCells, source_digest

_CELLS = "cells.jsonl"
_PACKAGES = ("lidp", "numpy", "scipy", "numba")


@dataclass(frozen=True)
class Progress:
    """How far an experiment is: for whoever watches."""

    name: str
    done: int
    planned: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.name}: {self.done:,}/{self.planned:,} cells, {self.seconds:,.0f} s"


@dataclass(frozen=True)
class Reproduction:
    """What came of an experiment, and where it was written."""

    experiment: str
    scale: Scale
    folder: Path
    findings: tuple[Finding, ...]
    left: int = 0
    """cells that there was no time for"""

    def holds(self, finding: Finding) -> bool | None:
        """Whether a finding agrees with what was expected; None if nothing was, or if the scale is too small to judge."""
        return None if self.scale is Scale.SMOKE else finding.holds

    @property
    def summary(self) -> Row:
        """What summary.json holds."""
        return {
            "experiment": self.experiment,
            "about": EXPERIMENTS[self.experiment].about,
            "scale": str(self.scale),
            "command": f"lidp reproduce {self.experiment} --scale {self.scale}",
            "versions": {"python": platform.python_version()} | {name: metadata.version(name) for name in _PACKAGES},
            "source": source_digest(EXPERIMENTS[self.experiment].sources),
            "cells_left": self.left,
            "findings": [{**asdict(finding), "holds": self.holds(finding)} for finding in self.findings],
        }


def reproduce(
    name: str,
    *,
    scale: Scale | str = Scale.SMOKE,
    out: str | Path = "reproduction",
    workers: int = 1,
    minutes: float | None = None,
    watch: Callable[[Progress], None] | None = None,
) -> Reproduction:
    """Run an experiment and write ``OUT/NAME/``: NAME.csv, NAME.png, NAME.svg and summary.json.

    Finished cells are kept in ``cells.jsonl`` there; the same call after an interrupt goes on where it stopped. The result does
    not depend on the number of workers. After ``minutes``, if given, no cell is begun any more, and what is written is of those
    that are done; the same call later adds to them.
    """
    experiment = find(name)
    try:
        scale = Scale(scale)
    except ValueError:
        raise InvalidArgument(f"scale must be one of {', '.join(Scale)}, got {scale!r}") from None
    if scale not in experiment.scales:
        raise InvalidArgument(f"{name} has no scale {scale}; it has {' and '.join(experiment.scales)}")
    workers = checks.count(workers=workers)
    end = None if minutes is None else time.monotonic() + 60 * checks.positive(minutes=minutes)
    _need_matplotlib()
    folder = _folder(Path(out) / experiment.name)
    rows, left = [], 0
    for source in experiment.sources:
        kept = KeptCells(_folder(Path(out) / source.name) / _CELLS, source, scale)
        try:
            found, without = _compute(source, scale, kept, workers, end, watch)
        except BrokenProcessPool:
            raise AuditFailed(
                "a worker process died (out of memory?); what is finished is kept: run the same command again"
            ) from None
        finally:
            kept.close()
        rows += found
        left += without
    table = experiment.table(rows)
    if not table:
        raise AuditFailed(
            f"the time was too short for anything to say; {left:,} cells are left: run the same command again"
        )
    findings = tuple(experiment.findings(table))
    _write_table(folder / f"{experiment.name}.csv", table)
    _draw(experiment, table, folder)
    result = Reproduction(experiment.name, scale, folder, findings, left)
    text = json.dumps(result.summary, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "summary.json").write_text(text + "\n", encoding="utf-8")
    return result


def find(name: str) -> Experiment:
    """The experiment of a name."""
    if name not in EXPERIMENTS:
        raise InvalidArgument(f"there is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]


def _need_matplotlib() -> None:
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError:
        raise InvalidArgument("figures need matplotlib; pip install 'lidp[plot]'") from None


def _folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise InvalidArgument(f"{path}: cannot be written to: {error.strerror}") from None
    return path


def _compute(
    source: Source,
    scale: Scale,
    kept: KeptCells,
    workers: int,
    end: float | None,
    watch: Callable[[Progress], None] | None,
) -> tuple[list[Row], int]:
    """Rows of all cells, in the order of the cells, and how many cells there was no time for."""
    start = time.monotonic()
    with Interrupts() as interrupts, ProcessPoolExecutor(workers, initializer=_begin) as pool:
        while True:
            done = [row for key in sorted(kept.rows) for row in kept.rows[key]]
            cells = source.cells(scale, done)
            missing = [cell for cell in cells if cell.key not in kept.rows]
            if not missing or (end is not None and time.monotonic() > end):
                return [row for cell in cells if cell.key in kept.rows for row in kept.rows[cell.key]], len(missing)
            try:
                for left in _run(source.name, missing, kept, pool, workers, end):
                    if interrupts.seen:
                        raise KeyboardInterrupt  # it may have been swallowed: forking runs code whose errors Python ignores
                    if watch is not None:
                        watch(Progress(source.name, len(cells) - left, len(cells), time.monotonic() - start))
            except BaseException:
                for process in list((pool._processes or {}).values()):  # what is half done is done again
                    process.kill()
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _run(
    name: str, cells: Sequence[Cell], kept: KeptCells, pool: ProcessPoolExecutor, workers: int, end: float | None
) -> Iterator[int]:
    """Compute these cells as long as there is time; yields how many are left."""
    waiting = list(reversed(cells))
    running: dict[Future[list[Row]], Cell] = {}
    while running or waiting:
        while waiting and len(running) < 2 * workers:  # none of them idle, and few begun when time is up
            cell = waiting.pop()
            running[pool.submit(_run_cell, name, cell)] = cell
        yield len(running) + len(waiting)
        for future in wait(running, timeout=1.0, return_when=FIRST_COMPLETED).done:
            kept.add(running.pop(future), future.result())
        if end is not None and time.monotonic() > end:
            waiting = []


def _begin() -> None:
    die_with_parent()
    ignore_interrupts()
    use_one_core()


def _run_cell(name: str, cell: Cell) -> list[Row]:
    return SOURCES[name].run(cell)


def _write_table(path: Path, table: Sequence[Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table[0])
        writer.writerows([_short(value) for value in row.values()] for row in table)


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def _draw(experiment: Experiment, table: Sequence[Row], folder: Path) -> None:
    import matplotlib as mpl

    # The same figure, byte for byte, each time: no dates, no random names in the SVG.
    with mpl.rc_context({"svg.hashsalt": experiment.name, "svg.fonttype": "none", "font.size": 9}):
        figure = experiment.figure(table)
        figure.savefig(folder / f"{experiment.name}.png", dpi=140, metadata={"Software": None})
        figure.savefig(folder / f"{experiment.name}.svg", metadata={"Date": None})
