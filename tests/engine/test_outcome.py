import pytest

from lidp.engine.outcome import OUTCOME, Outcome
from lidp.result import Verdict
from lidp.store import Store
from tests.sample_targets import InterruptedAfter, run


def kept(path):
    with Store.read(path) as store:
        return Outcome.from_plain(store.fact(OUTCOME))


def test_a_finished_audit_keeps_its_outcome(tmp_path):
    result = run(trials=60, store=tmp_path / "a.db")
    assert kept(tmp_path / "a.db") == Outcome(Verdict.REFUTED, result.bound.epsilon, 60, 60)


def test_an_interrupted_audit_keeps_none_until_it_is_resumed(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(trials=20, store=tmp_path / "a.db", executor=InterruptedAfter(5))
    assert kept(tmp_path / "a.db") is None
    run(trials=20, store=tmp_path / "a.db")
    assert kept(tmp_path / "a.db").rows == 20


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "true"},
        {"verdict": []},
        {"epsilon": "1"},
        {"epsilon": float("nan")},
        {"rows": 1.5},
        {"planned": None},
        {"more": 1},
    ],
    ids=str,
)
def test_anything_else_is_no_outcome(change):
    plain = Outcome(Verdict.REFUTED, 2.0, 5, 10).to_dict()
    assert Outcome.from_plain(plain) == Outcome(Verdict.REFUTED, 2.0, 5, 10)
    assert Outcome.from_plain(plain | change) is None
    assert Outcome.from_plain([plain]) is None
