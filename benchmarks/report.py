"""The report of a large store: 65,536 trials of 64 coin flips. Seconds and size, and the whole command."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import lidp
from lidp.designs.trial_record import TrialRecord
from lidp.engine.plan import AuditPlan
from lidp.report.page import render_report, write_page
from lidp.store import Store
from lidp.streams import draw_coins

TRIALS, CANARIES, BLOCK = 65_536, 64, 4096


class Numbers:
    """Canaries that nobody draws."""

    def draw(self, rng, size):
        return rng.standard_normal(size)


def make_store(path: Path, trials: int = TRIALS, *, canaries: int = CANARIES) -> None:
    """A store as an audit of a Gaussian mechanism would leave it, made without running one."""
    plan = AuditPlan.make(
        target=lidp.Target(sum, Numbers(), max, name="simulated"),
        claim=lidp.Claim(3.0, 1e-5),
        design=lidp.CoinFlip(canaries),
        trials=trials,
        method=None,
        failure_probability=0.05,
        seed=0,
        stop_when="never",
        target_spec=None,
    )
    rng = np.random.default_rng(0)
    with Store.create(path, plan.configuration) as store:
        for start in range(0, trials, BLOCK):
            coins = np.array([draw_coins(0, trial=start + at, size=canaries) for at in range(BLOCK)], dtype=float)
            scores = coins + 2.15 * rng.standard_normal(coins.shape) + 0.3 * rng.standard_normal((BLOCK, 1))
            seconds, accuracy = 0.01 * rng.random(BLOCK), 0.8 + 0.01 * rng.random(BLOCK)
            store.keep_trials(
                TrialRecord(
                    start + at,
                    {"scores": scores[at], "coins": coins[at]},
                    seconds=float(seconds[at]),
                    metadata={"scores_accuracy": float(accuracy[at])},
                )
                for at in range(BLOCK)
            )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, page = Path(folder) / "a.db", Path(folder) / "a.html"
        make_store(store)
        lidp.result_of(store)  # compiles
        start = time.perf_counter()
        result = lidp.result_of(store)
        loaded = time.perf_counter()
        write_page(render_report(result), page)
        done = time.perf_counter()
        print(
            f"report of {TRIALS:,} trials x {CANARIES} coins: page {done - loaded:.2f} s (target 3 s), "
            f"with reading the store and the bound {done - start:.2f} s, {page.stat().st_size / 1e6:.2f} MB (target 3 MB)"
        )
        start = time.perf_counter()
        command = [sys.executable, "-m", "lidp", "report", str(store), "-o", str(page)]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603  # our own command
        print(f"the whole command, imports included: {time.perf_counter() - start:.2f} s")
