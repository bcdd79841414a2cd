"""Extending a stored audit: the same result as with the larger budget from the beginning, or a refusal with the reason."""

import pytest

import lidp
from lidp import Claim, CoinFlip, OneRun, Target, Verdict
from lidp.engine.budget import BUDGETS, extend
from lidp.errors import InvalidArgument, MethodNotApplicable, StoreError
from lidp.store import Store
from lidp.store.marks import made_by_this_user
from tests.engine.plans import canary_plan, pair_plan
from tests.sample_targets import LEAKY, NoisyCount, Numbers, closeness, run, same, silent

SILENT = Target(silent, Numbers(), closeness, name="silent")


def budgets(path):
    with Store.read(path) as store:
        return store.fact(BUDGETS)


def test_more_trials_give_what_the_larger_budget_gives_from_the_beginning(tmp_path):
    run(SILENT, trials=20, store=tmp_path / "a.db")
    extended = run(SILENT, trials=50, store=tmp_path / "a.db")
    same(extended, run(SILENT, trials=50))
    same(extended, lidp.result_of(tmp_path / "a.db"))
    assert budgets(tmp_path / "a.db") == [{"trials": 50, "stop_when": "never", "finished": 20}]
    assert extended.configuration["trials"] == 50


def test_the_first_configuration_and_the_mark_of_the_store_stay(tmp_path):
    run(SILENT, trials=20, store=tmp_path / "a.db")
    run(SILENT, trials=30, store=tmp_path / "a.db")
    run(SILENT, trials=50, store=tmp_path / "a.db")
    with Store.read(tmp_path / "a.db") as store:
        assert store.configuration["trials"] == 20
        assert made_by_this_user(store, in_current_folder=True)
    assert [budget["finished"] for budget in budgets(tmp_path / "a.db")] == [20, 30]


def test_a_refuted_audit_goes_on_if_it_no_longer_stops(tmp_path):
    settings = {"target": LEAKY, "trials": 40}
    stopped = run(stop_when="refuted", store=tmp_path / "a.db", **settings)
    assert stopped.verdict is Verdict.REFUTED
    assert stopped.bound.trials < 40
    further = run(stop_when="never", store=tmp_path / "a.db", **settings)
    same(further, run(stop_when="never", **settings))
    assert further.bound.epsilon > stopped.bound.epsilon


def test_settings_that_are_no_extension_still_belong_to_another_audit(tmp_path):
    run(SILENT, trials=20, store=tmp_path / "a.db")
    with pytest.raises(StoreError, match=r"belongs to another audit: .*trials was 20, is 30"):
        run(SILENT, trials=30, seed=9, store=tmp_path / "a.db")
    assert budgets(tmp_path / "a.db") is None


def test_fewer_trials_are_refused(tmp_path):
    run(SILENT, trials=20, store=tmp_path / "a.db")
    with pytest.raises(InvalidArgument, match="at least the 20 that are planned already, got 10"):
        run(SILENT, trials=10, store=tmp_path / "a.db")


def test_a_fixed_size_method_refuses_with_the_reason(tmp_path):
    settings = {"target": SILENT, "method": OneRun(), "store": tmp_path / "a.db"}
    run(trials=4, **settings)
    with pytest.raises(MethodNotApplicable, match="one-run is valid only for the 4 trials that were planned"):
        run(trials=8, **settings)
    assert lidp.result_of(tmp_path / "a.db").bound.trials == 4


def test_a_pair_audit_refuses_other_trials_and_may_stop_stopping():
    with pytest.raises(InvalidArgument, match="its 500 runs, which fix the sizes of its blocks"):
        extend(pair_plan(500), trials=100)
    assert extend(pair_plan(500, stop_when="refuted"), stop_when="never").stop_when == "never"


def test_never_stays_never():
    with pytest.raises(InvalidArgument, match="keeps it"):
        extend(canary_plan(stop_when="never"), stop_when="refuted")


def test_nothing_to_change_changes_nothing():
    plan = canary_plan(method=OneRun())
    assert extend(plan) is plan
    assert extend(plan, trials=plan.trials, stop_when="never") is plan


@pytest.mark.parametrize("budget", [[{"trials": 5, "stop_when": "never"}], [{"trials": 50}], 7, ["x"]], ids=str)
def test_a_record_of_extensions_that_cannot_be_is_damage(tmp_path, budget):
    run(SILENT, trials=20, store=tmp_path / "a.db")
    with Store.open(tmp_path / "a.db") as store:
        store.keep_fact(BUDGETS, budget)
    with pytest.raises(StoreError, match="is damaged"):
        lidp.result_of(tmp_path / "a.db")


@pytest.mark.slow
def test_true_claims_survive_extensions_that_are_decided_by_looking(tmp_path):
    """A tight claim, extended whenever it is not refuted: refuted in at most β of the audits, up to chance."""
    claim = Claim(epsilon=1.0)
    refuted = 0
    for seed in range(60):
        settings = {
            "claim": claim,
            "design": CoinFlip(1),
            "seed": seed,
            "failure_probability": 0.2,
            "stop_when": "refuted",
            "store": tmp_path / f"{seed}.db",
        }
        target = Target(NoisyCount(1.0), Numbers(), lambda output, canary: output)
        for trials in (5, 20, 60):
            result = run(target, trials=trials, **settings)
        refuted += result.verdict is Verdict.REFUTED
    assert refuted <= 20  # of 60 at β = 0.2: more has probability below 0.01
