"""``open_seal``: one look is one look, and nothing that was changed is opened."""

import json

import pytest

from lidp import Claim, CoinWager, Scores, Verdict, bound
from lidp.errors import InvalidArgument, InvalidScores, SealError
from lidp.seals import open_seal, seal_next
from lidp.seals.opening import SCORES_ALONE
from tests.seals.sealed import coins_of, edit_json, gradients, scored, simulated, write_csv


@pytest.fixture
def sealed(tmp_path):
    gradients(tmp_path / "s")
    return tmp_path / "s"


def looks(folder):
    file = folder / "openings.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_bound_is_that_of_the_committed_method_on_the_joined_scores(sealed):
    opened = open_seal(sealed, scored(sealed, shift=3.0))
    coins = list(coins_of(sealed).values())
    values = list(simulated(sealed, shift=3.0).values())
    direct = bound(Scores(scores=[values], coins=[coins]), CoinWager(), claim=Claim(0.5))
    assert opened.verdict is Verdict.REFUTED
    assert opened.result.bound == direct
    assert opened.result.bound.failure_probability == 0.05


def test_a_training_that_reveals_nothing_is_not_refuted(sealed):
    opened = open_seal(sealed, scored(sealed))
    assert opened.verdict is Verdict.NOT_REFUTED
    assert "not refuted" in str(opened)


def test_result_names_hypothesis_assumptions_and_commitment(sealed):
    opened = open_seal(sealed, scored(sealed))
    text = str(opened)
    assert f"assumes    {SCORES_ALONE}" in text
    assert "hypothesis the mechanism is (ε, δ)-DP" in text
    assert opened.evidence[0].commitment.digest in text
    assert opened.result.assumptions.count(SCORES_ALONE) == 1


def test_same_scores_are_no_further_look(sealed):
    first = open_seal(sealed, scored(sealed))
    rows = simulated(sealed)
    again = open_seal(sealed, write_csv(sealed.with_name("again.csv"), dict(reversed(rows.items()))))
    assert str(again) == str(first)
    assert len(looks(sealed)) == 1
    assert again.time == first.time


def test_other_scores_are_refused(sealed):
    open_seal(sealed, scored(sealed))
    with pytest.raises(SealError, match="opened with other scores before"):
        open_seal(sealed, scored(sealed, seed=2))
    with pytest.raises(SealError, match="opened with other scores before"):
        open_seal(sealed, failed={1: "it did not"})
    assert len(looks(sealed)) == 1


def test_look_is_recorded_with_the_verdict(sealed):
    opened = open_seal(sealed, scored(sealed, shift=3.0))
    (look,) = looks(sealed)
    assert (look["number"], look["verdict"], look["evidence"]) == (1, "refuted", opened.evidence_hash)


def test_refused_scores_spend_no_look(sealed):
    rows = simulated(sealed)
    rows.popitem()
    with pytest.raises(InvalidScores, match="has no score"):
        open_seal(sealed, write_csv(sealed.with_name("short.csv"), rows))
    assert looks(sealed) == []
    assert open_seal(sealed, scored(sealed, seed=2)).look.number == 1


def test_reserved_looks_share_the_failure_probability_and_tell_the_verdict_alone(tmp_path):
    gradients(tmp_path / "s", looks=3)
    first = open_seal(tmp_path / "s", scored(tmp_path / "s", seed=1))
    assert first.result is None
    assert "ε ≥" not in str(first)
    assert (first.look.number, first.look.left) == (1, 2)
    assert open_seal(tmp_path / "s", scored(tmp_path / "s", seed=2)).result is None
    third = open_seal(tmp_path / "s", scored(tmp_path / "s", seed=3))
    assert third.result.bound.failure_probability == pytest.approx(0.05 / 3)
    assert "look       3 of 3" in str(third)
    with pytest.raises(SealError, match="other scores"):
        open_seal(tmp_path / "s", scored(tmp_path / "s", seed=4))
    assert open_seal(tmp_path / "s", scored(tmp_path / "s", seed=2)).look.number == 2


def test_last_look_gives_up_the_others(tmp_path):
    gradients(tmp_path / "s", looks=3)
    assert open_seal(tmp_path / "s", scored(tmp_path / "s", seed=1), last=True).result is not None
    with pytest.raises(SealError, match="its result was told"):
        open_seal(tmp_path / "s", scored(tmp_path / "s", seed=2))


def test_refuting_look_tells_everything_and_ends_the_looks(tmp_path):
    gradients(tmp_path / "s", looks=3)
    opened = open_seal(tmp_path / "s", scored(tmp_path / "s", shift=4.0))
    assert opened.verdict is Verdict.REFUTED
    assert opened.result.bound.epsilon > 0.5
    with pytest.raises(SealError, match="its result was told"):
        open_seal(tmp_path / "s", scored(tmp_path / "s", seed=2))


def sequence(tmp_path, count, **options):
    gradients(tmp_path / "1", **options)
    for number in range(2, count + 1):
        seal_next(tmp_path / str(number - 1), tmp_path / str(number), seed=number)
    return [tmp_path / str(number) for number in range(1, count + 1)]


def test_further_runs_add_up_and_are_no_new_look(tmp_path):
    folders = sequence(tmp_path, 2)
    files = [scored(folder, shift=1.5) for folder in folders]
    one = open_seal(folders[0], files[0])
    two = open_seal(folders, files)
    assert (one.result.bound.trials, two.result.bound.trials) == (1, 2)
    assert two.result.bound.epsilon > one.result.bound.epsilon
    assert [len(looks(folder)) for folder in folders] == [2, 1]


def test_scores_of_earlier_runs_cannot_change_later(tmp_path):
    folders = sequence(tmp_path, 2)
    files = [scored(folder) for folder in folders]
    open_seal(folders, files)
    other = scored(folders[0], seed=9)
    for paths, given in (
        (folders, [other, files[1]]),
        (folders[:1], [other]),
        (folders, [files[0], scored(folders[1], seed=9)]),
    ):
        with pytest.raises(SealError, match="other scores"):
            open_seal(paths, given)


def test_runs_must_be_complete_in_order_and_of_one_plan(tmp_path):
    folders = sequence(tmp_path, 3)
    gradients(tmp_path / "other", seed=5)
    files = {folder: scored(folder) for folder in [*folders, tmp_path / "other"]}
    for chosen, reason in (
        ([folders[1]], "is run 2 of its plan, where run 1 is expected"),
        ([folders[0], folders[2]], "is run 3 of its plan, where run 2 is expected"),
        ([folders[0], folders[0]], "is run 1 of its plan, where run 2 is expected"),
        ([folders[0], tmp_path / "other"], "open seals of one plan together"),
        ([], "name the sealed folder"),
    ):
        with pytest.raises(SealError, match=reason):
            open_seal(chosen, [files[folder] for folder in chosen])
    assert [looks(folder) for folder in folders] == [[], [], []]


def test_a_run_sealed_after_another_first_run_is_refused(tmp_path):
    gradients(tmp_path / "a", seed=1)
    seal_next(tmp_path / "a", tmp_path / "b", seed=2)
    seal_next(tmp_path / "a", tmp_path / "c", seed=3)
    seal_next(tmp_path / "b", tmp_path / "d", seed=4)
    folders = [tmp_path / name for name in "acd"]
    with pytest.raises(SealError, match="was sealed after another run 2"):
        open_seal(folders, [scored(folder) for folder in folders])


def test_methods_of_fixed_size_wait_for_all_runs(tmp_path):
    claim = Claim.gaussian(1.0)
    folders = sequence(tmp_path, 2, claim=claim, runs=2, method="curve-wager-with-guesses")
    files = [scored(folder) for folder in folders]
    with pytest.raises(SealError, match="needs all 2 planned runs at once, and 1 are given"):
        open_seal(folders[0], files[0])
    assert looks(folders[0]) == []
    assert open_seal(folders, files).result.bound.trials == 2


def test_failed_trainings_are_runs_on_which_nothing_is_bet(tmp_path):
    folders = sequence(tmp_path, 2, canaries=20)
    only = open_seal(folders[0], failed={1: "out of memory"})
    assert only.verdict is Verdict.INCONCLUSIVE
    opened = open_seal(folders, [scored(folders[1], shift=5.0)], failed={1: "out of memory"})
    assert opened.result.failed_runs == 1
    assert opened.result.bound.trials == 2
    with pytest.raises(InvalidArgument, match="run 3 is said to have failed"):
        open_seal(folders, [], failed={3: "x"})
    with pytest.raises(InvalidArgument, match="need 2 files of scores, got 1"):
        open_seal(folders, [scored(folders[1])])


def test_unfair_coins_cannot_come_from_a_seal(sealed):
    from dataclasses import replace

    from lidp.seals.evidence import RunEvidence, scores_of
    from lidp.seals.sealed_run import read_sealed_run

    run = read_sealed_run(sealed)
    evidence = RunEvidence.of(run, run.coins.astype(float))
    with pytest.raises(InvalidScores, match="cannot come from lidp seal"):
        scores_of(run.commitment.plan, [replace(evidence, coins=run.coins | True)])


def test_deleted_coins_can_never_be_opened(sealed):
    scores = scored(sealed)
    (sealed / "coins.json").unlink()
    with pytest.raises(SealError, match="without its coins, now or ever"):
        open_seal(sealed, scores)


def test_changes_after_sealing_are_named(sealed):
    scores = scored(sealed)

    def flip(plain):
        name = next(iter(plain["coins"]))
        plain["coins"][name] = 1 - plain["coins"][name]

    def swap(path):
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join([lines[1], lines[0], *lines[2:]]))

    changes = {
        "coins.json": lambda path: edit_json(path, flip),
        "commitment.json": lambda path: edit_json(path, lambda plain: plain["plan"].update(failure_probability=0.5)),
        "candidates.jsonl": swap,
        "planting.json": lambda path: edit_json(path, lambda plain: plain["inserted"].pop()),
    }
    for name, change in changes.items():
        before = (sealed / name).read_bytes()
        change(sealed / name)
        with pytest.raises(SealError, match=f"{name} was changed after sealing"):
            open_seal(sealed, scores)
        (sealed / name).write_bytes(before)
    assert looks(sealed) == []
    open_seal(sealed, scores)


def test_the_data_set_may_be_elsewhere(sealed):
    (sealed / "planting.json").unlink()
    assert open_seal(sealed, scored(sealed)).verdict is Verdict.NOT_REFUTED


@pytest.mark.parametrize("name", ["coins.json", "commitment.json", "candidates.jsonl", "planting.json"])
def test_links_are_not_followed(sealed, name):
    scores = scored(sealed)
    (sealed / name).rename(sealed.with_name(name))
    (sealed / name).symlink_to(sealed.with_name(name))
    with pytest.raises(SealError, match="is a symbolic link"):
        open_seal(sealed, scores)


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        '{"format": 1}',
        '{"format": 1, "salt": "zz", "coins": {}, "seed": 1}',
        '{"format": 1, "coins": NaN}',
        "[]",
        "",
    ],
)
def test_hostile_coins_are_refused_in_one_line(sealed, content):
    scores = scored(sealed)
    (sealed / "coins.json").write_text(content)
    with pytest.raises(SealError, match=r"coins\.json") as error:
        open_seal(sealed, scores)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("coin", [2, True, 0.5, "1", None])
def test_coins_that_are_no_coins_are_refused(sealed, coin):
    scores = scored(sealed)
    edit_json(sealed / "coins.json", lambda plain: plain["coins"].update({next(iter(plain["coins"])): coin}))
    with pytest.raises(SealError, match=r"coins\.json"):
        open_seal(sealed, scores)


def test_folders_that_are_no_seals_are_refused(tmp_path):
    with pytest.raises(SealError, match="no such folder"):
        open_seal(tmp_path / "none", [])
    with pytest.raises(SealError, match=r"commitment\.json is missing"):
        open_seal(tmp_path, [])
