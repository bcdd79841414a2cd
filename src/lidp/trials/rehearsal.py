"""Try the auditor's own part before the first trial: what is broken there is no outcome of the mechanism."""

from __future__ import annotations

import numpy as np

from lidp._runtime.user_code import fail_audit_on_error
from lidp.errors import AuditFailed
from lidp.rounding import counted
from lidp.target import with_canaries
from lidp.trials.trial import TrialSetup


def try_canaries(setup: TrialSetup) -> None:
    """Draw canaries and plant as many as there may be, so that what is broken there fails the audit before its first trial."""
    with fail_audit_on_error("drawing canaries"):
        size = len(setup.canaries.draw(np.random.default_rng(0), 2))
    if size != 2:
        raise AuditFailed(f"canaries.draw(rng, 2) gave {counted(size, 'canaries')} instead of 2")
    wanted = setup.design.canaries
    with fail_audit_on_error(f"drawing {wanted} canaries"):
        many = setup.canaries.draw(np.random.default_rng(0), wanted)
    if len(many) != wanted:
        raise AuditFailed(
            f"canaries.draw(rng, {wanted}) gave {len(many)} canaries; it must give {wanted}, or let a trial have fewer"
        )
    with fail_audit_on_error(f"planting {wanted} canaries"):
        with_canaries(setup.target.dataset, many)
