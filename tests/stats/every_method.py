"""Every method of lidp with default parameters; those that test a privacy curve get one."""

from lidp import METHODS, Claim
from lidp.stats.registry import make_method

CLAIM = Claim.gaussian(mu=0.5)


def method_with_defaults(name):
    """Return the method with this name."""
    return make_method(METHODS[name], CLAIM if METHODS[name].needs_curve else None)
