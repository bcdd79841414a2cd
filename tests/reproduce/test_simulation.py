"""Cells are computed once, kept, and left out after the deadline."""

import os
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from lidp import AuditFailed
from lidp.reproduce.experiment import Scale, Session
from lidp.reproduce.simulation import Simulation
from lidp.store import Store

CELLS = 40
GOING = 20
"""Cells that may finish after the deadline: more than a worker has begun at any time."""


def make_cells(folder, scale):
    return [{"number": number, "folder": str(folder)} for number in range(CELLS)]


def square_when_allowed(cell):
    """Wait for a file with the number of the cell; cell 0 waits for none."""
    while cell["number"] and not (Path(cell["folder"]) / str(cell["number"])).exists():
        time.sleep(0.01)
    return [{"square": cell["number"] ** 2}]


def die(_cell):
    os._exit(1)


def test_compute_begins_no_cell_after_the_deadline_and_computes_the_rest_later(tmp_path, monkeypatch):
    now = 0.0

    def pass_the_deadline(progress):
        nonlocal now
        now = 1.0
        for number in range(1, GOING):
            (tmp_path / str(number)).touch()

    monkeypatch.setattr("lidp.reproduce.experiment.time", SimpleNamespace(monotonic=lambda: now))
    simulation = Simulation("squares", partial(make_cells, tmp_path), square_when_allowed)
    with Store.create(tmp_path / "cells.db", {}) as store:
        rows, cells_left = simulation.compute(Session(Scale.SMOKE, store, deadline=0.5, watch=pass_the_deadline))
        assert CELLS - GOING <= cells_left < CELLS
        assert rows == [{"square": number**2} for number in range(CELLS - cells_left)]
        assert simulation.compute(Session(Scale.SMOKE, store, deadline=0.5)) == (rows, cells_left)
        for number in range(GOING, CELLS):
            (tmp_path / str(number)).touch()
        reports = []
        whole, none_left = simulation.compute(Session(Scale.SMOKE, store, workers=2, watch=reports.append))
    assert none_left == 0
    assert whole == [{"square": number**2} for number in range(CELLS)]
    assert [report.done for report in reports] == list(range(CELLS - cells_left + 1, CELLS + 1))


def test_compute_reports_a_worker_that_died(tmp_path):
    simulation = Simulation("dead", partial(make_cells, tmp_path), die)
    with Store.create(tmp_path / "cells.db", {}) as store, pytest.raises(AuditFailed, match="a worker process died"):
        simulation.compute(Session(Scale.SMOKE, store))
