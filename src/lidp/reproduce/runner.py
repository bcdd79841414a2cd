"""Running experiments: cells in worker processes, each kept when it is done; then table, figures and summary."""

from __future__ import annotations

import csv
import json
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import lidp
from lidp import checks
from lidp.errors import InvalidArgument
from lidp.reproduce.catalogue import EXPERIMENTS
from lidp.reproduce.experiment import Cell, Experiment, Finding, Row, Scale

_CELLS = "cells.jsonl"


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

    def holds(self, finding: Finding) -> bool | None:
        """Whether a finding agrees with what was expected; None if nothing was, or if the scale is too small to judge."""
        return finding.holds if self.scale is Scale.PAPER else None

    @property
    def summary(self) -> Row:
        """What summary.json holds."""
        return {
            "experiment": self.experiment,
            "about": EXPERIMENTS[self.experiment].about,
            "scale": str(self.scale),
            "command": f"lidp reproduce {self.experiment} --scale {self.scale}",
            "versions": {"lidp": lidp.__version__, "python": platform.python_version()},
            "findings": [{**asdict(finding), "holds": self.holds(finding)} for finding in self.findings],
        }


def reproduce(
    name: str,
    *,
    scale: Scale | str = Scale.SMOKE,
    out: str | Path = "reproduction",
    workers: int = 1,
    watch: Callable[[Progress], None] | None = None,
) -> Reproduction:
    """Run an experiment and write ``OUT/NAME/``: NAME.csv, NAME.png, NAME.svg and summary.json.

    Finished cells are kept in ``cells.jsonl`` there; the same call after an interrupt goes on where it stopped. The result does
    not depend on the number of workers.
    """
    experiment = find(name)
    try:
        scale = Scale(scale)
    except ValueError:
        raise InvalidArgument(f"scale must be smoke or paper, got {scale!r}") from None
    workers = checks.count(workers=workers)
    _need_matplotlib()
    source = find(experiment.source)
    folder = _folder(Path(out) / experiment.name)
    kept = _Kept(_folder(Path(out) / source.name) / _CELLS, source.name, scale)
    rows = _compute(source, scale, kept, workers, watch)
    table = experiment.table(rows)
    findings = tuple(experiment.findings(table))
    _write_table(folder / f"{experiment.name}.csv", table)
    _draw(experiment, table, folder)
    found = Reproduction(experiment.name, scale, folder, findings)
    text = json.dumps(found.summary, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "summary.json").write_text(text + "\n", encoding="utf-8")
    return found


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
        probe = path / ".probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InvalidArgument(f"{path}: cannot be written to: {error.strerror}") from None
    return path


class _Kept:
    """Finished cells in a file, a line each, in the order in which they were finished."""

    def __init__(self, path: Path, experiment: str, scale: Scale) -> None:
        self.path = path
        self.rows: dict[str, list[Row]] = {}
        header = {"experiment": experiment, "scale": str(scale), "cells": 1}
        if not path.exists():
            path.write_text(json.dumps(header) + "\n", encoding="utf-8")
            return
        whole, _, _torn = path.read_text(encoding="utf-8").rpartition("\n")
        try:
            first, *lines = [json.loads(line) for line in whole.splitlines()]
            self.rows = {line["cell"]: line["rows"] for line in lines}
        except (ValueError, KeyError, TypeError):
            raise InvalidArgument(f"{path} cannot be read; delete it, or choose another folder") from None
        if first != header:
            raise InvalidArgument(f"{path} has other cells than these ({first}); choose another folder, or delete it")
        path.write_text(whole + "\n", encoding="utf-8")  # without a line that a kill cut short

    def add(self, cell: Cell, rows: list[Row]) -> None:
        self.rows[cell.key] = rows
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"cell": cell.key, "rows": rows}) + "\n")


def _compute(
    experiment: Experiment, scale: Scale, kept: _Kept, workers: int, watch: Callable[[Progress], None] | None
) -> list[Row]:
    """Rows of all cells, in the order of the cells."""
    start = time.monotonic()
    with ProcessPoolExecutor(workers) as pool:
        while True:
            done = [row for key in sorted(kept.rows) for row in kept.rows[key]]
            cells = experiment.cells(scale, done)
            missing = [cell for cell in cells if cell.key not in kept.rows]
            if not missing:
                return [row for cell in cells for row in kept.rows[cell.key]]
            try:
                for left in _run(experiment.name, missing, kept, pool):
                    if watch is not None:
                        watch(Progress(experiment.name, len(cells) - left, len(cells), time.monotonic() - start))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _run(name: str, cells: Sequence[Cell], kept: _Kept, pool: ProcessPoolExecutor) -> Iterator[int]:
    """Compute these cells; yields how many are left."""
    running: dict[Future[list[Row]], Cell] = {pool.submit(_run_cell, name, cell): cell for cell in cells}
    while running:
        yield len(running)
        for future in wait(running, timeout=1.0, return_when=FIRST_COMPLETED).done:
            kept.add(running.pop(future), future.result())


def _run_cell(name: str, cell: Cell) -> list[Row]:
    return find(name).run(cell)


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
