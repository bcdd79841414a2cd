"""Audits of two data sets with a store: killed, resumed, and run by several workers, the result is the same."""

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
from lidp import AuditFailed, Claim, InvalidArgument, PairTarget, StoreError, Verdict, audit_pair
from lidp.engine.audit import resume
from lidp.store import Store
from tests.pairs.mechanisms import Laplace
from tests.stores import edit
from tests.waiting import wait_until

CLAIM = Claim(1.0)
PAIR = PairTarget(Laplace(1.0), 0, 1)
ROOT = Path(__file__).resolve().parents[2]
AUDIT = """
import json, sys
import lidp
from tests.pairs.test_pair_stores import Texts
result = lidp.audit_pair(Texts(0.3), 0, 1, claim=lidp.Claim(1.0), runs=4000, stop_when="never",
                         store=sys.argv[1], workers=int(sys.argv[2]))
print(json.dumps(result.witness()))
"""


class Texts:
    """Randomised response that answers in lists and dicts of several parts, so that all kinds of outputs are stored."""

    draws_only_from_rng = True

    def __init__(self, chance):
        self.chance = chance

    def __call__(self, dataset, rng):
        lie = rng.random() < self.chance
        noise = rng.laplace(scale=2.0)
        return {"answer": "yes" if bool(dataset) != lie else "no", "noisy": [dataset + noise, noise > 0], "rare": None}


def witness_of(result):
    return json.loads(json.dumps(result.witness()))


def audit_texts(**options):
    return audit_pair(Texts(0.3), 0, 1, claim=CLAIM, **options)


def run_in_background(store, workers):
    command = [sys.executable, "-c", AUDIT, str(store), str(workers)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)


def kill_after(process, store, trials):
    """Kill an audit and its workers once its store has more than so many trials."""
    wait_until(lambda: trials_in(store) > trials or process.poll() is not None, f"{trials + 1} trials in {store}")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def trials_in(store):
    try:
        with Store.read(store) as opened:
            return len(opened.finished())
    except StoreError:
        return 0


@pytest.mark.slow_after_first
@pytest.mark.parametrize("workers", [1, 2])
def test_an_audit_that_is_killed_five_times_gives_the_same_result(tmp_path, workers):
    expected = witness_of(audit_texts(runs=4000, stop_when="never"))
    store = tmp_path / "a.db"
    for kills in range(5):
        kill_after(run_in_background(store, workers), store, kills)
    process = run_in_background(store, workers)
    output, _ = process.communicate()
    assert process.returncode == 0
    assert json.loads(output) == expected


def test_two_workers_give_the_result_of_one(tmp_path):
    one = audit_pair(Laplace(0.5), 0, 1, claim=CLAIM)
    two = audit_pair(Laplace(0.5), 0, 1, claim=CLAIM, workers=2, store=tmp_path / "a.db")
    assert one.verdict is Verdict.REFUTED
    assert witness_of(one) == witness_of(two)
    assert one.leak == two.leak


def test_a_report_of_the_store_needs_neither_mechanism_nor_another_prediction(tmp_path):
    store = tmp_path / "a.db"
    result = audit_texts(runs=3000, store=store)
    stored = lidp.result_of(store)
    assert witness_of(stored) == witness_of(result)
    assert stored.leak == result.leak
    page = lidp.write_report(stored, tmp_path / "a.html").read_text(encoding="utf-8")
    assert "runs" in page


def test_a_finished_store_is_not_run_again(tmp_path):
    store = tmp_path / "a.db"
    result = audit_texts(runs=2000, store=store)

    progress = []
    again = audit_texts(runs=2000, store=store, watch=progress.append)
    assert not progress
    assert witness_of(again) == witness_of(result)


@pytest.mark.parametrize("change", [{"runs": 3000}, {"seed": 1}, {"bits": True}, {"failure_probability": 0.01}])
def test_a_store_of_another_audit_is_refused(tmp_path, change):
    store = tmp_path / "a.db"
    audit_texts(runs=2000, store=store)
    with pytest.raises(StoreError, match="belongs to another audit"):
        audit_texts(**{"runs": 2000, "store": store} | change)


def test_other_data_sets_are_refused(tmp_path):
    store = tmp_path / "a.db"
    audit_texts(runs=500, store=store)
    with pytest.raises(StoreError, match="is not what it was"):
        audit_pair(Texts(0.3), 0, 2, claim=CLAIM, runs=500, store=store)


class Guesses:
    """A classifier of a user's own: it looks at one column and has learned nothing but its mean."""

    def __init__(self):
        self.sums = np.zeros(2)
        self.counts = np.ones(2)

    def predict(self, outputs):
        values = outputs.select(["value"])[:, 0]
        means = self.sums / self.counts
        return np.clip((values - means.mean()) * np.sign(means[1] - means[0]), -2, 2)

    def learn(self, outputs, coins):
        values = outputs.select(["value"])[:, 0]
        for arm in (0, 1):
            self.sums[arm] += values[coins == arm].sum()
            self.counts[arm] += (coins == arm).sum()

    def explain(self):
        return f"means {self.sums / self.counts}"


def test_a_classifier_of_ones_own_is_replayed_from_the_store(tmp_path):
    store = tmp_path / "a.db"
    options = {"claim": CLAIM, "runs": 4000, "stop_when": "never"}
    expected = audit_pair(Laplace(1.0), 0, 1, classifier=Guesses(), **options)

    def interrupt(progress):
        if progress.done > 500:
            raise KeyboardInterrupt

    with pytest.raises(lidp.AuditInterrupted):
        audit_pair(Laplace(1.0), 0, 1, classifier=Guesses(), store=store, watch=interrupt, **options)
    half = lidp.result_of(store)  # without the classifier
    assert 0 < half.bound.trials < 4000
    resumed = audit_pair(Laplace(1.0), 0, 1, classifier=Guesses(), store=store, **options)
    assert witness_of(resumed) == witness_of(expected)
    assert lidp.result_of(store).leak == resumed.leak == expected.leak
    with pytest.raises(StoreError, match="options was"):
        audit_pair(Laplace(1.0), 0, 1, store=store, **options)


def test_predictions_that_a_kill_left_unwritten_are_made_when_the_audit_is_resumed(tmp_path):
    store = tmp_path / "a.db"
    options = {"claim": CLAIM, "runs": 1000, "stop_when": "never", "store": store}
    expected = audit_pair(Laplace(1.0), 0, 1, classifier=Guesses(), **options)
    edit(store, "DELETE FROM arrays WHERE owner = 'predictions' AND name IN ('4', '5')")
    assert lidp.result_of(store).bound.trials < 1000
    resumed = audit_pair(Laplace(1.0), 0, 1, classifier=Guesses(), **options)
    assert witness_of(resumed) == witness_of(expected) == witness_of(lidp.result_of(store))


class Memory(Guesses):
    """Remembers the coin of every output that it has learned; as an object that is used twice, it would know the coins."""

    def __init__(self, fail_after=None):
        super().__init__()
        self.known = {}
        self.blocks_left = fail_after

    def predict(self, outputs):
        return np.array([9.0 * self.known.get(value, 0.0) for value in outputs.select(["value"])[:, 0]])

    def learn(self, outputs, coins):
        self.known |= dict(zip(outputs.select(["value"])[:, 0].tolist(), np.where(coins, 1.0, -1.0), strict=True))
        if self.blocks_left is not None:
            self.blocks_left -= 1
            if not self.blocks_left:
                raise RuntimeError("learning failed")


def test_a_classifier_that_is_used_again_has_learned_nothing_from_the_first_audit():
    memory = Memory()
    for _ in range(2):
        assert audit_pair(Laplace(1.0), 0, 1, claim=CLAIM, runs=2000, classifier=memory).bound.epsilon == 0
    assert not memory.known


def test_a_classifier_that_fails_to_learn_does_not_bet_on_what_it_knows_when_resumed(tmp_path):
    options = {"claim": CLAIM, "runs": 2000, "store": tmp_path / "a.db"}
    with pytest.raises(RuntimeError, match="learning failed"):
        audit_pair(Laplace(1.0), 0, 1, classifier=Memory(fail_after=4), **options)
    assert audit_pair(Laplace(1.0), 0, 1, classifier=Memory(), **options).bound.epsilon == 0


def test_a_classifier_that_cannot_be_copied_is_refused():
    class Uncopied(Guesses):
        def __deepcopy__(self, memo):
            raise TypeError("never")

    with pytest.raises(InvalidArgument, match="the classifier cannot be copied .TypeError: never."):
        audit_pair(Laplace(1.0), 0, 1, claim=CLAIM, classifier=Uncopied())


def test_only_python_resumes_an_audit_with_a_classifier_or_a_search(tmp_path):
    spec = lidp.TargetSpec("pair", {"path": "tests.pairs.test_pair_stores:PAIR"})
    for options in ({"classifier": Guesses()}, {"pairs": [(0, 1), (1, 2)]}):
        store = tmp_path / f"{next(iter(options))}.db"
        audit_pair(Laplace(1.0), claim=CLAIM, runs=200, store=store, target_spec=spec, **{"d0": 0, "d1": 1} | options)
        with pytest.raises(StoreError, match="call lidp.audit_pair again with the same arguments"):
            resume(store, lambda *_: PAIR)


def test_a_search_is_made_once(tmp_path):
    store = tmp_path / "a.db"
    pairs = [(k, k + 1) for k in range(3)] + [(7, 12)]
    result = audit_pair(Laplace(1.0), pairs=pairs, claim=CLAIM, runs=4000, store=store)
    again = audit_pair(Laplace(1.0), pairs=pairs, claim=CLAIM, runs=4000, store=store)
    assert again.preparation_models == result.preparation_models > 0
    assert witness_of(again) == witness_of(result)
    with pytest.raises(StoreError, match="belongs to another audit"):
        audit_pair(Laplace(1.0), pairs=pairs[1:], claim=CLAIM, runs=4000, store=store)


class DiesOrHangs(Laplace):
    """Kills its process, or sleeps for long, in a good part of all runs: also in those that try it before the audit."""

    draws_only_from_rng = True
    many = None

    def __init__(self, hangs):
        super().__init__(1.0)
        self.hangs = hangs

    def __call__(self, dataset, rng):
        if rng.random() < 0.05:
            if self.hangs:
                time.sleep(3600)
            os.kill(os.getpid(), signal.SIGKILL)
        return dataset + rng.laplace()


@pytest.mark.parametrize("hangs", [False, True])
def test_a_mechanism_that_dies_or_hangs_when_it_is_tried_harms_nobody(hangs):
    options = {"workers": 2, "time_limit": 0.5 if hangs else None}
    with pytest.raises(AuditFailed, match="all 64 runs"):
        audit_pair(DiesOrHangs(hangs), 0, 1, claim=CLAIM, runs=64, **options)


class Dies(Laplace):
    """Kills its process when it has drawn a large value."""

    def __call__(self, dataset, rng):
        value = dataset + rng.laplace()
        if value > 7.0:
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    many = None


def test_a_block_whose_process_died_is_kept_and_not_bet_on(tmp_path):
    result = audit_pair(Dies(1.0), 0, 1, claim=CLAIM, runs=6000, workers=2, store=tmp_path / "a.db", stop_when="never")
    failed = result.scores.failed[:, 0]
    assert 0 < failed.sum() < 6000
    assert result.failed_runs == failed.sum()
    assert result.verdict is not Verdict.REFUTED
    assert witness_of(lidp.result_of(tmp_path / "a.db")) == witness_of(result)


def test_generators_that_are_the_same_in_every_worker_are_refused():
    rng = np.random.default_rng()

    def mechanism(dataset, _):
        return dataset + rng.laplace()

    with pytest.raises(InvalidArgument, match="do not come from rng"):
        audit_pair(mechanism, 0, 1, claim=CLAIM, runs=5000, workers=2)
