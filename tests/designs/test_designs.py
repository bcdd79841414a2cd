"""Designs: layouts, lost trials, record checks and JSON, without running a mechanism."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lidp import CoinFlip, InvalidArgument, LeaveOneOut, Neighbours, ReplaceOne
from lidp.designs import DESIGNS, PairRuns, check_canary_design, design_from_json
from lidp.designs.trial_record import TrialRecord
from lidp.scores import Scores
from lidp.streams import draw_coins
from tests.designs.records import SEED, draw_numbers, record_of

CANARY_DESIGNS = [CoinFlip(6), CoinFlip(6, Neighbours.REPLACE_ONE), LeaveOneOut(4, 3), ReplaceOne(4, 3)]
ALL_DESIGNS = [*CANARY_DESIGNS, PairRuns(100), PairRuns(100, Neighbours.REPLACE_ONE)]

by_design = pytest.mark.parametrize("design", CANARY_DESIGNS, ids=str)


def arms_of(design, index=2):
    return {arm.name: arm for arm in design.lay_out(draw_numbers, SEED, index).arms}


@by_design
def test_lay_out_depends_on_seed_and_index_only(design):
    first, again = arms_of(design), arms_of(design)
    for name, arm in first.items():
        np.testing.assert_array_equal(arm.inserted, again[name].inserted)
        np.testing.assert_array_equal(arm.tested, again[name].tested)
    for changed in (design.lay_out(draw_numbers, SEED + 1, 2), design.lay_out(draw_numbers, SEED, 3)):
        assert not np.array_equal(changed.arms[0].tested, design.lay_out(draw_numbers, SEED, 2).arms[0].tested)


@by_design
def test_lay_out_tests_as_many_canaries_as_the_record_holds(design):
    for name, arm in arms_of(design).items():
        assert len(arm.tested) == len(arm.others) == design.array_sizes[name]


@by_design
def test_others_never_contain_the_tested_canary(design):
    for arm in arms_of(design).values():
        for tested, others in zip(arm.tested, arm.others, strict=True):
            assert tested not in np.asarray(arm.inserted)[others]


def test_coin_flip_inserts_the_canaries_whose_coin_is_one():
    layout = CoinFlip(6).lay_out(draw_numbers, SEED, 2)
    (arm,) = layout.arms
    np.testing.assert_array_equal(layout.coins, draw_coins(SEED, trial=2, size=6))
    np.testing.assert_array_equal(arm.inserted, arm.tested[layout.coins == 1])


def test_coin_flip_others_are_the_inserted_canaries_of_lower_index():
    layout = CoinFlip(6).lay_out(draw_numbers, SEED, 2)
    (arm,) = layout.arms
    for k in range(6):
        expected = [arm.tested[j] for j in range(k) if layout.coins[j]]
        assert list(arm.inserted[arm.others[k]]) == expected


def test_coin_flip_for_replace_one_inserts_one_canary_of_every_pair():
    layout = CoinFlip(6, Neighbours.REPLACE_ONE).lay_out(draw_numbers, SEED, 2)
    (arm,) = layout.arms
    assert len(arm.inserted) == 6
    np.testing.assert_array_equal(arm.inserted == arm.tested, layout.coins == 1)


def test_leave_one_out_runs_on_two_neighbouring_data_sets():
    arms = arms_of(LeaveOneOut(4, 3))
    assert {arm.number for arm in arms.values()} == {0, 1}
    np.testing.assert_array_equal(arms["held_out"].inserted, arms["inserted"].inserted[:-1])


def test_replace_one_scores_both_arms_on_one_run():
    arms = arms_of(ReplaceOne(4, 3))
    assert {arm.number for arm in arms.values()} == {1}
    np.testing.assert_array_equal(arms["held_out"].inserted, arms["inserted"].inserted)


@pytest.mark.parametrize("design", [LeaveOneOut(4, 3), ReplaceOne(4, 3)], ids=str)
def test_both_arms_subtract_equally_many_others(design):
    assert {len(others) for arm in arms_of(design).values() for others in arm.others} == {3}


def test_pair_runs_draw_no_canaries():
    layout = PairRuns(100).lay_out(draw_numbers, SEED, 1)
    assert layout.arms == []
    np.testing.assert_array_equal(layout.coins, draw_coins(SEED, trial=1, size=32))


def test_lost_coin_flip_trial_keeps_its_coins_and_has_no_scores():
    design = CoinFlip(6)
    layout = design.lay_out(draw_numbers, SEED, 2)
    arrays, wholly_lost = design.lost_arrays(layout)
    assert not wholly_lost
    assert np.isnan(arrays["scores"]).all()
    np.testing.assert_array_equal(arrays["coins"], layout.coins)


def test_lost_leave_one_out_trial_speaks_against_insertion_in_both_arms():
    design = LeaveOneOut(4, 3)
    arrays, wholly_lost = design.lost_arrays(design.lay_out(draw_numbers, SEED, 2))
    assert wholly_lost
    assert arrays["inserted"].shape == (4,)
    assert arrays["held_out"].shape == (3,)
    largest_score = 1e99
    assert (arrays["inserted"] < -largest_score).all()
    assert (arrays["held_out"] > largest_score).all()


def test_lost_replace_one_trial_has_no_scores():
    design = ReplaceOne(4, 3)
    arrays, wholly_lost = design.lost_arrays(design.lay_out(draw_numbers, SEED, 2))
    assert not wholly_lost
    assert all(np.isnan(array).all() for array in arrays.values())


def test_lost_block_of_pair_runs_keeps_its_coins_and_all_runs_failed():
    design = PairRuns(100)
    layout = design.lay_out(draw_numbers, SEED, 1)
    arrays, wholly_lost = design.lost_arrays(layout)
    assert wholly_lost
    np.testing.assert_array_equal(arrays["coins"], layout.coins)
    assert arrays["failed"].all()


@pytest.mark.parametrize("design", ALL_DESIGNS, ids=str)
def test_lost_arrays_pass_the_check_of_stored_records(design):
    arrays, _ = design.lost_arrays(design.lay_out(draw_numbers, SEED, 1))
    design.check_record(TrialRecord(1, arrays, {"trial": "killed"}), SEED)


@pytest.mark.parametrize("design", [CoinFlip(6), LeaveOneOut(4, 3), ReplaceOne(4, 3)], ids=str)
def test_merge_failures_without_a_failure_changes_nothing(design):
    arrays = record_of(design, 0).arrays
    assert design.merge_failures(arrays, {}) == (arrays, {})


def test_merge_failures_of_replace_one_drops_both_arms_since_they_share_a_run():
    design = ReplaceOne(4, 3)
    arrays, failures = design.merge_failures(dict(record_of(design, 0).arrays), {"held_out": "raised"})
    assert failures == {"inserted": "raised", "held_out": "raised"}
    assert all(np.isnan(array).all() for array in arrays.values())


def test_merge_failures_of_leave_one_out_keeps_the_other_arm_which_is_another_run():
    design = LeaveOneOut(4, 3)
    before = record_of(design, 0).arrays
    arrays, failures = design.merge_failures(dict(before), {"held_out": "raised"})
    assert failures == {"held_out": "raised"}
    np.testing.assert_array_equal(arrays["inserted"], before["inserted"])


@pytest.mark.parametrize("design", ALL_DESIGNS, ids=str)
def test_check_record_accepts_a_record_of_the_design(design):
    design.check_record(record_of(design, 1), SEED)


@by_design
def test_check_record_refuses_arrays_of_other_sizes(design):
    arrays = {name: np.append(array, 0.0) for name, array in record_of(design, 1).arrays.items()}
    with pytest.raises(ValueError, match="trial 1 does not belong"):
        design.check_record(TrialRecord(1, arrays), SEED)


@by_design
def test_check_record_refuses_a_missing_array(design):
    arrays = dict(record_of(design, 1).arrays)
    del arrays[next(iter(arrays))]
    with pytest.raises(ValueError, match="trial 1 does not belong"):
        design.check_record(TrialRecord(1, arrays), SEED)


@pytest.mark.parametrize("design", [CoinFlip(6), PairRuns(100)], ids=str)
def test_check_record_refuses_coins_of_another_seed(design):
    with pytest.raises(ValueError, match=f"coins of trial 1 are not those of seed {SEED + 1}"):
        design.check_record(record_of(design, 1), SEED + 1)


def test_check_record_refuses_a_block_with_too_few_runs():
    arrays = {name: array[:-1] for name, array in record_of(PairRuns(100), 1).arrays.items()}
    with pytest.raises(ValueError, match="trial 1 does not have 32 runs"):
        PairRuns(100).check_record(TrialRecord(1, arrays), SEED)


def test_check_record_refuses_a_lost_block_with_outputs():
    record = TrialRecord(1, record_of(PairRuns(100), 1).arrays, {"trial": "killed"})
    with pytest.raises(ValueError, match="trial 1 is lost but has outputs"):
        PairRuns(100).check_record(record, SEED)


@pytest.mark.parametrize("design", ALL_DESIGNS, ids=str)
def test_json_round_trip_returns_an_equal_design(design):
    plain = design.to_json()
    assert plain["kind"] in DESIGNS
    assert all(type(value) in (str, int) for value in plain.values())
    assert design_from_json(plain) == design


def test_unknown_design_in_json_is_refused_with_the_known_names():
    with pytest.raises(InvalidArgument, match="unknown design 'Other'; the designs are LeaveOneOut"):
        design_from_json({"kind": "Other", "canaries": 3})


@by_design
def test_score_arrays_make_scores_of_the_design(design):
    scores = Scores.of_block(**design.score_arrays([record_of(design, index) for index in range(5)]))
    assert scores.design == design
    assert scores.trials == 5


@by_design
def test_perfect_arrays_make_scores_of_the_design(design):
    scores = Scores.of_block(**design.perfect_arrays(5))
    assert scores.design == design
    assert scores.trials == 5


@given(runs=st.integers(1, 300_000))
def test_block_sizes_add_up_to_the_runs_and_never_shrink_before_the_last(runs):
    sizes = PairRuns(runs).block_sizes
    assert sum(sizes) == runs
    assert all(1 <= size <= 65_536 for size in sizes)
    assert list(sizes[:-1]) == sorted(sizes[:-1])
    assert sizes[0] == min(32, runs)


@given(runs=st.integers(1, 300_000))
def test_rows_count_the_runs_of_the_first_blocks(runs):
    design = PairRuns(runs)
    assert [design.rows(trials) for trials in range(design.trials + 1)] == [
        sum(design.block_sizes[:trials]) for trials in range(design.trials + 1)
    ]


@given(runs=st.integers(1, 100_000), more=st.integers(0, 100_000))
def test_a_larger_budget_changes_no_block_but_the_last(runs, more):
    short, long = PairRuns(runs).block_sizes, PairRuns(runs + more).block_sizes
    assert short[:-1] == long[: len(short) - 1]


@by_design
def test_rows_of_canary_designs_are_trials(design):
    assert [design.rows(trials) for trials in range(4)] == [0, 1, 2, 3]


@by_design
def test_check_canary_design_returns_a_design_with_canaries(design):
    assert check_canary_design(design) is design


@pytest.mark.parametrize("other", ["coin-flip", CoinFlip, None, PairRuns(100)], ids=str)
def test_check_canary_design_refuses_what_has_no_canaries(other):
    with pytest.raises(InvalidArgument, match="design must be CoinFlip, LeaveOneOut or ReplaceOne, got"):
        check_canary_design(other)
