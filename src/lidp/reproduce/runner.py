"""Run an experiment: compute its sources, then write its table, figure and summary."""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import lidp
from lidp import checks
from lidp._runtime.versions import versions
from lidp.errors import AuditFailed, InvalidArgument
from lidp.report.plots import new_figure
from lidp.reproduce.catalogue import EXPERIMENTS
from lidp.reproduce.experiment import Finding, Progress, Scale, Session, Source
from lidp.reproduce.figures import write_figure
from lidp.reproduce.tables import Row, write_table
from lidp.store import Store


@dataclass(frozen=True)
class Reproduction:
    """The outcome of an experiment, and the folder that it was written to."""

    experiment: str
    scale: Scale
    folder: Path
    findings: tuple[Finding, ...]
    cells_left: int = 0
    """cells that the deadline left out"""

    def holds(self, finding: Finding) -> bool | None:
        """Return whether a finding agrees with the paper; None if nothing is expected, or at scale smoke, which is too small."""
        return None if self.scale is Scale.SMOKE else finding.holds

    @property
    def summary(self) -> Row:
        """The content of summary.json."""
        return {
            "experiment": self.experiment,
            "about": EXPERIMENTS[self.experiment].about,
            "scale": str(self.scale),
            "command": f"lidp reproduce {self.experiment} --scale {self.scale}",
            "versions": versions(),
            "source": digest_code(EXPERIMENTS[self.experiment].sources),
            "cells_left": self.cells_left,
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
    """Run an experiment and write ``OUT/NAME/``: NAME.csv, NAME.svg and summary.json.

    Finished cells are kept in stores in ``OUT/SOURCE/``; after an interrupt, the same call resumes. The result does not depend on
    the number of workers. After ``minutes``, if given, no further cell is started, running trials of trained models are stopped,
    and the files show what is finished; the same call continues from there.
    """
    if name not in EXPERIMENTS:
        raise InvalidArgument(f"there is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    experiment = EXPERIMENTS[name]
    scale = Scale(checks.one_of(list(Scale), scale=scale))
    if scale not in experiment.scales:
        raise InvalidArgument(f"{name} has no scale {scale}; it has {' and '.join(experiment.scales)}")
    workers = checks.count(workers=workers)
    deadline = None if minutes is None else time.monotonic() + 60 * checks.positive(minutes=minutes)
    new_figure()  # without matplotlib, fail before anything is computed
    folder = _make_folder(Path(out) / experiment.name)
    rows: list[Row] = []
    cells_left = 0
    for source in experiment.sources:
        with _opened_store(_make_folder(Path(out) / source.name), source, scale) as store:
            computed, left = source.compute(Session(scale, store, workers, deadline, watch))
        rows += computed
        cells_left += left
    table = experiment.table(rows)
    if not table:
        raise AuditFailed(f"too little time for any result; {cells_left:,} cells are left: run the same command again")
    result = Reproduction(experiment.name, scale, folder, tuple(experiment.findings(table)), cells_left)
    write_table(folder / f"{name}.csv", table)
    write_figure(folder / f"{name}.svg", name, table)
    summary = json.dumps(result.summary, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "summary.json").write_text(summary + "\n", encoding="utf-8")
    return result


def _make_folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise InvalidArgument(f"{path}: cannot be written to: {error.strerror}") from None
    return path


@contextmanager
def _opened_store(folder: Path, source: Source, scale: Scale) -> Iterator[Store]:
    """Open the store of a source's cells, or create it. Its lock keeps other runs out of the folder.

    Raises:
        InvalidArgument: if its cells were computed by other code, by another version, or at another scale.
    """
    path = folder / "cells.db"
    made_for = {"experiment": source.name, "scale": str(scale), "lidp": lidp.__version__, "code": digest_code([source])}
    with Store.open(path) if path.exists() else Store.create(path, made_for) as store:
        changed = [name for name, value in made_for.items() if store.configuration.get(name) != value]
        if changed:
            raise InvalidArgument(
                f"{path} holds cells of another {' and '.join(changed)}; choose another folder, or delete {folder} to start anew"
            )
        yield store


def digest_code(sources: Sequence[Source]) -> str:
    """Return a digest of the files whose code determines the cells of these sources; comments and docstrings count, too."""
    root = Path(lidp.__file__).parent
    patterns = dict.fromkeys(pattern for source in sources for pattern in source.code)
    paths = [path for pattern in patterns for path in sorted(root.glob(pattern))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]
