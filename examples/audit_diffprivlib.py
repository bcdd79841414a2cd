"""Audit diffprivlib's geometric mechanism against a true and a false claim: python examples/audit_diffprivlib.py"""

from diffprivlib.mechanisms import Geometric

import lidp

geometric = Geometric(epsilon=1.0, sensitivity=1)


def noisy_count(count, rng):  # diffprivlib has its own random numbers
    return geometric.randomise(count)


for epsilon in (1.0, 0.5):
    print(lidp.audit_pair(noisy_count, 0, 1, claim=lidp.Claim(epsilon), runs=20_000))
