"""Random streams depend on seed, trial, arm and purpose only."""

import numpy as np

from lidp.streams import Purpose, stream, trial_words


def test_streams_differ_by_purpose_arm_and_trial():
    draws = {
        stream(7, trial=trial, arm=arm, purpose=purpose).random()
        for trial in range(5)
        for arm in (0, 1)
        for purpose in Purpose
    }
    assert len(draws) == 5 * 2 * len(Purpose)
    words = {
        tuple(row)
        for seed in (7, 8)
        for arm in (0, 1)
        for purpose in Purpose
        for row in trial_words(seed, range(600), arm=arm, purpose=purpose).tolist()
    }
    assert len(words) == 2 * 600 * 2 * len(Purpose)
    assert len({word for row in words for word in row}) == 4 * len(words)


def test_trial_words_do_not_depend_on_the_first_trial():
    whole = trial_words(5, range(2000), purpose=Purpose.NOISE)
    for part in (range(63, 130), range(255, 257), range(256, 512), range(1999, 2000)):
        np.testing.assert_array_equal(trial_words(5, part, purpose=Purpose.NOISE), whole[part.start : part.stop])
