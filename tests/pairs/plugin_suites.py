"""What sessions of the pytest plugin test in its own tests."""

LAPLACE = """
class Laplace:
    def __init__(self, scale):
        self.scale = scale
    def __call__(self, count, rng):
        return count + rng.laplace(0, self.scale)
    def many(self, count, size, rng):
        return count + rng.laplace(0, self.scale, size)
"""
