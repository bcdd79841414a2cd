"""The live page: seconds to list 50 stores of 102,400 trials, and to follow one of them."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.report import BLOCK, make_store
from lidp.serve import pages
from lidp.serve.audits import Audits
from lidp.store import Store

STORES, TRIALS, CANARIES, NEW = 50, 25 * BLOCK, 4, 50


def seconds(work: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Print the seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_store(folder / "0.db", TRIALS + BLOCK, canaries=CANARIES)
        for number in range(1, STORES):
            shutil.copyfile(folder / "0.db", folder / f"{number}.db")
        audits = Audits([folder])
        first = seconds(lambda: pages.list_page(audits.catalogue(), []))
        print(f"list of {STORES} stores of {TRIALS + BLOCK:,} trials: {first:.2f} s at first", end="")
        print(f", {seconds(lambda: pages.list_page(audits._scan(), [])):.3f} s again")
        follow(folder / "followed.db")


def follow(path: Path) -> None:
    """Print how long it takes to read a store, and then to read a few new trials and fill the page."""
    make_store(path.with_name("whole.db"), TRIALS + BLOCK, canaries=CANARIES)
    with Store.read(path.with_name("whole.db")) as whole:
        configuration, late = whole.configuration, whole.trials(TRIALS)
        with Store.create(path, configuration) as store:
            for start in range(0, TRIALS, BLOCK):
                store.keep_trials(whole.trials(start, start + BLOCK - 1))
            audits = Audits([path])
            (entry,) = audits.catalogue().entries
            snapshots = [audits.look(entry)]

            def read_all() -> None:
                while snapshots[-1].reading:
                    snapshots.append(audits.look(entry))

            print(f"following one: {seconds(read_all):.1f} s to read {TRIALS:,} trials", end="")
            times = []
            for start in range(0, 10 * NEW, NEW):
                store.keep_trials(late[start : start + NEW])
                time.sleep(0.6)  # a store is read at most twice per second
                times.append(seconds(lambda: pages.audit_parts(audits.look(entry), None)))
            print(f", then {1000 * sorted(times)[5]:.0f} ms per update with {NEW} new ones (median of 10)")
