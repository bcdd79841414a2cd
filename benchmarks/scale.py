"""How an audit grows with its trials: 10,000, 100,000 and 1,000,000 of them in one store, with a mechanism that costs nothing.

``python -m benchmarks scale`` keeps the stores and the measurements in ``build/scale`` until it has printed its table, and goes on
there if it was interrupted. An exponent of 1 means the same seconds or bytes per trial at every size; 0 means the same in all.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import shutil
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import lidp
from lidp import Claim, CoinFlip, Target
from lidp.engine.audit import result_of
from lidp.engine.follower import Follower

SIZES = (10_000, 100_000, 1_000_000)
CANARIES = 8
FOLDER = Path("build", "scale")
_ROWS = {
    "run": ("trials of a new audit, stored", "µs"),
    "memory": ("memory of the driver, growth", "B"),
    "resume": ("resume: read, check, bet again", "µs"),
    "follow": ("live bound, as lidp serve reads it", "µs"),
    "update": ("one more look at the live bound", "ms"),
    "report": ("report: bound and page", "µs"),
    "page": ("size of the page", "B"),
    "json": ("--json", "µs"),
    "json_bytes": ("size of --json", "B"),
    "store": ("size of the store", "B"),
}


class Zeros:
    """Canaries that cost nothing."""

    def draw(self, rng, size):
        return np.zeros(size)


def free(dataset, rng):
    return rng.standard_normal()


def score(output, canary):
    return output


def audit(store: Path | None, trials: int) -> Any:
    """Run an audit, or resume it."""
    target = Target(free, Zeros(), score)
    design = CoinFlip(CANARIES)
    return lidp.audit(target, claim=Claim(9.0), design=design, trials=trials, stop_when="never", store=store, watch=None)


def memory() -> float:
    """Private memory of this process, in bytes: without pages of files, which the system may drop at any time."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """The processor seconds of some work, which other work on the machine does not change, and what it returned."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def run_trials(folder: Path, trials: int) -> dict[str, float]:
    """Measure the trials of a new audit; of those that an interrupted benchmark left."""
    from lidp.store import Store

    audit(None, 256)  # compiles
    path = folder / f"{trials}.db"
    done = 0
    if path.exists():
        with Store.read(path) as store:
            done = store.count_trials()
    before = memory()
    seconds, _ = timed(lambda: audit(path, trials))
    measured = {"run": seconds / max(1, trials - done), "memory": (memory() - before) / trials}
    return {"resumed": float(done)} | measured | {"store": path.stat().st_size / trials}


def read_trials(folder: Path, trials: int) -> dict[str, float]:
    """Measure all that reads the store of a finished audit."""
    from lidp.report.page import render_report

    audit(None, 256)
    path = folder / f"{trials}.db"
    resume, _ = timed(lambda: audit(path, trials))
    follower = Follower(path)
    follow, _ = timed(lambda: [None for _ in iter(follower.update, [])])
    update, _ = timed(lambda: (follower.update(), follower.ledger.bound_so_far()))
    read, result = timed(lambda: result_of(path))
    report, page = timed(lambda: render_report(result))
    json_seconds, text = timed(result.to_json)
    per_trial = {"resume": resume, "follow": follow, "report": read + report, "page": len(page), "json": json_seconds}
    per_trial["json_bytes"] = len(text)
    return {name: value / trials for name, value in per_trial.items()} | {"update": update}


def measure(folder: Path, trials: int) -> dict[str, float]:
    """All measurements of one size; each part in a process of its own, because of its memory. Kept in a file."""
    kept = folder / f"{trials}.json"
    measured: dict[str, float] = json.loads(kept.read_text()) if kept.exists() else {}
    for part, needed in ((run_trials, "run"), (read_trials, "resume")):
        if needed not in measured:
            with multiprocessing.get_context("spawn").Pool(1) as process:
                measured |= process.apply(part, (folder, trials))
            kept.write_text(json.dumps(measured))
    return measured


def exponents(values: list[float], *, per_trial: bool) -> str:
    """Growth of the whole from each size to the next, as exponents of the number of trials."""
    steps = [math.log10(max(after, 1e-12) / max(before, 1e-12)) + per_trial for before, after in pairwise(values)]
    return ", ".join(f"{step:.2f}" for step in steps)


def table(measured: list[dict[str, float]]) -> str:
    """The measurements as a Markdown table."""
    head = ["", *(f"{size:,}" for size in SIZES[: len(measured)]), "exponents"]
    lines = [head, ["---", *("---:" for _ in head[1:])]]
    for name, (label, unit) in _ROWS.items():
        values = [one[name] for one in measured]
        scale = {"µs": 1e6, "ms": 1e3, "B": 1.0}[unit]
        unit_text = unit if name == "update" else f"{unit} per trial"
        lines.append(
            [
                f"{label}, {unit_text}",
                *(f"{scale * value:,.3g}" for value in values),
                exponents(values, per_trial=name != "update"),
            ]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(folder: Path = FOLDER) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    measured = []
    for size in SIZES:
        measured.append(measure(folder, size))
        print(f"{size:,} trials: done", file=sys.stderr, flush=True)
    print(f"one store, K = {CANARIES}, one process; seconds are processor seconds\n")
    print(table(measured))
    shutil.rmtree(folder)
