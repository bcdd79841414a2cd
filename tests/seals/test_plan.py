"""Plans and commitments: what is fixed before training."""

import pytest

from lidp import Claim, CoinWager, CurveWager, CurveWagerWithGuesses, SignedRanks
from lidp.errors import InvalidArgument, MethodNotApplicable, SealError
from lidp.seals.files import canonical, sha256
from lidp.seals.plan import Commitment, SealPlan, check_independence, choose_method

CURVE = Claim.gaussian(1.0)


@pytest.mark.parametrize(
    ("claim", "options", "kind"),
    [
        (Claim(1.0), {"runs": 1}, CoinWager),
        (CURVE, {"runs": 1}, CurveWagerWithGuesses),
        (CURVE, {"runs": 2}, CurveWager),
        (CURVE, {"runs": None}, CurveWager),
        (CURVE, {"runs": 1, "independent_canaries": True}, SignedRanks),
        (CURVE, {"runs": None, "independent_canaries": True}, CurveWager),
    ],
)
def test_choose_method_by_claim_and_runs(claim, options, kind):
    method = choose_method(claim, 100, **options)
    assert type(method) is kind
    assert method.assumes_independent_canaries is options.get("independent_canaries", False)


def test_choose_method_tests_beyond_large_claims():
    assert choose_method(Claim(8.0), 100, runs=1).largest == 16


def test_choose_method_by_name():
    assert type(choose_method(CURVE, 100, runs=1, name="curve-wager")) is CurveWager
    with pytest.raises(InvalidArgument, match="unknown method"):
        choose_method(CURVE, 100, runs=1, name="none")
    with pytest.raises(MethodNotApplicable, match="a point"):
        choose_method(Claim(1.0), 100, runs=1, independent_canaries=True)


def test_independence_is_for_dirac_gradients():
    check_independence("gradients", {"canary": "dirac-gradient"})
    for kind, options in (("text", {}), ("records", {}), ("gradients", {"canary": "random-gradient"})):
        with pytest.raises(InvalidArgument, match="the hypothesis would be false"):
            check_independence(kind, options)


def plan(**changes):
    values = {
        "id": "0" * 16,
        "claim": CURVE,
        "method": CurveWager(CURVE.curve),
        "failure_probability": 0.05,
        "looks": 2,
        "kind": "gradients",
        "canaries": 10,
        "options": {"canary": "dirac-gradient"},
    }
    return SealPlan(**(values | changes))


def test_plan_round_trip():
    assert SealPlan.from_dict(plan().to_dict()) == plan()
    assert plan().failure_probability_per_look == 0.025


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"failure_probability": 1.0}, "failure_probability"),
        ({"looks": 0}, "looks"),
        ({"canaries": 2**30}, "canaries must be at most"),
        ({"kind": "images"}, "kind must be one of"),
        ({"claim": Claim(1.0, 0.0, "replace-one")}, "add-remove"),
        ({"method": CurveWagerWithGuesses(CURVE.curve)}, "--runs N"),
    ],
)
def test_plan_refuses_what_cannot_be_opened(changes, reason):
    with pytest.raises(InvalidArgument, match=reason):
        plan(**changes)


def test_plan_refuses_methods_without_coins():
    from lidp import LiftedBetting

    with pytest.raises(MethodNotApplicable):
        plan(method=LiftedBetting())


def commitment(**changes):
    values = {
        "plan": plan(),
        "run": 1,
        "previous": None,
        "coins": sha256(b"c"),
        "files": {"candidates.jsonl": sha256(b"x")},
        "versions": {"lidp": "1"},
        "created": "2030-01-01T00:00:00+00:00",
    }
    return Commitment(**(values | changes))


def test_commitment_round_trip():
    plain = commitment().to_dict()
    assert Commitment.from_dict(plain, "it") == commitment()
    assert plain["digest"] == commitment().digest == sha256(canonical({k: v for k, v in plain.items() if k != "digest"}))


@pytest.mark.parametrize("name", ["run", "coins", "created", "versions", "files", "plan", "previous"])
def test_commitment_with_any_change_is_refused(name):
    plain = commitment().to_dict()
    plain[name] = commitment(run=2, coins=sha256(b"d"), created="", versions={}, files={"candidates.npz": sha256(b"")},
                             plan=plan(looks=1), previous=sha256(b"")).to_dict()[name]  # fmt: skip
    with pytest.raises(SealError, match="was changed after sealing"):
        Commitment.from_dict(plain, "it")


def signed(plain):
    rest = {name: value for name, value in plain.items() if name != "digest"}
    return rest | {"digest": sha256(canonical(rest))}


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"run": 0},
        {"run": "1"},
        {"coins": "sha256:1"},
        {"coins": None},
        {"files": {}},
        {"files": {"candidates.jsonl": sha256(b""), "../x": sha256(b"")}},
        {"files": {"candidates.jsonl": sha256(b""), "a\x1b[2J": sha256(b"")}},
        {"plan": None},
        {"plan": {}},
        {"plan": plan().to_dict() | {"method": {"kind": "Path"}}},
        {"plan": plan().to_dict() | {"method": 1}},
        {"plan": plan().to_dict() | {"claim": {"epsilon": -1}}},
        {"plan": plan().to_dict() | {"claim": {"epsilon": 1, "curve": {"kind": "none"}}}},
        {"plan": plan().to_dict() | {"canaries": 1.5}},
        {"plan": plan().to_dict() | {"canaries": 10**300}},
        {"plan": plan().to_dict() | {"looks": 10**400}},
        {"plan": plan().to_dict() | {"id": "\x1b[2J"}},
        {"plan": plan().to_dict() | {"more": 1}},
        {"more": 1},
        {"versions": 3},
    ],
)
def test_hostile_commitments_with_a_right_digest_are_refused_in_one_line(change):
    plain = signed(commitment().to_dict() | change)
    with pytest.raises(SealError) as error:
        Commitment.from_dict(plain, "it")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("method", [SignedRanks(CURVE.curve), CurveWager(CURVE.curve, canary_by_canary=True)])
@pytest.mark.parametrize(("kind", "options"), [("text", {}), ("records", {}), ("gradients", {"canary": "random-gradient"})])
def test_plan_refuses_methods_for_independent_canaries_if_they_interfere(method, kind, options):
    plan(method=method, runs=1)
    with pytest.raises(InvalidArgument, match="the hypothesis would be false"):
        plan(method=method, runs=1, kind=kind, options=options)


@pytest.mark.parametrize(
    ("name", "canaries"), [("jeffreys", 1), ("wilson", 1), ("joint-beta", 1), ("gaussian-dp", 1), ("one-run-fdp", 10)]
)
def test_plan_refuses_methods_that_keep_no_failure_probability(name, canaries):
    method = choose_method(Claim(1.0), canaries, runs=100, name=name)
    with pytest.raises(MethodNotApplicable, match=f"the guarantee of {name} is"):
        plan(claim=Claim(1.0), method=method, canaries=canaries, runs=100)


@pytest.mark.parametrize(("failure_probability", "looks"), [(1e-200, 1), (1e-99, 1000)])
def test_plan_refuses_failure_probabilities_that_no_method_takes_at_opening(failure_probability, looks):
    with pytest.raises(InvalidArgument, match="at least 1e-100"):
        plan(failure_probability=failure_probability, looks=looks)
