"""The explanation of a leak: its counts agree with those of the bound."""

import re

import pytest

import lidp
from lidp import Claim, Verdict, audit_pair
from tests.pairs.mechanisms import one_by_one
from tests.stores import edit


def counted_runs(leak):
    return [int(number.replace(",", "")) for number in re.findall(r"of ([\d,]+) (?:runs )?on d[01]", leak)]


def wide_laplace(dataset, rng):
    """Outputs of so many parts that they are given to boosting."""
    return tuple(rng.laplace(0, 0.4, 5) + dataset)


@pytest.mark.parametrize("failing", [False, True])
@pytest.mark.parametrize("kind", ["views", "boosted"])
def test_explanation_counts_the_runs_of_the_bound(kind, failing, tmp_path):
    base = one_by_one(0.4) if kind == "views" else wide_laplace

    def mechanism(dataset, rng):
        if failing and rng.random() < 0.1:
            raise ValueError("now and then")
        return base(dataset, rng)

    store = tmp_path / "a.db"
    searched = audit_pair(mechanism, 0, 1, claim=Claim(1.0 if kind == "views" else 2.5), runs=6000, store=store)
    assert sum(counted_runs(searched.leak)) == 64 if not failing else 48 < sum(counted_runs(searched.leak)) < 64
    edit(store, "DELETE FROM facts WHERE name = 'leak_search'")  # as in stores of versions that did not search
    result = lidp.result_of(store)
    assert result.verdict is Verdict.REFUTED
    assert result.bound.trials not in (64, 128, 256, 512, 1024, 2048, 4096)  # it fell within a block
    assert sum(counted_runs(result.leak)) == result.bound.trials - result.failed_runs
    ones = int(result.scores.flips()[1][~result.scores.failed[:, 0]].sum())
    assert counted_runs(result.leak)[1] == ones
    whole = audit_pair(mechanism, 0, 1, claim=Claim(9.0), runs=1500)
    assert sum(counted_runs(whole.leak)) == 1500 - whole.failed_runs


def test_explanation_says_if_it_counts_fewer_runs(monkeypatch):
    monkeypatch.setattr("lidp.pairs.classifier._KEPT", 200)
    result = audit_pair(one_by_one(1.0), 0, 1, claim=Claim(3.0), runs=3000)
    assert sum(counted_runs(result.leak)) < 3000
    assert f"(counted in {sum(counted_runs(result.leak)):,} of the runs)" in result.leak
    assert "counted in" not in audit_pair(one_by_one(1.0), 0, 1, claim=Claim(3.0), runs=150).leak
