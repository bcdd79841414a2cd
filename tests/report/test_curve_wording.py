"""The sentences about claimed curves: which hypothesis fell, the point beside it, and the failure probabilities."""

from lidp import CoinFlip
from lidp.report.curve_wording import on_failure_probabilities, on_the_hypothesis, on_the_noise, on_the_point
from lidp.report.wording import guarantee, headline
from tests.report import curve_results
from tests.report.results import result_like, scores_like


def test_refuted_curve_states_the_effective_noise_and_then_the_point():
    result = curve_results.refuted()
    assert headline(result) == (
        "The claimed privacy curve of 1-GDP, which promises ε = 4.37718 at δ = 1e-05, is refuted. "
        f"The mechanism {result.bound.describe_noise()}."
    )
    assert on_the_point(result) == (
        "The point, ε = 4.37718 at δ = 1e-05, is not refuted at this δ alone: ε is at least 3.45. "
        "Refuting the curve does not refute the point."
    )
    assert guarantee(result) == (
        "If the mechanism had the claimed privacy curve or a smaller one, "
        "evidence this strong would appear at most 5 % of the time."
    )


def test_point_may_be_refuted_too():
    result = curve_results.refuted_with_point()
    assert on_the_point(result).startswith("The point is refuted too: at δ = 1e-05 alone, ε is at least 4.")
    assert "does not refute" not in on_the_point(result)


def test_canary_by_canary_is_a_narrower_hypothesis():
    result = curve_results.refuted_by_canary()
    assert (
        "is refuted canary by canary. If its outputs about different canaries are independent, the mechanism"
        in headline(result)
    )
    assert guarantee(result).startswith("If the output about each canary had the claimed privacy curve or a smaller one, ")
    assert "independently of the other canaries. It is refuted." in on_the_hypothesis(result)
    assert "A mechanism that has the curve may be refuted too" in on_the_hypothesis(result)


def test_each_bound_has_its_own_failure_probability():
    text = on_failure_probabilities(curve_results.refuted())
    assert "Both verdicts together are wrong at most 5 % of the time" in text
    assert "each have a failure probability of their own, 0.05 and 0.05" in text
    assert text.endswith("at least one of the two is wrong with probability at most 0.1.")


def test_without_a_bound_on_the_noise_there_is_one_failure_probability():
    for result in (curve_results.nothing_excluded(), curve_results.without_family()):
        text = on_failure_probabilities(result)
        assert "Both verdicts together" in text
        assert "bound on the noise" not in text


def test_curve_that_is_not_refuted():
    result = curve_results.not_refuted()
    assert "at δ = 1e-05, is not refuted. The mechanism behaves as if" in headline(result)
    assert guarantee(result).startswith("Not refuted does not mean true")
    assert (
        "If the noise multiplier were 1.062 or more, a bound this low would appear at most 5 % of the time."
        in guarantee(result)
    )
    assert on_the_point(result).endswith("The point is tested only if the curve is refuted.")
    assert "The curve is refuted when the bar reaches the mark." in on_the_noise(result)


def test_nothing_excluded():
    result = curve_results.nothing_excluded()
    assert headline(result).endswith("is not refuted: no amount of noise is excluded.")
    assert "%" not in guarantee(result)
    assert "the audit could not show a leak there" in on_the_point(result)
    assert on_the_noise(result).endswith("The audit excludes no amount of noise.")


def test_curve_without_family_names_no_noise():
    result = curve_results.without_family()
    assert headline(result).endswith("is refuted. It has no amount of noise to compare with.")
    assert on_the_noise(result) == ""


def test_inconclusive_audit_says_nothing_about_either():
    result = curve_results.inconclusive()
    assert headline(result).endswith("1 trial is too few to refute any mechanism that claims the privacy curve of 1-GDP.")
    assert on_the_point(result) == on_failure_probabilities(result) == ""
    assert "There is no verdict on it." in on_the_hypothesis(result)


def test_claimed_curve_of_which_only_the_point_was_tested():
    stands = curve_results.gaussian(0.1, 100, point_only=True)
    assert headline(stands).startswith("The claim of ε = 4.37718 at δ = 1e-05 is not refuted")
    assert on_the_point(stands) == (
        "coin-wager tests one point of the claimed privacy curve of 1-GDP. It says nothing about the rest of the curve."
    )
    fell = curve_results.gaussian(0.1, 300, point_only=True)
    assert on_the_point(fell).endswith("The point follows from the curve, so the curve is refuted too.")


def test_claim_about_a_point_has_no_words_about_curves():
    result = result_like(scores_like(CoinFlip(6)))
    for words in (on_the_point, on_failure_probabilities, on_the_hypothesis, on_the_noise):
        assert words(result) == ""
