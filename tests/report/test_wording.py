"""The sentences of the report, for every verdict and every guarantee."""

from dataclasses import replace

import pytest

from lidp import CoinFlip, GaussianDP, LeaveOneOut, Verdict, Wilson
from lidp.report.evidence import Status, statements_of
from lidp.report.wording import design, guarantee, headline, often, stopping, verdict
from lidp.result import TrialNote
from tests.report.results import CASES, as_guarantee, pair_result, result_like, scores_like


@pytest.fixture(scope="module")
def refuted():
    result = result_like(scores_like(CoinFlip(6), 120))
    assert result.verdict is Verdict.REFUTED
    return result


def test_refuted_claim_states_its_failure_probability(refuted):
    assert headline(refuted).startswith("The claim of ε = 0.2 at δ = 1e-05 is refuted: the audit found that ε is at least ")
    assert guarantee(refuted) == "If the claim were true, evidence this strong would appear at most 5 % of the time."


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (
            "asymptotic",
            "at most 5 % of the time; this holds in the limit of many trials and is an approximation for 120",
        ),
        ("conditional", "at most 5 % of the time, provided that the mechanism's privacy curve is of the family"),
        ("credible", "is not a failure probability: it is not known how often a true claim would be refuted"),
    ],
)
def test_weaker_guarantee_is_stated(refuted, kind, words):
    assert words in " ".join(guarantee(as_guarantee(refuted, kind)).split())


def test_conditional_bound_with_asymptotic_interval_states_both_conditions():
    result = result_like(scores_like(LeaveOneOut(4, 3), 400), GaussianDP(interval=Wilson()))
    assert result.verdict is Verdict.REFUTED
    assert "of the family named under the assumptions, and in the limit of many trials." in guarantee(result)
    plain = result_like(scores_like(LeaveOneOut(4, 3), 400), GaussianDP())
    assert guarantee(plain).endswith("under the assumptions.")


def test_credible_bound_states_no_error_rate(refuted):
    for judged in (Verdict.REFUTED, Verdict.NOT_REFUTED):
        text = guarantee(replace(as_guarantee(refuted, "credible"), verdict=judged))
        assert "of the time" not in text
        assert "0.95" in text


@pytest.mark.parametrize("kind", ["finite-sample", "asymptotic", "conditional", "credible"])
def test_not_refuted_does_not_mean_true(refuted, kind):
    result = replace(as_guarantee(refuted, kind), verdict=Verdict.NOT_REFUTED)
    assert "is not refuted" in headline(result)
    assert guarantee(result).startswith("Not refuted does not mean true")
    assert "If the claim were true" not in guarantee(result)


def test_bound_of_zero_states_no_leak():
    result = result_like(scores_like(CoinFlip(6), shift=0.0), claim=2.0)
    assert result.bound.epsilon == 0
    assert "the audit could not show a leak" in headline(result)
    assert guarantee(result).startswith("Not refuted does not mean true")
    assert "%" not in guarantee(result)


def test_too_few_trials_are_inconclusive(refuted):
    result = replace(refuted, verdict=Verdict.INCONCLUSIVE)
    assert headline(result) == (
        "The audit is inconclusive: 120 trials are too few to refute any mechanism that claims ε = 0.2 at δ = 1e-05."
    )
    assert "lidp plan" in guarantee(result)
    assert verdict(result) == "inconclusive"
    going = replace(result, planned_trials=9000)
    assert headline(going).startswith("There is no verdict yet: 120 of 9,000 trials are too few to refute")
    assert guarantee(going) == "This says nothing about the mechanism."
    assert verdict(going) == "no verdict yet"


def test_unfinished_audit_is_not_refuted_so_far(refuted):
    going = replace(refuted, planned_trials=5000, verdict=Verdict.NOT_REFUTED)
    assert verdict(going) == "not refuted so far"
    assert headline(going).startswith("After 120 of 5,000 trials, the claim of ε = 0.2 at δ = 1e-05 is not refuted so far:")
    assert "the remaining trials, another attack or other canaries may still refute the claim" in guarantee(going)
    assert verdict(replace(going, verdict=Verdict.REFUTED)) == "refuted"  # which it stays


def test_method_of_fixed_size_is_not_to_be_continued(refuted):
    stands = replace(refuted, verdict=Verdict.NOT_REFUTED)
    assert "another attack, other canaries or more trials may still refute the claim." in guarantee(stands)
    fixed = result_like(scores_like(LeaveOneOut(4, 3)), Wilson(), claim=9.0)
    assert "or a new audit planned with more trials may still refute the claim." in guarantee(fixed)


def test_one_trial_is_singular():
    result = result_like(scores_like(CoinFlip(6), 1), verdict=Verdict.INCONCLUSIVE)
    assert "1 trial is too few to refute any mechanism" in headline(result)
    assert stopping(result) == "The one planned trial was used."


def test_provisional_bound_proves_nothing():
    result = result_like(scores_like(LeaveOneOut(4, 3)), Wilson(), planned=500, verdict=Verdict.INCONCLUSIVE)
    assert "no verdict yet" in headline(result)
    assert "gives one after all 500 trials, and 48 are finished" in headline(result)
    assert "provisional and proves nothing" in guarantee(result)
    assert "48 of 500" in stopping(result)


def test_early_stop_keeps_the_guarantee(refuted):
    assert "All 120 planned trials" in stopping(refuted)
    assert "stopping because of the result keeps the guarantee" in stopping(replace(refuted, planned_trials=1000))
    going = replace(refuted, planned_trials=1000, verdict=Verdict.NOT_REFUTED)
    assert "the bound is valid now" in stopping(going)


def test_pair_audits_count_runs():
    result = pair_result()
    assert result.verdict is Verdict.REFUTED
    assert "runs" in stopping(result)
    assert "trials" not in stopping(result)
    assert "two data sets" in design(result)
    stands = replace(result, verdict=Verdict.NOT_REFUTED, planned_trials=result.bound.trials)
    assert "true: other data sets or more runs may still refute the claim." in guarantee(stands)
    assert "true: the remaining runs or other data sets may" in guarantee(replace(stands, planned_trials=10**6))
    few = guarantee(replace(stands, verdict=Verdict.INCONCLUSIVE))
    assert "more runs" in few
    assert "lidp plan" not in few


def test_bounds_and_claims_are_shown_with_enough_digits(refuted):
    close = replace(
        refuted,
        bound=replace(refuted.bound, epsilon=1.03),
        claim=replace(refuted.claim, epsilon=1.02996),
        planned_trials=120,
    )
    assert headline(close) == "The claim of ε = 1.02996 at δ = 1e-05 is refuted: the audit found that ε is at least 1.03."
    short = replace(refuted, bound=replace(refuted.bound, epsilon=1.02996), verdict=Verdict.NOT_REFUTED)
    assert "If the true ε were below 1.029, a bound this high" in guarantee(short)


@pytest.mark.parametrize(
    ("probability", "words"),
    [(0.05, "5 % of the time"), (0.001, "0.1 % of the time"), (1e-9, "1e-09 of the time"), (0.0125, "1.25 % of the time")],
)
def test_often_shows_percentages_and_small_probabilities(probability, words):
    assert often(probability) == words


@pytest.mark.parametrize("name", CASES)
def test_design_names_its_canaries(name):
    words = design(result_like(scores_like(CASES[name])))
    assert str(CASES[name].canaries) in words


def test_statements_hold_assumptions_checks_and_problems(refuted):
    calm = statements_of(refuted)
    assert {one.status for one in calm} == {Status.ASSUMED, Status.CHECKED}
    for assumption in refuted.bound.assumptions:
        assert any(assumption.lower().rstrip(".") in one.text.lower() for one in calm if one.status is Status.ASSUMED)
    assert any("coins are 1" in one.text for one in calm)
    notes = (
        TrialNote(0, 0.1, 2, {}, {"scores_unscored": 3, "scores_unscored_because": "nan"}),
        *(TrialNote(i, 0.1, 1) for i in range(1, 48)),
    )
    rough = result_like(scores_like(CoinFlip(6), failed=4), notes=notes, preparation_models=7)
    texts = [one.text for one in statements_of(rough)]
    assert any(text.startswith("Failed runs: 4. They are kept as outputs") for text in texts)
    assert any(text.startswith("Retried trials: 1.") for text in texts)
    assert any(text.startswith("Canaries that could not be scored: 3.") for text in texts)
    assert any(text.startswith("Models trained for preparation: 7.") for text in texts)
    assert "No run failed." not in texts
