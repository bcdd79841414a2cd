"""Extend the budget of a stored audit, and keep a record of every extension."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lidp import checks
from lidp.engine.plan import STOPS, AuditPlan, check_trials
from lidp.errors import InvalidArgument, MethodNotApplicable
from lidp.store import Store

BUDGETS = "budgets"
"""Name of the fact that lists the extensions of an audit, the first one first. Its configuration stays as it was made."""


def extend(plan: AuditPlan, *, trials: int | None = None, stop_when: str | None = None) -> AuditPlan:
    """Return the plan with more trials, or one that no longer stops at a refutation; None leaves a setting as it is.

    Guarantee: that of the plan. An anytime-valid method bets on trials in the order of their numbers, its bets do not depend on
    the budget, and its bound lies below the true ε after every trial at once, with probability 1 - β. So the decision to go on
    may depend on all results so far. The trials depend on seed and number only: the result is the one that the larger budget
    would have given from the beginning.

    Raises:
        MethodNotApplicable: if the method is valid only for the number of trials that was planned.
        InvalidArgument: if this is no extension: fewer trials, or other stopping rules than "never".
    """
    wanted = plan.trials if trials is None else check_trials(trials)
    stop = plan.stop_when if stop_when is None else checks.one_of(STOPS, stop_when=stop_when)
    if (wanted, stop) == (plan.trials, plan.stop_when):
        return plan
    if not plan.method.anytime:
        raise MethodNotApplicable(
            f"{plan.method.name} is valid only for the {plan.trials:,} trials that were planned: if the result so far decides "
            "about further trials, its guarantee is lost. Begin a new audit in another store, with another seed"
        )
    if wanted != plan.design.trials_of(wanted):
        raise InvalidArgument(
            f"the budget of an audit of two data sets is its {plan.rows:,} runs, which fix the sizes of its blocks; "
            "begin a new audit with more runs in another store"
        )
    if wanted < plan.trials:
        raise InvalidArgument(f"trials must be at least the {plan.trials:,} that are planned already, got {wanted:,}")
    if stop != plan.stop_when and stop != "never":
        raise InvalidArgument(f"an audit that was planned with stop_when='never' keeps it, got stop_when={stop!r}")
    return replace(plan, trials=wanted, stop_when=stop)


def keep_budget(store: Store, plan: AuditPlan) -> None:
    """Add the budget of a plan to the record of the store's extensions."""
    budget = {"trials": plan.trials, "stop_when": plan.stop_when, "finished": store.count_trials()}
    store.keep_fact(BUDGETS, [*(store.fact(BUDGETS) or []), budget])


def stored_configuration(store: Store) -> dict[str, Any]:
    """Return the configuration of a stored audit with its latest budget.

    Raises:
        TypeError, KeyError: if the record of extensions is damaged.
    """
    budgets: Any = store.fact(BUDGETS) or []
    latest = {name: budgets[-1][name] for name in ("trials", "stop_when")} if budgets else {}
    return store.configuration | latest


def check_stored_budget(plan: AuditPlan, store: Store) -> None:
    """Raise ``LidpError`` if the record of extensions holds one that :func:`extend` would have refused."""
    first = AuditPlan.of(store.configuration, methods=[type(plan.method)])
    for budget in store.fact(BUDGETS) or []:
        first = extend(first, trials=budget["trials"], stop_when=budget["stop_when"])
