"""``lidp bound`` on the store of an audit."""

import json

import pytest

from lidp import AuditInterrupted, Claim, CoinFlip, EpsilonBound, audit
from tests.cli.invoke import lidp
from tests.pages import ROOT
from tests.sample_targets import LEAKY, SLOW, InterruptedAfter


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_fixed_size_methods_do_not_bound_a_store_that_stopped_early(capsys, tmp_path):
    store = tmp_path / "a.db"
    options = {"claim": Claim(1.0, 1e-5), "design": CoinFlip(8), "trials": 60, "store": store}
    assert audit(LEAKY, **options).bound.trials < 60
    code, _, err = lidp(capsys, "bound", store, "--method", "one-run")
    assert code == 2
    assert "stopped when the claim was refuted" in err
    code, _, err = lidp(capsys, "bound", store, "--method", "one-run", "--claim", 0.1)
    assert code == 2
    assert "stopped when the claim was refuted" in err
    code, out, _ = lidp(capsys, "bound", store, "--method", "all", "--json")
    assert code == 0
    assert set(json.loads(out)["bounds"]) == {"coin-wager"}
    assert not json.loads(out)["bounds"]["coin-wager"]["provisional"]
    assert "stopped when the claim was refuted" in json.loads(out)["not_applicable"]["one-run"]
    _, out, _ = lidp(capsys, "bound", store, "--method", "all")
    assert "these trials were stopped when the claim was refuted" in out


def test_bounds_of_an_unfinished_store_are_marked_as_provisional(capsys, tmp_path):
    store = tmp_path / "a.db"

    def interrupt(progress):
        if progress.done >= 5:
            raise KeyboardInterrupt

    with pytest.raises(AuditInterrupted):
        audit(SLOW, claim=Claim(9.0, 1e-5), design=CoinFlip(8), trials=2000, store=store, watch=interrupt)
    for method, provisional in (("one-run", True), ("coin-wager", False)):
        code, out, _ = lidp(capsys, "bound", store, "--method", method, "--json")
        assert code == 0
        assert json.loads(out)["provisional"] is provisional
        assert EpsilonBound.from_json(out).method == method
    _, out, _ = lidp(capsys, "bound", store, "--method", "one-run")
    assert "provisional: the audit is not finished" in out
    _, out, _ = lidp(capsys, "bound", store, "--method", "all", "--json")
    marks = {name: found["provisional"] for name, found in json.loads(out)["bounds"].items()}
    assert marks == {"coin-wager": False, "one-run": True, "one-run-fdp": True}
    _, out, _ = lidp(capsys, "bound", store, "--method", "all")
    assert "finite-sample, provisional" in out
    assert "provisional: the audit is not finished" in out


def test_an_unfinished_store_whose_claim_is_refuted_so_far_is_provisional_if_it_does_not_stop(capsys, tmp_path):
    store = tmp_path / "a.db"
    options = {"design": CoinFlip(8), "trials": 60, "stop_when": "never", "store": store}
    with pytest.raises(AuditInterrupted) as interrupted:
        audit(LEAKY, claim=Claim(0.1, 1e-5), executor=InterruptedAfter(40), **options)
    assert interrupted.value.result.verdict == "refuted"
    code, out, _ = lidp(capsys, "bound", store, "--method", "one-run", "--json")
    assert code == 0
    assert json.loads(out)["provisional"]


def test_bounding_a_store_uses_its_own_method_and_failure_probability(capsys, tmp_path):
    store = tmp_path / "a.db"
    lidp(
        capsys, "audit", "tests.sample_targets:LEAKY", "--epsilon", 1, "--delta", "1e-5", "--canaries", 8, "--trials", 50,
        "--store", store, "--method", "one-run", "--failure-probability", "0.001",
    )  # fmt: skip
    found = json.loads(lidp(capsys, "bound", store, "--json")[1])
    assert (found["method"], found["failure_probability"]) == ("one-run", 0.001)


def test_independent_canaries_are_no_hypothesis_of_an_audit_that_did_not_state_it(capsys, tmp_path):
    """The audit refuses it where the canaries of its target interfere; the store does not know."""
    claim = ["audit", "gaussian", "--gaussian-mu", 1, "--trials", 4, "--stop-when", "never", "--quiet"]
    for canaries, expected in ((8, 2), (1, 0)):
        store = tmp_path / f"{canaries}.db"
        assert lidp(capsys, *claim, "--canaries", canaries, "--store", store)[0] == 0
        code, out, err = lidp(capsys, "bound", store, "--method", "signed-ranks")
        assert code == expected
        assert ("an audit states this hypothesis before it runs" in err) is (expected == 2)
        assert ("signed-ranks" in out) is (expected == 0)


def test_independent_canaries_that_the_audit_stated_are_bounded_again(capsys, tmp_path):
    store = tmp_path / "a.db"
    options = {"claim": Claim.gaussian(mu=9.0), "design": CoinFlip(8), "trials": 4, "store": store, "stop_when": "never"}
    audit(SLOW, method="signed-ranks", **options)
    code, out, _ = lidp(capsys, "bound", store, "--method", "signed-ranks", "--json")
    assert code == 0
    assert json.loads(out)["method"] == "signed-ranks"
