"""What a verdict means and what to do next: true for every kind of result."""

from dataclasses import replace

import pytest

from lidp import Claim, CoinFlip, Verdict
from lidp.report.page import render_report
from lidp.report.plain_words import early_stop, meaning, next_step
from tests.report.results import pair_result, result_like, scores_like


@pytest.fixture(scope="module")
def refuted():
    result = result_like(scores_like(CoinFlip(6), 120))
    assert result.verdict is Verdict.REFUTED
    return result


def test_an_early_stop_says_that_the_truth_may_be_larger_and_how_to_go_on(refuted):
    stopped = replace(refuted, planned_trials=500)
    assert "the true ε may be far larger" in early_stop(stopped)
    assert "--stop-when never" in early_stop(stopped)
    assert early_stop(stopped) in render_report(stopped)


def test_audits_that_did_not_stop_at_a_refutation_say_nothing_about_it(refuted):
    assert early_stop(refuted) == ""
    assert early_stop(replace(refuted, planned_trials=500, configuration={"stop_when": "never"})) == ""
    assert early_stop(replace(refuted, planned_trials=500, verdict=Verdict.NOT_REFUTED)) == ""
    assert "early-stop" not in render_report(refuted).partition("</style>")[2]


def test_the_meaning_names_the_factor_rounded_up_and_the_exception(refuted):
    words = meaning(replace(refuted, claim=Claim(2.0, 1e-5)))
    assert "more than 7.39 (e^2) times as likely" in words
    assert "except with a probability of about 1e-05" in words
    pure = meaning(replace(refuted, claim=Claim(2.0)))
    assert "except" not in pure
    assert "more than 2,990 (e^8) times" in meaning(replace(refuted, claim=Claim(8.0)))
    assert "more than e^400 times" in meaning(replace(refuted, claim=Claim(400.0)))


def test_the_next_step_fits_the_verdict(refuted):
    assert next_step(refuted).startswith("Do not rely on the claim")
    assert "diagnose" not in next_step(refuted)
    stands = replace(refuted, verdict=Verdict.NOT_REFUTED)
    assert "more trials, other canaries or a better score" in next_step(stands)
    assert "lidp resume STORE --trials N" in next_step(stands)
    assert "not finished" in next_step(replace(stands, planned_trials=500))
    assert "more runs" in next_step(replace(pair_result(), verdict=Verdict.NOT_REFUTED, planned_trials=0))


def test_the_title_says_what_was_audited(refuted):
    page = render_report(replace(refuted, target="<mine>"))
    assert "<title>refuted: &lt;mine&gt;, claimed ε = 0.2</title>" in page
    assert "<h1>Privacy audit of &lt;mine&gt;, claimed ε = 0.2</h1>" in page
