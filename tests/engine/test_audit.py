"""``lidp.audit``: what it computes, what its result says, and what it refuses."""

import json
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

import lidp
from lidp import Claim, CoinFlip, Guarantee, LeaveOneOut, Neighbours, Progress, ReplaceOne, Target, Verdict
from lidp._runtime.versions import versions
from lidp.errors import AuditFailed, InvalidArgument, MethodNotApplicable, StoreError
from lidp.result import AuditResult
from lidp.score_files import read_scores, write_scores
from lidp.stats.storable import to_plain
from lidp.store import Store
from lidp.trials.trial import TrialSetup, run_trial
from tests import sample_targets
from tests.sample_targets import CLAIM, DESIGNS, LEAKY, SILENT, InterruptedAfter, Numbers, claim_for, closeness, run


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_every_design_refutes_a_leaky_mechanism_and_not_a_silent_one(design):
    options = {"claim": claim_for(design), "design": design, "trials": 200}
    assert run(LEAKY, **options).verdict is Verdict.REFUTED
    assert run(SILENT, **options).verdict is Verdict.NOT_REFUTED


def test_mechanism_gets_the_data_of_each_arm():
    """The mechanism releases its data: each design's data sets are as the methods page says."""
    release = Target(lambda dataset, rng: list(dataset), Numbers(), closeness, dataset=[7.0])
    seen = []

    def score(output, canary):
        seen.append((tuple(output), canary))
        return float(canary in output)

    target = Target(release.mechanism, release.canaries, score, dataset=[7.0])
    record = run_trial(TrialSetup(target, LeaveOneOut(3, 2), 0), 0)
    assert record.arrays["inserted"].tolist() == [1, 1, 1]
    assert record.arrays["held_out"].tolist() == [0, 0]
    with_all, without = seen[0][0], seen[-1][0]
    assert with_all[0] == without[0] == 7.0
    assert with_all[1:3] == without[1:]
    assert len(with_all) == 4

    seen.clear()
    record = run_trial(TrialSetup(target, ReplaceOne(3, 2), 0), 0)
    assert len({output for output, _ in seen}) == 1, "both kinds of canary are scored on one output"
    assert record.arrays["inserted"].tolist() == [1, 1, 1]
    assert record.arrays["held_out"].tolist() == [0, 0]

    for relation in Neighbours:
        seen.clear()
        record = run_trial(TrialSetup(target, CoinFlip(8, relation), 0), 1)
        assert record.arrays["scores"].tolist() == record.arrays["coins"].tolist()
        expected = int(record.arrays["coins"].sum()) if relation is Neighbours.ADD_REMOVE else 8
        assert len(seen[0][0]) == 1 + expected


def test_data_sets_may_be_arrays_or_lists():
    class Vectors:
        def draw(self, rng, size):
            return rng.standard_normal((size, 3))

    def total(dataset, rng):
        return np.sum(dataset, axis=0)

    for dataset in ((), [], np.zeros((2, 3)), [np.zeros(3)]):
        target = Target(total, Vectors(), lambda output, canary: float(output @ canary), dataset=dataset)
        for design in DESIGNS:
            assert not run_trial(TrialSetup(target, design, 0), 0).failures


def test_random_streams_of_trials_and_arms_differ():
    """The mechanism's generator is not the coins', nor the canaries', nor another arm's."""
    draws = []

    def spy(dataset, rng):
        draws.append(rng.random())
        return []

    target = Target(spy, Numbers(), lambda output, canary: 0.0)
    for trial in range(3):
        run_trial(TrialSetup(target, LeaveOneOut(2, 2), 0), trial)
    assert len(set(draws)) == 6


def test_result_as_text_json_and_table():
    result = run(trials=60)
    assert str(result).startswith("refuted: leaky claims (1, 1e-05)-DP")
    plain = json.loads(result.to_json())
    assert plain["verdict"] == "refuted"
    assert plain["bound"]["epsilon"] == result.bound.epsilon > 1
    assert plain["models"] == 60
    assert {"python", "numpy"} <= set(plain["versions"])
    assert plain["trials"] == result.bound.trials
    assert len(plain["trial_notes"]["seconds"]) == 60
    assert result.table().row_count >= 4
    assert result.bound.path


def with_bound(epsilon, claimed, **changes):
    result = run(trials=4)
    bound = replace(result.bound, epsilon=epsilon, **changes)
    return replace(result, bound=bound, claim=Claim(claimed, 1e-5), verdict=Verdict.REFUTED)


def test_bound_is_shown_with_enough_digits_to_exceed_the_claim():
    assert "ε ≥ 1.03, more than the 1.02996 claimed" in str(with_bound(1.03, 1.02996))
    assert "ε ≥ 1.03004, more than the 1.03 claimed" in str(with_bound(1.03004, 1.03))
    assert "ε ≥ 1.029," in str(with_bound(1.02996, 1.0))
    assert "ε ≥ 1.02 (claim 1.02996)" in str(Progress(3, 9, 1.0299, 1.02996, 1.0, 0))
    assert "3/9 runs" in str(Progress(3, 9, 1.0299, 1.02996, 1.0, 0, "runs"))


def test_credible_bound_is_shown_with_its_credibility():
    text = str(with_bound(1.2, 1.0, guarantee=Guarantee.CREDIBLE))
    assert "(credibility 0.95)" in text
    assert "(failure probability" not in text


def test_json_holds_the_seconds_of_all_trials():
    result = run(trials=5)
    assert json.loads(result.to_json())["trial_seconds"] == sum(note.seconds for note in result.notes) > 0


def test_unfinished_result_says_so():
    result = run(SILENT, trials=20)
    assert not result.unfinished
    going = replace(result, planned_trials=5000)
    assert going.unfinished
    assert not going.provisional  # the bound holds as it stands
    assert not replace(going, verdict=Verdict.REFUTED).unfinished
    assert replace(going, method=lidp.Wilson()).provisional
    assert "the audit is not finished" in str(replace(going, verdict=Verdict.INCONCLUSIVE))


def test_store_keeps_the_versions_that_began_the_audit(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    old = {"python": "3.11.0", "lidp": "0.0.1", "numpy": "1.26.0", "scipy": "1.11.0", "numba": "0.60.0"}
    monkeypatch.setattr("lidp.engine.audit.versions", lambda: old)
    assert run(trials=5, store=path).versions == old
    monkeypatch.undo()
    stored = lidp.result_of(path)
    assert stored.versions == old
    assert stored.computed_with == versions()
    assert set(versions()) == set(old)
    assert json.loads(stored.to_json())["versions"] == old
    assert json.loads(stored.to_json())["computed_with"] == versions()
    assert run(trials=5).versions == versions()


def test_store_without_versions_is_still_read_and_resumed(tmp_path):
    path = tmp_path / "a.db"
    expected = run(trials=5, store=path)
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM facts WHERE name = 'versions'")
    connection.close()
    stored = lidp.result_of(path)
    assert stored.bound == expected.bound
    assert stored.versions == {}
    assert stored.computed_with == versions()
    assert run(trials=5, store=path).bound == expected.bound  # and it is gone on with
    with Store.open(path) as store:
        store.keep_fact("versions", [1])
    with pytest.raises(StoreError, match="versions cannot be read"):
        lidp.result_of(path)


def test_scores_of_an_audit_that_stopped_early_are_marked_everywhere(tmp_path):
    result = run(trials=60, stop_when="refuted", store=tmp_path / "a.db")
    assert result.bound.trials < 60
    for stopped in (
        result,
        run(trials=60, stop_when="refuted", store=tmp_path / "a.db"),
        lidp.result_of(tmp_path / "a.db"),
    ):
        assert stopped.scores.stopped_early
        assert stopped.witness()["stopped_early"]
    with pytest.raises(lidp.MethodNotApplicable, match="were stopped when the claim was refuted"):
        lidp.bound(result.scores, "one-run", delta=1e-5)
    forged = result.witness() | {"method": to_plain(lidp.OneRun())}
    with pytest.raises(lidp.MethodNotApplicable, match="were stopped when the claim was refuted"):
        lidp.recheck(forged)
    assert lidp.recheck(result.witness()).epsilon == result.bound.epsilon
    assert not run(trials=60).scores.stopped_early
    assert not run(SILENT, trials=20, stop_when="refuted").scores.stopped_early


@pytest.mark.parametrize("stop_when", ["refuted", "never"])
def test_scores_of_an_unfinished_audit_are_marked_everywhere(tmp_path, stop_when):
    path = tmp_path / "a.db"
    with pytest.raises(lidp.AuditInterrupted) as interrupted:
        run(SILENT, trials=50, stop_when=stop_when, store=path, executor=InterruptedAfter(10))
    write_scores(interrupted.value.result.scores, tmp_path / "scores.npz")
    for scores in (interrupted.value.result.scores, lidp.result_of(path).scores, read_scores(tmp_path / "scores.npz")):
        assert scores.trials == 10
        with pytest.raises(lidp.MethodNotApplicable, match="fewer than planned.* the audit is not finished"):
            lidp.bound(scores, lidp.OneRun(), delta=1e-5)
        assert lidp.bound(scores, delta=1e-5).trials == scores.trials
        assert not scores.as_planned().stopped_early


def test_recheck_reproduces_the_bound_of_the_witness():
    result = run(trials=60)
    witness = json.loads(json.dumps(result.witness()))
    assert lidp.recheck(witness).epsilon == result.bound.epsilon
    witness["epsilon"] += 0.5
    with pytest.raises(InvalidArgument, match="its scores give"):
        lidp.recheck(witness)


def test_plot_shows_the_bound_by_trials():
    pytest.importorskip("matplotlib")
    figure = lidp.Plots(run(trials=60))()
    (axes,) = figure.axes
    assert axes.get_xlabel() == "trials"
    assert max(axes.lines[0].get_ydata()) == run(trials=60).bound.epsilon


def test_early_stop_gives_the_bound_at_the_first_refutation():
    full = run(trials=120)
    early = run(trials=120, stop_when="refuted")
    first = next(seen for seen, epsilon in full.bound.path if epsilon > 1)
    assert early.bound.trials == first < 120
    assert early.bound.epsilon == full.bound.epsilon_after(first)


def test_too_few_trials_are_inconclusive():
    assert run(SILENT, trials=2, claim=Claim(5.0, 1e-5)).verdict is Verdict.INCONCLUSIVE
    assert run(SILENT, trials=60).verdict is Verdict.NOT_REFUTED


def test_metadata_of_the_mechanism_is_kept():
    target = Target(lambda d, rng: lidp.Output(list(d), {"accuracy": 0.5}), Numbers(), closeness)
    assert run(target, trials=3).notes[0].metadata == {"scores_accuracy": 0.5}


def test_preparation_runs_once_and_is_counted(tmp_path):
    calls = []

    def prepare(dataset, rng):
        calls.append(rng.random())
        return lidp.Prepared({"centre": np.array([1.0, 2.0])}, models=16)

    def score(output, canary, prepared):
        return closeness(output, canary) + float(prepared["centre"].sum())

    target = Target(sample_targets.leaky, Numbers(), score, prepare=prepare)
    result = run(target, trials=20, store=tmp_path / "a.db")
    assert (result.preparation_models, result.models) == (16, 36)
    assert "(16 to prepare)" in str(result)
    again = run(target, trials=20, store=tmp_path / "a.db")
    assert again.models == 36
    assert len(calls) == 1


def test_mechanism_that_changes_records_in_place_is_not_refuted():
    """Clipping in place must not mark the inserted canaries: this mechanism releases nothing."""

    class Vectors:
        def __init__(self, as_list):
            self.as_list = as_list

        def draw(self, rng, size):
            drawn = 3 * rng.standard_normal((size, 2))
            return list(drawn) if self.as_list else drawn

    def clips(dataset, rng):
        for record in dataset:
            record /= max(1.0, float(np.linalg.norm(record)))
        return 0.0

    base = [np.array([5.0, 5.0])]
    for as_list in (False, True):
        target = Target(clips, Vectors(as_list), lambda output, canary: -float(np.linalg.norm(canary)), dataset=base)
        for design in DESIGNS:
            assert run(target, claim=claim_for(design, 0.5), design=design, trials=60).verdict is not Verdict.REFUTED
    assert base[0].tolist() == [5.0, 5.0]


def test_early_stop_is_refused_without_anytime_validity():
    with pytest.raises(MethodNotApplicable, match="not anytime-valid"):
        run(method="one-run", stop_when="refuted")
    assert run(method="one-run", stop_when=None).bound.method == "one-run"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"trials": 0}, InvalidArgument, "trials must be"),
        ({"workers": 0}, InvalidArgument, "workers must be"),
        ({"seed": -1}, InvalidArgument, "seed must be"),
        ({"stop_when": "bored"}, InvalidArgument, "stop_when must be"),
        ({"time_limit": -1.0}, InvalidArgument, "time_limit must be"),
        ({"claim": 3}, InvalidArgument, "claim must be a Claim"),
        ({"design": "coins"}, InvalidArgument, "design must be"),
        ({"method": "magic"}, InvalidArgument, "unknown method"),
        ({"method": "wilson"}, MethodNotApplicable, "coin-flip scores"),
        ({"failure_probability": 2}, InvalidArgument, "failure_probability"),
        ({"design": ReplaceOne(3, 3)}, InvalidArgument, "says nothing about the other"),
    ],
)
def test_invalid_argument_is_refused_by_name(options, error, message):
    with pytest.raises(error, match=message):
        run(**options)


def test_invalid_target_is_refused():
    with pytest.raises(InvalidArgument, match="needs canaries= and score="):
        lidp.audit(sample_targets.leaky, claim=CLAIM)
    with pytest.raises(InvalidArgument, match="has its own"):
        lidp.audit(LEAKY, claim=CLAIM, canaries=Numbers())
    with pytest.raises(InvalidArgument, match="mechanism must be callable"):
        Target(3, Numbers(), closeness)
    with pytest.raises(InvalidArgument, match="score must be callable"):
        Target(sample_targets.leaky, Numbers(), 3)
    with pytest.raises(InvalidArgument, match="draw"):
        Target(sample_targets.leaky, 3, closeness)  # type: ignore[arg-type]

    class Broken:
        def draw(self, rng, size):
            return [1.0]

    with pytest.raises(AuditFailed, match="gave 1 canary instead of 2"):
        run(Target(sample_targets.leaky, Broken(), closeness))
    with pytest.raises(AuditFailed, match=r"preparation of leaky failed: ZeroDivisionError"):
        run(Target(sample_targets.leaky, Numbers(), closeness, prepare=lambda d, rng: 1 / 0))


def test_metadata_that_json_cannot_hold_is_converted():
    target = Target(lambda d, rng: lidp.Output(list(d), {"loss": float("nan"), "n": np.int64(3)}), Numbers(), closeness)
    noted = AuditResult.from_json(run(target, trials=2).to_json()).notes[0].metadata
    assert noted == {"scores_loss": "nan", "scores_n": 3}


@pytest.mark.parametrize("workers", [1, 2])
def test_error_while_drawing_canaries_ends_the_audit(workers):
    class Moody:
        def draw(self, rng, size):
            if size > 2 and rng.random() < 0.3:
                raise RuntimeError("no canary today")
            return rng.standard_normal(size)

    with pytest.raises(AuditFailed, match="drawing the canaries of trial"):
        run(Target(sample_targets.leaky, Moody(), closeness), workers=workers)


def test_output_printed_by_the_mechanism_stays_out_of_the_json(capfd):
    from lidp.cli.app import run as command

    for workers in ("1", "2"):
        code = command(
            [
                "audit",
                "tests.sample_targets:CHATTY",
                "--epsilon",
                "1",
                "--trials",
                "5",
                "--canaries",
                "2",
                "--json",
                "--workers",
                workers,
            ]
        )
        assert code == 0
        json.loads(capfd.readouterr().out)


@pytest.mark.parametrize("threshold", [-3.0, 0.0, 0.5, 7.0])
def test_sufficient_budget_is_conclusive_for_any_threshold(threshold):
    """A mechanism that gives everything away would be on the right side of any threshold."""
    method = lidp.ClopperPearson(threshold=lidp.FixedThreshold(threshold))
    result = lidp.audit(
        lidp.Target(lambda dataset, rng: [rng.random()], Numbers(), closeness),
        claim=Claim(0.5), design=LeaveOneOut(1, 1), trials=200, method=method,
    )  # fmt: skip
    assert result.verdict is Verdict.NOT_REFUTED
