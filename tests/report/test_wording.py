"""Sentences that are right for every verdict and every guarantee."""

from dataclasses import replace

import pytest

from lidp import CoinFlip, GaussianDP, LeaveOneOut, Verdict, Wilson
from lidp.report.evidence import Standing, statements_of
from lidp.report.wording import design, guarantee, headline, often, stopping, verdict
from lidp.result import TrialNote
from tests.report.results import CASES, as_guarantee, pair_result, result_like, scores_like


@pytest.fixture(scope="module")
def refuted():
    found = result_like(scores_like(CoinFlip(6), 120))
    assert found.verdict is Verdict.REFUTED
    return found


def test_a_refuted_claim_with_the_guarantee_spelled_out(refuted):
    assert headline(refuted).startswith("The claim is refuted: the audit found an ε of at least")
    assert guarantee(refuted) == "If the claim were true, evidence this strong would appear at most 5 % of the time."


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (
            "asymptotic",
            "at most 5 % of the time; that holds in the limit of many trials, and for 120 it is an approximation",
        ),
        ("conditional", "at most 5 % of the time, provided that the mechanism's privacy curve is of the family"),
        ("credible", "is not a failure probability: how often a true claim would look like this is not known"),
    ],
)
def test_weaker_guarantees_say_so(refuted, kind, words):
    assert words in " ".join(guarantee(as_guarantee(refuted, kind)).split())


def test_a_conditional_bound_from_asymptotic_limits():
    found = result_like(scores_like(LeaveOneOut(4, 3), 400), GaussianDP(interval=Wilson()))
    assert found.verdict is Verdict.REFUTED
    assert "of the family named under the assumptions, and in the limit of many trials." in guarantee(found)
    plain = result_like(scores_like(LeaveOneOut(4, 3), 400), GaussianDP())
    assert guarantee(plain).endswith("under the assumptions.")


def test_a_credible_bound_claims_no_error_rate(refuted):
    for found in (Verdict.REFUTED, Verdict.NOT_REFUTED):
        told = guarantee(replace(as_guarantee(refuted, "credible"), verdict=found))
        assert "of the time" not in told
        assert "0.95" in told


@pytest.mark.parametrize("kind", ["finite-sample", "asymptotic", "conditional", "credible"])
def test_not_refuted_does_not_mean_true(refuted, kind):
    found = replace(as_guarantee(refuted, kind), verdict=Verdict.NOT_REFUTED)
    assert "is not refuted" in headline(found)
    assert guarantee(found).startswith("Not refuted does not mean true")
    assert "If the claim were true" not in guarantee(found)


def test_nothing_was_found():
    found = result_like(scores_like(CoinFlip(6), shift=0.0), claim=2.0)
    assert found.bound.epsilon == 0
    assert "no leak that it could prove" in headline(found)
    assert guarantee(found).startswith("Not refuted does not mean true")
    assert "%" not in guarantee(found)


def test_too_few_trials(refuted):
    found = replace(refuted, verdict=Verdict.UNDECIDED)
    assert headline(found) == (
        "There is no verdict: 120 trials are too few to refute a claim of ε = 0.2 at δ = 1e-05, however leaky the mechanism."
    )
    assert "lidp plan" in guarantee(found)
    assert verdict(found) == "undecided budget"
    going = replace(found, planned_trials=9000)
    assert headline(going).startswith("There is no verdict yet: 120 of 9,000 trials are too few to refute")
    assert guarantee(going) == "That says nothing about the mechanism."
    assert verdict(going) == "no verdict yet"


def test_an_audit_that_goes_on(refuted):
    going = replace(refuted, planned_trials=5000, verdict=Verdict.NOT_REFUTED)
    assert verdict(going) == "not refuted so far"
    assert headline(going).startswith("So far, after 120 of 5,000 trials, the claim is not refuted:")
    assert "the trials to come, another attack or other canaries may still refute it" in guarantee(going)
    assert verdict(replace(going, verdict=Verdict.REFUTED)) == "refuted"  # which it stays


def test_nobody_is_invited_to_go_on_with_a_method_of_fixed_size(refuted):
    stands = replace(refuted, verdict=Verdict.NOT_REFUTED)
    assert "another attack, other canaries or more trials may still refute it." in guarantee(stands)
    fixed = result_like(scores_like(LeaveOneOut(4, 3)), Wilson(), claim=9.0)
    assert "or a new audit planned with more trials may still refute it." in guarantee(fixed)


def test_one_trial_is_not_one_trials():
    found = result_like(scores_like(CoinFlip(6), 1), verdict=Verdict.UNDECIDED)
    assert "1 trial is too little to refute" in headline(found)
    assert stopping(found) == "The one planned trial was used."


def test_a_method_that_speaks_at_the_end_only():
    found = result_like(scores_like(LeaveOneOut(4, 3)), Wilson(), planned=500, verdict=Verdict.UNDECIDED)
    assert "no verdict yet" in headline(found)
    assert "speaks after all 500 trials, and 48 are done" in headline(found)
    assert "provisional and proves nothing" in guarantee(found)
    assert "48 of 500" in stopping(found)


def test_stopped_when_the_claim_fell(refuted):
    assert "All 120 planned trials" in stopping(refuted)
    assert "stopping on what was seen keeps the guarantee" in stopping(replace(refuted, planned_trials=1000))
    going = replace(refuted, planned_trials=1000, verdict=Verdict.NOT_REFUTED)
    assert "the bound holds as it stands" in stopping(going)


def test_pairs_speak_of_runs():
    found = pair_result()
    assert found.verdict is Verdict.REFUTED
    assert "runs" in stopping(found)
    assert "trials" not in stopping(found)
    assert "two data sets" in design(found)
    stands = replace(found, verdict=Verdict.NOT_REFUTED, planned_trials=found.bound.trials)
    assert "true: other data sets or more runs may still refute it." in guarantee(stands)
    assert "true: the runs to come or other data sets may" in guarantee(replace(stands, planned_trials=10**6))
    few = guarantee(replace(stands, verdict=Verdict.UNDECIDED))
    assert "more runs" in few
    assert "lidp plan" not in few


def test_bounds_and_claims_as_they_are(refuted):
    close = replace(
        refuted,
        bound=replace(refuted.bound, epsilon=1.03),
        claim=replace(refuted.claim, epsilon=1.02996),
        planned_trials=120,
    )
    assert "an ε of at least 1.03, and ε = 1.02996 at δ = 1e-05 was claimed" in headline(close)
    short = replace(refuted, bound=replace(refuted.bound, epsilon=1.02996), verdict=Verdict.NOT_REFUTED)
    assert "A bound of 1.029 or more" in guarantee(short)


@pytest.mark.parametrize(
    ("probability", "words"),
    [(0.05, "5 % of the time"), (0.001, "0.1 % of the time"), (1e-9, "1e-09 of the time"), (0.0125, "1.25 % of the time")],
)
def test_how_often(probability, words):
    assert often(probability) == words


@pytest.mark.parametrize("name", CASES)
def test_designs_in_words(name):
    told = design(result_like(scores_like(CASES[name])))
    assert str(CASES[name].canaries) in told


def test_assumptions_checks_and_trouble(refuted):
    calm = statements_of(refuted)
    assert {one.standing for one in calm} == {Standing.ASSUMED, Standing.CHECKED}
    for assumption in refuted.bound.assumptions:
        assert any(assumption.lower().rstrip(".") in one.text.lower() for one in calm if one.standing is Standing.ASSUMED)
    assert any("coins are 1" in one.text for one in calm)
    notes = (
        TrialNote(0, 0.1, 2, {}, {"scores_unscored": 3, "scores_unscored_because": "nan"}),
        *(TrialNote(i, 0.1, 1) for i in range(1, 48)),
    )
    rough = result_like(scores_like(CoinFlip(6), failed=4), notes=notes, preparation_models=7)
    texts = [one.text for one in statements_of(rough)]
    assert any(text.startswith("Failed: 4 runs, kept as outputs") for text in texts)
    assert any(text.startswith("Run again: 1 trial, with") for text in texts)
    assert any(text.startswith("Canaries without a score: 3.") for text in texts)
    assert any(text.startswith("Models trained to prepare: 7") for text in texts)
    assert "No run failed." not in texts
