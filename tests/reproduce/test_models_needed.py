"""Models are counted per design, and needed numbers are interpolated."""

import pytest

from lidp.reproduce.models_needed import WAYS, models_to_reach, run_way


@pytest.mark.slow
def test_models_needed_counts_two_models_per_leave_one_out_trial_and_one_per_coin_flip_trial():
    assert WAYS["many canaries"].design(2048).canaries == 32  # √n of the half that is not for tuning
    rows = run_way({"way": "many canaries", "trials": 512, "repetition": 0})
    assert {row["models"] for row in rows} == {1024}
    rows = run_way({"way": "coin wager", "trials": 64, "repetition": 0})
    assert [row["models"] for row in rows] == [4, 6, 8, 11, 16, 23, 32, 45, 64]
    assert [row["epsilon"] for row in rows] == sorted(row["epsilon"] for row in rows)


def test_models_to_reach_interpolates_in_log_models():
    curve = {100: 0.2, 400: 0.6, 1600: 1.0}
    assert models_to_reach(curve, 0.4) == 200
    assert models_to_reach(curve, 0.8) == 800
    assert models_to_reach(curve, 0.6) == 400
    assert models_to_reach(curve, 1.1) is None
    assert models_to_reach(curve, 0.1) == 100  # at most: reached before the curve begins
