"""Test the privacy of a mechanism in CI: pytest examples/test_in_ci.py"""


class NoisyCount:
    def __call__(self, data, rng):
        return len(data) + rng.laplace(0, 1.0)

    def many(self, data, size, rng):  # optional: many runs at once, for speed
        return len(data) + rng.laplace(0, 1.0, size)


def test_the_count_is_private(assert_private):
    assert_private(NoisyCount(), [1, 2], [1, 2, 3], epsilon=1.0, delta=1e-6, runs=50_000)
