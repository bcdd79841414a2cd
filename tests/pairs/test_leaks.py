"""The search for the part of the output that leaks: it names the right part or none, and changes nothing else."""

import json
import re
import signal
from dataclasses import replace

import numpy as np
import pytest

import lidp
from lidp import AuditFailed, AuditInterrupted, Claim, Verdict, audit_pair
from lidp.engine.loop import LEAK
from lidp.engine.plan import AuditPlan
from lidp.engine.procedure import PairProcedure
from lidp.pairs.leaks import LOOKS, LeakFinding, _fisher, find_leak, looks_after
from lidp.pairs.runner import PairRunner
from lidp.store import Store
from lidp.target import PairTarget
from tests.pairs.mechanisms import Laplace
from tests.stores import edit

ONE = Claim(1.0)
SEEDS = range(20)


def reveals_c(data, rng):
    return {"a": rng.laplace(), "b": rng.laplace(), "c": data, "d": int(rng.integers(3))}


def reveals_an_element(data, rng):
    return [*rng.laplace(size=4), data, rng.laplace()]


def reveals_by_a_missing_key(data, rng):
    return {"a": rng.laplace(), "b": rng.laplace()} | ({"c": rng.laplace()} if data else {})


def reveals_by_length(data, rng):
    return rng.normal(size=int(rng.integers(2, 5)) + 4 * data).tolist()


def reveals_by_text(data, rng):
    return "yes" if bool(data) != (rng.random() < 0.1) else "no"


def reveals_by_raising(data, rng):
    if data and rng.random() < 0.6:
        raise ValueError("too many records")
    return {"a": rng.laplace(), "b": rng.laplace()}


def reveals_a_parity(data, rng):
    first = int(rng.integers(2))
    return {"a": first, "b": first ^ data, "c": rng.laplace(), "d": int(rng.integers(2))}


def reveals_a_parity_of_three(data, rng):
    first, second = (int(bit) for bit in rng.integers(0, 2, 2))
    return {"a": first, "b": second, "c": first ^ second ^ data}


class RevealsNowAndThen:
    """Its last element is the truth in 2 % of the runs, and -1 in the others."""

    def __call__(self, data, rng):
        return self.many(data, 1, rng)[0]

    def many(self, data, size, rng):
        return np.column_stack([rng.laplace(size=(size, 2)), np.where(rng.random(size) < 0.02, data, -1)])


CERTAIN = {
    reveals_c: "c = ",
    reveals_an_element: "element 4 = ",
    reveals_by_a_missing_key: "no c: ",
    reveals_by_length: ("length ", "no element "),
    reveals_by_text: "output '",
    reveals_by_raising: "the mechanism raises: ",
}


def plan_of_pair():
    return AuditPlan.for_pair(
        target=PairTarget(reveals_c, 0, 1),
        claim=ONE,
        runs=4000,
        failure_probability=0.05,
        seed=0,
        stop_when="refuted",
        target_spec=None,
        options={},
    )


def audit(mechanism, **options):
    return audit_pair(mechanism, 0, 1, **{"claim": ONE, "runs": 4000} | options)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("mechanism", CERTAIN)
def test_certain_leak_is_named_on_19_of_20_seeds(mechanism):
    results = [audit(mechanism, seed=seed, claim=Claim(0.5)) for seed in SEEDS]
    assert {result.verdict for result in results} == {Verdict.REFUTED}
    named = [result.leak.startswith(CERTAIN[mechanism]) for result in results]
    assert sum(named) >= 19, [result.leak for result in results]


def test_joint_leak_of_two_parts_names_both():
    for seed in SEEDS:
        assert re.match(r"(a \S.* and b |output )", audit(reveals_a_parity, seed=seed).leak)


@pytest.mark.parametrize(
    ("mechanism", "right"),
    [(reveals_a_parity_of_three, r"output \{"), pytest.param(RevealsNowAndThen(), r"element 2 = ", marks=pytest.mark.slow)],
)
def test_leak_that_no_part_shows_names_no_wrong_part(mechanism, right):
    results = [audit(mechanism, seed=seed, runs=20_000) for seed in SEEDS]
    assert sum(result.verdict is Verdict.REFUTED for result in results) >= 15
    for result in results:
        if result.verdict is Verdict.REFUTED:
            assert re.match(rf"not found in |{right}", result.leak), result.leak


def reveals_a_parity_beside_noise(data, rng):
    first = int(rng.integers(2))
    return [first ^ data, first, int(rng.integers(2))]


def test_noise_is_not_named_because_it_completes_a_sum():
    """The sum without the last element tells the parity, so the last element differs among lists of the same sum."""
    leaks = [audit(reveals_a_parity_beside_noise, seed=seed).leak for seed in SEEDS]
    assert not [leak for leak in leaks if re.search(r"(last|element 2) (=|of|from|below)", leak)]
    assert any(leak.startswith("element 0 ") and " and element 1 " in leak for leak in leaks), leaks


class ManyColumns:
    """Twelve columns of several kinds, none of which depends on the data set."""

    def __call__(self, data, rng):
        return self.many(data, 1, rng)[0]

    def many(self, data, size, rng):
        return np.column_stack([rng.normal(size=(size, 6)), rng.integers(0, 3, (size, 6))])


def test_without_a_leak_none_is_found():
    target = PairTarget(ManyColumns(), 0, 1)
    findings = [find_leak(PairRunner(target, seed).run, seed, 400) for seed in range(20)]
    assert not [finding.text for finding in findings if finding.found]
    assert {finding.runs for finding in findings} == {1024}
    assert "not found in 1,024 further runs" in findings[0].text
    assert 'stop_when="never"' in findings[0].text


def test_fisher_test_agrees_with_scipy():
    from scipy.stats import fisher_exact

    rng = np.random.default_rng(3)
    for _ in range(50):
        totals = rng.integers(1, 60, 2)
        counts = np.minimum(rng.integers(0, 60, 2), totals)
        table = [counts, totals - counts]
        tails = [fisher_exact(table, alternative=side).pvalue for side in ("less", "greater")]
        assert _fisher(counts, totals) == pytest.approx(min(1.0, 2 * min(tails)))


def test_looks_grow_with_the_runs_of_the_audit():
    assert looks_after(1) == (64, 256)
    assert looks_after(400) == (64, 256, 1024)
    assert looks_after(10**9) == LOOKS


def test_search_changes_neither_verdict_nor_bound(monkeypatch):
    searched = [audit(reveals_c, seed=seed) for seed in range(3)]
    monkeypatch.setattr(PairProcedure, "leak_search", lambda *_: None)
    plain = [audit(reveals_c, seed=seed) for seed in range(3)]
    for one, other in zip(searched, plain, strict=True):
        assert one.bound == other.bound
        assert one.verdict is other.verdict
        assert json.dumps(one.witness()) == json.dumps(other.witness())
    assert {result.leak for result in plain} == {
        "not found in the runs of the audit; resume the audit to search in further runs"
    }


def test_further_runs_have_streams_of_their_own():
    drawn = []

    def mechanism(data, rng):
        drawn.append(rng.laplace())
        return {"noise": drawn[-1], "c": data}

    result = audit(mechanism)
    assert "of 64 further runs" in result.leak
    assert len(drawn) == len(set(drawn)) >= result.bound.trials + 64


def test_store_keeps_what_was_found(tmp_path):
    store = tmp_path / "a.db"
    result = audit(reveals_c, store=store)
    assert result.leak.startswith("c = ")
    assert lidp.result_of(store).leak == result.leak
    assert result.leak in lidp.write_report(lidp.result_of(store), tmp_path / "a.html").read_text(encoding="utf-8")
    assert audit(reveals_c, store=store).leak == result.leak


def test_search_is_not_repeated_when_a_finished_store_is_opened_again(tmp_path, monkeypatch):
    result = audit(reveals_c, store=tmp_path / "a.db")
    monkeypatch.setattr("lidp.engine.procedure.find_leak", lambda *_: LeakFinding("searched again", 1, found=True))
    assert audit(reveals_c, store=tmp_path / "a.db").leak == result.leak
    assert audit(reveals_c).leak == "searched again"


def test_store_of_an_audit_killed_before_the_search_is_searched_when_resumed(tmp_path):
    store = tmp_path / "a.db"
    expected = audit(reveals_c, store=store)
    edit(store, "DELETE FROM facts WHERE name IN ('leak_search', 'leak')")
    assert lidp.result_of(store).leak.startswith("not found in the runs of the audit")
    assert audit(reveals_c, store=store).leak == lidp.result_of(store).leak == expected.leak


def test_search_that_found_nothing_goes_on_when_more_runs_are_allowed():
    plan = plan_of_pair()
    nothing, something = (LeakFinding("", 256, found=found) for found in (False, True))
    search = PairProcedure().leak_search
    assert search(plan, 100, None) is not None
    assert search(plan, 100, nothing) is None
    assert search(plan, 400, nothing) is not None
    assert search(plan, 400, something) is None
    assert search(replace(plan, options={"classifier": "mine"}), 100, None) is None


def test_damaged_finding_is_ignored(tmp_path):
    store = tmp_path / "a.db"
    audit(reveals_c, store=store)
    with Store.open(store) as opened:
        opened.keep_fact(LEAK, {"text": 3, "runs": True, "found": "yes"})
    assert lidp.result_of(store).leak.startswith("not found in the runs of the audit")
    assert LeakFinding.from_plain(LeakFinding("c", 64, found=True).to_dict()) == LeakFinding("c", 64, found=True)


def test_further_runs_that_fail_do_not_fail_the_audit():
    class Moody(Laplace):
        refuse = False

        def many(self, dataset, size, rng):
            if self.refuse:
                raise OSError("no more runs today")
            return super().many(dataset, size, rng)

    mechanism = Moody(0.2)

    def watch(progress):
        mechanism.refuse = progress.epsilon is not None and progress.epsilon > 1

    result = audit(mechanism, watch=watch)
    assert result.verdict is Verdict.REFUTED
    assert result.leak == "not found: further runs failed (Moody.many raised OSError: no more runs today)"


def test_interrupt_of_the_search_keeps_the_refutation(tmp_path):
    class Interrupted(Laplace):
        stop = False

        def many(self, dataset, size, rng):
            if self.stop:
                signal.raise_signal(signal.SIGINT)
            return super().many(dataset, size, rng)

    mechanism = Interrupted(0.2)

    def watch(progress):
        mechanism.stop = progress.epsilon is not None and progress.epsilon > 1

    with pytest.raises(AuditInterrupted) as caught:
        audit(mechanism, watch=watch, store=tmp_path / "a.db")
    assert caught.value.result.verdict is Verdict.REFUTED
    assert lidp.result_of(tmp_path / "a.db").verdict is Verdict.REFUTED


def test_hostile_key_stays_text():
    result = audit(lambda data, rng: {"\x1b[2J": data, "a": rng.laplace()})
    assert result.leak.startswith("\\x1b[2J = ")
    assert "\x1b" not in str(result)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (AuditFailed("the worker died"), "the worker died"),
        (RuntimeError("a process\nfailed"), "RuntimeError: a process failed"),
        (TypeError("x" * 600), f"TypeError: {'x' * 489}"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_find_leak_reports_runs_that_cannot_be_made(error, reason):
    """Whatever the error is: the claim is refuted, and that must not be lost."""

    def run(number, coins):
        raise error

    assert find_leak(run, 0, 100) == LeakFinding(f"not found: further runs failed ({reason})", 0, found=False)
