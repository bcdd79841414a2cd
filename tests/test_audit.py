"""The audit engine: what it computes, that it computes the same whoever runs it, and what it does with trouble."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import lidp
from lidp import Claim, CoinFlip, LeaveOneOut, Neighbours, ReplaceOne, Target, Verdict
from lidp.audits import AuditInterrupted
from lidp.errors import AuditFailed, InvalidArgument, MethodNotApplicable, StoreError
from lidp.store import Store, is_store
from lidp.trials.executors import Processes, Serial
from lidp.trials.trial import TrialSetup, run_trial
from tests import engine
from tests.engine import LEAKY, SILENT, Many, Numbers, Trouble, closeness

ROOT = Path(__file__).parent.parent
CLAIM = Claim(1.0, 1e-5)
DESIGNS = [
    CoinFlip(6),
    CoinFlip(6, Neighbours.REPLACE_ONE),
    LeaveOneOut(4, 3),
    ReplaceOne(4, 3),
]


def claim_for(design, epsilon=1.0):
    return Claim(epsilon, 1e-5, design.neighbours)


def run(target=LEAKY, **options):
    options = {"claim": CLAIM, "design": CoinFlip(6), "trials": 40, "seed": 3, "stop_when": "never", **options}
    return lidp.audit(target, **options)


def same(a, b):
    assert a == b
    for name, array in a.scores.to_arrays().items():
        np.testing.assert_array_equal(array, b.scores.to_arrays()[name])


# What it computes.


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_every_design_refutes_a_leak_and_not_a_silence(design):
    options = {"claim": claim_for(design), "design": design, "trials": 200}
    assert run(LEAKY, **options).verdict is Verdict.REFUTED
    assert run(SILENT, **options).verdict is Verdict.NOT_REFUTED


def test_what_is_in_the_data_of_each_arm():
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


def test_arrays_and_lists_are_both_data():
    class Vectors:
        def draw(self, rng, size):
            return rng.standard_normal((size, 3))

    def total(dataset, rng):
        return np.sum(dataset, axis=0)

    for dataset in ((), [], np.zeros((2, 3)), [np.zeros(3)]):
        target = Target(total, Vectors(), lambda output, canary: float(output @ canary), dataset=dataset)
        for design in DESIGNS:
            assert not run_trial(TrialSetup(target, design, 0), 0).failures


def test_streams_are_separate():
    """The mechanism's generator is not the coins', nor the canaries', nor another arm's."""
    draws = []

    def spy(dataset, rng):
        draws.append(rng.random())
        return []

    target = Target(spy, Numbers(), lambda output, canary: 0.0)
    for trial in range(3):
        run_trial(TrialSetup(target, LeaveOneOut(2, 2), 0), trial)
    assert len(set(draws)) == 6


def test_the_result_tells_its_story():
    result = run(trials=60)
    assert str(result).startswith("refuted: leaky claims (1, 1e-05)-DP")
    plain = json.loads(result.to_json())
    assert plain["verdict"] == "refuted"
    assert plain["bound"]["epsilon"] == result.bound.epsilon > 1
    assert plain["models"] == 60
    assert {"python", "numpy"} <= set(plain["versions"])
    assert len(plain["trials"]) == 60
    assert result.table().row_count >= 4
    assert result.bound.path


def test_the_witness_is_enough():
    result = run(trials=60)
    witness = json.loads(json.dumps(result.witness()))
    assert lidp.recheck(witness).epsilon == result.bound.epsilon
    witness["epsilon"] += 0.5
    with pytest.raises(InvalidArgument, match="its scores give"):
        lidp.recheck(witness)


def test_the_plot():
    pytest.importorskip("matplotlib")
    figure = run(trials=60).plot()
    (axes,) = figure.axes
    assert axes.get_xlabel() == "trials"
    assert max(axes.lines[0].get_ydata()) == run(trials=60).bound.epsilon


def test_early_stopping_gives_the_bound_at_the_first_refutation():
    full = run(trials=120)
    early = run(trials=120, stop_when="refuted")
    first = next(seen for seen, epsilon in full.bound.path if epsilon > 1)
    assert early.bound.trials == first < 120
    assert early.bound.epsilon == full.bound.epsilon_after(first)


def test_too_few_trials_are_said_to_be_too_few():
    assert run(SILENT, trials=2, claim=Claim(5.0, 1e-5)).verdict is Verdict.UNDECIDED
    assert run(SILENT, trials=60).verdict is Verdict.NOT_REFUTED


def test_metadata_is_kept():
    target = Target(lambda d, rng: lidp.Output(list(d), {"accuracy": 0.5}), Numbers(), closeness)
    assert run(target, trials=3).notes[0].metadata == {"scores_accuracy": 0.5}


def test_preparation_runs_once_and_is_counted(tmp_path):
    calls = []

    def prepare(dataset, rng):
        calls.append(rng.random())
        return lidp.Prepared({"centre": np.array([1.0, 2.0])}, models=16)

    def score(output, canary, prepared):
        return closeness(output, canary) + float(prepared["centre"].sum())

    target = Target(engine.leaky, Numbers(), score, prepare=prepare)
    result = run(target, trials=20, store=tmp_path / "a.db")
    assert (result.preparation_models, result.models) == (16, 36)
    assert "(16 to prepare)" in str(result)
    again = run(target, trials=20, store=tmp_path / "a.db")
    assert again.models == 36
    assert len(calls) == 1


# Whoever runs it.


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_one_worker_or_two_is_the_same(design):
    options = {"claim": claim_for(design), "design": design}
    same(run(**options, workers=1), run(**options, workers=2))


def test_many_at_a_time_is_the_same():
    batched = Target(Many(), Numbers(), closeness, dataset=[0.5, -0.5], name="leaky")
    for design in DESIGNS:
        options = {"claim": claim_for(design), "design": design, "trials": 70}
        same(run(**options), run(batched, **options))
    assert batched.mechanism.batches == 2 * len(DESIGNS)
    same(run(trials=70), run(batched, trials=70, workers=2))


def test_a_batch_that_fails_is_told_apart_trial_by_trial():
    class Fussy(Many):
        def run_many(self, datasets, rngs):
            raise RuntimeError("one of these is bad")

    fussy = Target(Fussy(), Numbers(), closeness, dataset=[0.5, -0.5], name="leaky")
    same(run(fussy), run())


def test_a_store_changes_nothing(tmp_path):
    with_store = run(store=tmp_path / "a.db")
    same(with_store, run())
    same(with_store, lidp.result_of(tmp_path / "a.db"))
    same(with_store, run(store=tmp_path / "a.db"))


def test_resuming_half_an_audit_is_the_same(tmp_path):
    class Stop(Exception):
        pass

    def stopper(progress):
        if progress.done >= 10:
            raise Stop

    target = Target(engine.slow, Numbers(), closeness, dataset=[0.5], name="slow")
    with pytest.raises(Stop):
        run(target, trials=60, store=tmp_path / "a.db", watch=stopper)
    with Store.read(tmp_path / "a.db") as store:
        before = store.finished()
    assert 10 <= len(before) < 60
    same(run(target, trials=60, store=tmp_path / "a.db"), run(target, trials=60))


def test_killed_ten_times_at_random_moments(tmp_path):
    """SIGKILL of the whole process group; no trial is lost after it was recorded, none is run twice."""
    path = tmp_path / "a.db"
    command = [
        sys.executable, "-m", "lidp", "audit", "tests.engine:SLOW", "--epsilon", "9", "--trials", "400", "--canaries", "4",
        "--workers", "2", "--store", str(path), "--stop-when", "never", "--quiet",
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    kept: list[int] = []
    for _ in range(10):
        process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL)
        time.sleep(float(rng.uniform(0.8, 1.8)))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if path.exists() and is_store(path):
            with Store.read(path) as store:
                now = store.finished()
            assert set(kept) <= set(now)
            kept = now
    assert kept, "nothing was recorded before the last kill"
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    with Store.read(path) as store:
        assert store.finished() == list(range(400))
    expected = lidp.audit(
        engine.SLOW, claim=Claim(9.0), design=CoinFlip(4), trials=400, stop_when="never", executor=Processes(2)
    )
    same(lidp.result_of(path), expected)


# Trouble.


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_failing_runs_are_kept_and_named(design):
    target = Target(Trouble("raises", 0.2), Numbers(), closeness, dataset=[0.5])
    result = run(target, claim=claim_for(design), design=design, trials=60)
    assert 3 <= result.failed_runs <= 60
    assert result.bound.trials == 60
    reasons = [reason for note in result.notes for reason in note.failures.values()]
    assert all("no luck today" in reason for reason in reasons)
    assert "runs failed (kept, not bet on)" in str(result)
    assert lidp.recheck(json.loads(json.dumps(result.witness()))).epsilon == result.bound.epsilon


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_canaries_that_cannot_be_scored_get_a_constant_and_are_counted(design):
    target = Target(Trouble("nan", 0.2), Numbers(), closeness, dataset=[0.5])
    result = run(target, claim=claim_for(design), design=design, trials=60)
    assert result.failed_runs == 0
    assert result.unscored_canaries > 10
    assert "could not be scored" in str(result)


def test_all_failed_is_no_verdict():
    def broken(dataset, rng):
        raise RuntimeError("never works")

    with pytest.raises(AuditFailed, match="all 5 trials failed, the first with: RuntimeError: never works"):
        run(Target(broken, Numbers(), closeness), trials=5)


def test_a_mechanism_may_work_on_its_records_in_place():
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


def test_global_generators_differ_from_trial_to_trial():
    def careless(dataset, rng):
        return np.random.random()  # noqa: NPY002  # what careless mechanisms do

    target = Target(careless, Numbers(), lambda output, canary: output)
    one, two = (run(target, trials=20, workers=workers, design=CoinFlip(1)) for workers in (1, 2))
    same(one, two)
    assert len(set(one.scores.flips()[0].ravel())) == 20


def test_a_method_that_is_not_anytime_valid_says_nothing_half_way(tmp_path):
    def interrupt(progress):
        if progress.done >= 10:
            raise KeyboardInterrupt

    options = {"trials": 400, "store": tmp_path / "a.db", "method": lidp.OneRun(), "stop_when": None}
    with pytest.raises(AuditInterrupted) as caught:
        run(Target(engine.slow, Numbers(), closeness), watch=interrupt, **options)
    assert caught.value.result is not None
    assert caught.value.result.verdict is Verdict.UNDECIDED
    assert "says nothing before all 400 trials" in str(caught.value.result)


def test_a_store_knows_what_was_audited(tmp_path):
    run(Target(engine.NoisyCount(1.0), engine.Bits(), engine.itself), store=tmp_path / "a.db", trials=5)
    for other in (
        Target(engine.NoisyCount(2.0), engine.Bits(), engine.itself),
        Target(engine.NoisyCount(1.0), Numbers(), engine.itself),
        Target(engine.NoisyCount(1.0), engine.Bits(), engine.itself, dataset=[1.0]),
    ):
        with pytest.raises(StoreError, match="fingerprint was"):
            run(other, store=tmp_path / "a.db", trials=5)


def test_workers_do_not_outlive_a_killed_parent(tmp_path):
    """Only the parent is killed: the store is free at once and can be gone on with."""
    path = tmp_path / "a.db"
    command = [
        sys.executable, "-m", "lidp", "audit", "tests.engine:SLOW", "--epsilon", "9", "--trials", "300", "--canaries", "4",
        "--workers", "2", "--store", str(path), "--stop-when", "never", "--quiet",
    ]  # fmt: skip
    command[command.index("300")] = "3000"
    finished = 0
    for how in (signal.SIGKILL, signal.SIGTERM):
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        finished = engine.wait_for_more(path, finished)
        os.kill(process.pid, how)
        assert process.wait() == (-9 if how == signal.SIGKILL else 130)
    time.sleep(0.5)
    Store.open(path).close()


def test_a_worker_that_dies_in_a_batch_is_found_by_running_one_by_one():
    class Killer(Many):
        def __call__(self, dataset, rng):
            if rng.random() < 0.05:
                os._exit(7)
            return leaky_output(dataset, rng)

        def run_many(self, datasets, rngs):
            return [self(dataset, rng) for dataset, rng in zip(datasets, rngs, strict=True)]

    def leaky_output(dataset, rng):
        return [value + 0.01 * rng.standard_normal() for value in dataset]

    result = run(Target(Killer(), Numbers(), closeness), workers=2, trials=150)
    assert 1 <= result.failed_runs <= 20
    assert result.retried_trials == result.failed_runs


def test_a_process_that_dies_costs_its_trial_only():
    target = Target(Trouble("dies"), Numbers(), closeness, dataset=[0.5])
    result = run(target, workers=2, trials=60)
    assert 1 <= result.failed_runs <= 15
    dead = [note for note in result.notes if note.failures]
    assert all(note.attempts == 2 for note in dead)
    assert all("worker process died (exit code 9)" in note.failures["scores"] for note in dead)
    strict = run(target, workers=2, trials=60, retry=False)
    assert [note.index for note in strict.notes if note.failures] == [note.index for note in dead]
    assert all(note.attempts == 1 for note in strict.notes)
    assert strict.bound.epsilon == result.bound.epsilon


def test_a_second_try_has_the_same_coins_and_stream(tmp_path):
    fragile = Target(engine.DiesOnce(str(tmp_path)), Numbers(), closeness, dataset=[0.5], name="x")
    result = run(fragile, workers=2, trials=30)
    assert result.retried_trials >= 2
    assert result.failed_runs == 0
    same(result, run(fragile, workers=1, trials=30))


def test_a_trial_that_hangs_is_given_up(tmp_path):
    target = Target(Trouble("hangs", 0.1), Numbers(), closeness, dataset=[0.5])
    start = time.monotonic()
    result = run(target, trials=30, time_limit=0.5, workers=2, store=tmp_path / "a.db")
    assert time.monotonic() - start < 30
    late = [note for note in result.notes if note.failures]
    assert late
    assert all("time limit of 0.5 s" in note.failures["scores"] for note in late)
    same(result, lidp.result_of(tmp_path / "a.db"))


def test_interrupting_keeps_what_is_done(tmp_path):
    def interrupt(progress):
        if progress.done >= 10:
            raise KeyboardInterrupt

    with pytest.raises(AuditInterrupted) as caught:
        run(engine.SLOW, trials=100, store=tmp_path / "a.db", watch=interrupt)
    assert caught.value.result is not None
    assert caught.value.result.bound.trials >= 10
    same(run(engine.SLOW, trials=100, store=tmp_path / "a.db"), run(engine.SLOW, trials=100))


@pytest.mark.parametrize("executor", [Serial(), Processes(2)], ids=["serial", "processes"])
def test_executors_run_every_trial_once(executor):
    setup = TrialSetup(LEAKY, CoinFlip(4), 0)
    found = [record.index for records in executor.run(setup, list(range(5, 90))) for record in records]
    assert sorted(found) == list(range(5, 90))


# What is refused.


def test_a_store_of_another_audit_is_refused_by_name(tmp_path):
    run(store=tmp_path / "a.db")
    for change, message in (
        ({"seed": 4}, "seed was 3, is 4"),
        ({"trials": 41}, "trials was 40, is 41"),
        ({"claim": Claim(2.0, 1e-5)}, "claim was"),
        ({"design": CoinFlip(7)}, "design was"),
        ({"method": lidp.OneRun()}, "method was"),
    ):
        with pytest.raises(StoreError, match=message):
            run(store=tmp_path / "a.db", **change)


def test_two_writers(tmp_path):
    with Store.create(tmp_path / "a.db", {}), pytest.raises(StoreError, match="being written to by another audit"):
        Store.open(tmp_path / "a.db")


def test_files_that_are_no_stores(tmp_path):
    (tmp_path / "a.db").write_text("hello")
    with pytest.raises(StoreError, match="not a store"):
        run(store=tmp_path / "a.db")
    with pytest.raises(StoreError, match="no such store"):
        lidp.result_of(tmp_path / "b.db")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be opened"):
        run(store=tmp_path / "file" / "a.db")


def test_stopping_early_is_for_anytime_valid_methods():
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
def test_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        run(**options)


def test_bad_targets():
    with pytest.raises(InvalidArgument, match="needs canaries= and score="):
        lidp.audit(engine.leaky, claim=CLAIM)
    with pytest.raises(InvalidArgument, match="has its own"):
        lidp.audit(LEAKY, claim=CLAIM, canaries=Numbers())
    with pytest.raises(InvalidArgument, match="mechanism must be callable"):
        Target(3, Numbers(), closeness)
    with pytest.raises(InvalidArgument, match="score must be callable"):
        Target(engine.leaky, Numbers(), 3)
    with pytest.raises(InvalidArgument, match="draw"):
        Target(engine.leaky, 3, closeness)  # type: ignore[arg-type]

    class Broken:
        def draw(self, rng, size):
            return [1.0]

    with pytest.raises(AuditFailed, match="gave 1 canaries instead of 2"):
        run(Target(engine.leaky, Broken(), closeness))
    with pytest.raises(AuditFailed, match=r"preparation of leaky failed: ZeroDivisionError"):
        run(Target(engine.leaky, Numbers(), closeness, prepare=lambda d, rng: 1 / 0))


def test_a_mechanism_that_exits_has_failed():
    def leaves(dataset, rng):
        sys.exit(3)

    with pytest.raises(AuditFailed, match="all 5 trials failed, the first with: SystemExit: 3"):
        run(Target(leaves, Numbers(), closeness), trials=5)


def test_odd_metadata_is_still_json():
    target = Target(lambda d, rng: lidp.Output(list(d), {"loss": float("nan"), "n": np.int64(3)}), Numbers(), closeness)
    noted = json.loads(run(target, trials=2).to_json())["trials"][0]["metadata"]
    assert noted == {"scores_loss": "nan", "scores_n": 3}


@pytest.mark.parametrize("workers", [1, 2])
def test_canaries_that_cannot_be_drawn_end_the_audit(workers):
    class Moody:
        def draw(self, rng, size):
            if size > 2 and rng.random() < 0.3:
                raise RuntimeError("no canary today")
            return rng.standard_normal(size)

    with pytest.raises(AuditFailed, match="drawing the canaries of trial"):
        run(Target(engine.leaky, Moody(), closeness), workers=workers)


def test_printing_does_not_get_into_the_json(capfd):
    from lidp.cli.app import run as command

    for workers in ("1", "2"):
        code = command(
            [
                "audit",
                "tests.engine:CHATTY",
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
