import json

import pytest

from lidp import Claim, Direction, EpsilonBound, Guarantee, InvalidArgument, Neighbours


def make(**changes):
    values = {
        "epsilon": 0.1 + 0.2,
        "delta": 1e-5,
        "failure_probability": 0.05,
        "method": "coin-wager",
        "guarantee": Guarantee.FINITE_SAMPLE,
        "neighbours": Neighbours.ADD_REMOVE,
        "direction": Direction.BOTH,
        "trials": 256,
        "canaries": 64,
        "models": 256,
        "parameters": {"resolution": 0.01},
        "thresholds": {"forward": 1 / 3},
        "rates": {"right": 5.0},
        "path": ((3, 0.1), (7, 0.1 + 0.2)),
        "assumptions": ("coins are fair",),
    }
    return EpsilonBound(**{**values, **changes})


def test_json_and_back_without_loss():
    bound = make()
    assert EpsilonBound.from_json(bound.to_json()) == bound
    assert json.loads(bound.to_json())["epsilon"] == bound.epsilon


@pytest.mark.parametrize("text", ['{"epsilon": 1}', '{"colour": 3}', "[1]", "{"])
def test_json_of_something_else(text):
    with pytest.raises(InvalidArgument, match="not an epsilon bound|not JSON"):
        EpsilonBound.from_json(text)


def test_str_shows_all_that_matters():
    text = str(make())
    for part in (
        "ε ≥ 0.3",
        "δ = 1e-05",
        "0.05",
        "coin-wager",
        "finite-sample",
        "add-remove",
        "256",
        "64",
        "coins are fair",
    ):
        assert part in text
    assert "credibility 0.95" in str(make(guarantee=Guarantee.CREDIBLE))
    assert "failure probability" not in str(make(guarantee=Guarantee.CREDIBLE)).partition("\n")[0]


@pytest.mark.parametrize(
    ("failure_probability", "shown"), [(0.05, "0.95"), (1e-3, "0.999"), (0.9, "0.1"), (1e-9, "0.999999")]
)
def test_credibility_is_not_rounded_up(failure_probability, shown):
    credible = make(guarantee=Guarantee.CREDIBLE, failure_probability=failure_probability)
    assert str(credible.certainty) == f"credibility {shown}"
    assert str(make().certainty) == "failure probability 0.05"


def test_a_bound_is_rounded_down_and_a_claim_up():
    assert str(make(epsilon=1.02996)).startswith("ε ≥ 1.029 at")
    assert make(epsilon=1.03004).describe(1.03).startswith("ε ≥ 1.03004 at")
    assert str(Claim(1.0299996, 1e-5)).startswith("(1.03, 1e-05)-DP")
    assert str(Claim(1.0301, 1e-5)).startswith("(1.0301, 1e-05)-DP")


def test_the_path_can_be_read_at_any_trial():
    bound = make()
    assert [bound.epsilon_after(n) for n in (2, 3, 6, 7, 100)] == [0.0, 0.1, 0.1, 0.1 + 0.2, 0.1 + 0.2]


def test_no_path_no_history():
    with pytest.raises(InvalidArgument, match="not anytime-valid"):
        make(path=(), method="wilson").epsilon_after(5)
    assert make(path=(), epsilon=0.0).epsilon_after(5) == 0


def test_refutes():
    bound = make(epsilon=1.5)
    assert bound.refutes(Claim(1.0, 1e-5))
    assert bound.refutes(Claim(1.0, 1e-6)), "a smaller δ is a stronger claim"
    assert not bound.refutes(Claim(1.5, 1e-5))
    with pytest.raises(InvalidArgument, match="compute it again with delta=0.001"):
        bound.refutes(Claim(1.0, 1e-3))
    with pytest.raises(InvalidArgument, match="replace-one"):
        bound.refutes(Claim(1.0, 1e-5, Neighbours.REPLACE_ONE))


@pytest.mark.parametrize("change", [{"epsilon": -1}, {"delta": 1}, {"failure_probability": 0}])
def test_impossible_bounds(change):
    with pytest.raises(InvalidArgument):
        make(**change)


def test_a_guarantee_for_any_number_of_trials_is_stated_for_anytime_valid_methods_only():
    assert make().describe_guarantee() == "finite-sample: holds for any number of trials"
    fixed = make(path=())
    assert fixed.describe_guarantee() == "finite-sample: holds for any number of trials that is fixed in advance"
    assert fixed.describe_guarantee(anytime=True) == make().describe_guarantee()
    assert make().describe_guarantee(anytime=False) == fixed.describe_guarantee()
    assert make(guarantee=Guarantee.ASYMPTOTIC).describe_guarantee() == "asymptotic: holds in the limit of many trials"
    assert fixed.describe_guarantee() in str(fixed)


def test_one_of_a_kind_is_singular():
    assert "1 trial x 1 canary, 1 model\n" in str(make(trials=1, canaries=1, models=1))
