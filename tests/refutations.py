"""Count how often audits refute a claim that is exactly true."""

import lidp
from lidp import Claim, CoinWager, LiftedBetting, Verdict

BETA = 0.05
# The true ε lies on the grid, and rejecting it is a bound above it by one step: so few ε make audits fast.
WAGER = CoinWager(resolution=0.25, largest=4.0)
BETTING = LiftedBetting(resolution=0.25, largest=4.0)
JUST_BELOW = 1e-6


def count_refutations(target, claim, repeats, seed=0, **options):
    """Return how many audits refute the claim, made a hair smaller than the truth so that rejecting the truth counts."""
    near = Claim(claim.epsilon - JUST_BELOW, claim.delta, claim.neighbours)
    return sum(
        lidp.audit(target, claim=near, seed=seed + repeat, **options).verdict is Verdict.REFUTED
        for repeat in range(repeats)
    )


def method_for(design):
    """Return the fast betting method for a design."""
    return WAGER if design.has_coins else BETTING
