import pytest

from lidp.serve.rate import Rate


def observed(*counts, step=1.0):
    rate = Rate()
    for number, count in enumerate(counts):
        rate.observe(number * step, count)
    return rate


def test_there_is_no_rate_before_a_few_changes():
    assert observed(0, 10, 10, 10, 20).per_second() is None


def test_the_rate_is_that_between_the_first_and_the_last_change():
    assert observed(0, 10, 10, 20, 30, 40).per_second() == pytest.approx(40 / 5)


def test_old_changes_are_forgotten():
    rate = observed(*range(0, 1000, 10), step=1.0)
    for number in range(400):
        rate.observe(100 + number, 990 + number)
    assert rate.per_second() == pytest.approx(1.0, rel=0.01)


def test_slow_trials_keep_their_rate():
    assert observed(0, 1, 2, 3, 4, 5, step=300.0).per_second() == pytest.approx(1 / 300)


def test_a_smaller_count_starts_again():
    rate = observed(0, 10, 20, 30, 40)
    rate.observe(5.0, 3)
    assert rate.per_second() is None
    assert rate.quiet_seconds(9.0) == 4.0
