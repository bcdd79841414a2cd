"""``lidp bound``: bound ε from a file of scores or from a store."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from lidp import checks
from lidp._runtime.terminal_text import printable
from lidp.claim import Claim, Direction, Neighbours
from lidp.cli import options
from lidp.cli.method_imports import Import, find_method, import_methods
from lidp.cli.option_groups import with_option_groups
from lidp.cli.threshold_option import parse_threshold
from lidp.epsilon_bound import EpsilonBound, Hypothesis
from lidp.errors import InvalidArgument, LidpError
from lidp.result import AuditResult, Verdict
from lidp.rounding import fixed
from lidp.score_files import read_scores
from lidp.scores import Scores
from lidp.stats.method import Method
from lidp.stats.registry import METHODS, applicable, bound, canary_by_canary, default_method, make_method, point_method
from lidp.stats.storable import Storable
from lidp.store import is_store

HELP = f"""Bound ε from a file of scores.

FILE is an .npz file with the arrays inserted and held_out, or scores and coins, each trials x canaries; a .csv file with the
columns trial, score, and arm (inserted or held_out) or coin (0 or 1); or the store of an audit. A higher score means that the
canary looks more inserted.

Methods: {", ".join(METHODS)}. The default is coin-wager for coins and lifted-betting for arms; for
a claimed curve, curve-wager for coins.
"""


PICKING = "the best of these, picked after seeing them, is not a valid bound: choose the method beforehand"
STOPPED = (
    "these trials were stopped when the claim was refuted, or before all were run: only anytime-valid methods bound ε from them; "
    'to run all of them, audit with "--stop-when never"'
)
_VERDICTS = {True: Verdict.REFUTED, False: Verdict.NOT_REFUTED}
PROVISIONAL = "provisional: the audit is not finished, and this method holds for the planned number of trials only"


@with_option_groups
def command(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Scores (.npz or .csv), or a store.", show_default=False)],
    delta: Annotated[float | None, typer.Option(help="δ at which ε is bounded.", show_default="that of the store")] = None,
    method: Annotated[str | None, typer.Option(help="Name of a method, or all.", show_default=False)] = None,
    failure_probability: Annotated[
        float | None,
        typer.Option(
            help="Maximum probability that the bound exceeds the true ε.", show_default="0.05, or that of the store"
        ),
    ] = None,
    order: Annotated[
        int | None, typer.Option(help="Order of wilson and bernstein: 1, 2, 4 and so on.", show_default=False)
    ] = None,
    as_printed: Annotated[
        bool, typer.Option("--as-printed", help="Use the formulas as printed in the paper, misprints included.")
    ] = False,
    threshold: Annotated[
        str | None,
        typer.Option(
            help="fixed:T, split:F (tuned on the first F of the trials; split:F,paper uses the paper's candidates), union:N, "
            "or rank:F for the one-run methods.",
            show_default=False,
        ),
    ] = None,
    direction: Annotated[str, typer.Option(help="forward (the paper's), backward or both.")] = "both",
    neighbours: Annotated[str, typer.Option(help="For scores: add-remove or replace-one.")] = "add-remove",
    claim: Annotated[
        float | None,
        typer.Option("--epsilon", "--claim", help="Claimed ε to test; exit code 1 if it is refuted.", show_default=False),
    ] = None,
    curve: options.CurveOptions,
    independent_canaries: options.IndependentCanaries = False,
    as_json: options.Json = False,
    modules: Import = None,
) -> int:
    classes = import_methods(modules)
    stored = _stored(file, classes)
    if stored is not None:
        unfinished = _is_unfinished(stored)
        scores, neighbours = stored.scores.as_planned() if unfinished else stored.scores, str(stored.claim.neighbours)
        delta = stored.claim.delta if delta is None else delta
        if failure_probability is None:
            failure_probability = stored.bound.failure_probability
    else:
        unfinished = False
        scores = read_scores(file, neighbours=neighbours)
    judged = judged_curve = curve.build_curve_claim(delta, neighbours)
    if judged is not None and claim is not None:
        raise InvalidArgument("--epsilon claims a point, the other options a curve, which states its own ε; give one")
    if judged is not None:
        delta = judged.delta
    if delta is None:
        raise InvalidArgument("--delta is missing: the δ at which ε is to be bounded")
    failure_probability = 0.05 if failure_probability is None else failure_probability
    if claim is not None:
        judged = Claim(claim, delta, checks.member(Neighbours, neighbours=neighbours))
    if independent_canaries and (stored is not None or method == "all"):
        raise InvalidArgument(
            "--independent-canaries is for scores in a file and one method; an audit states the hypothesis before it runs"
        )
    if method == "all":
        if order is not None or threshold is not None or as_printed or claim is not None:
            raise InvalidArgument("--method all takes no --order, --threshold, --as-printed or --claim; name one method")
        all_bounds = _bounds(scores, judged, delta, failure_probability, checks.member(Direction, direction=direction))
        if as_json:
            _print_json(all_bounds, unfinished)
        else:
            _print_table(all_bounds, delta, failure_probability, unfinished=unfinished, stopped_early=scores.stopped_early)
        return 0
    kind = find_method(method, classes) if method is not None else None
    settings: dict[str, Any] = {"direction": checks.member(Direction, direction=direction)}
    if order is not None:
        settings["order"] = order
    if as_printed:
        settings["as_printed"] = True
    if threshold is not None:
        settings["threshold"] = parse_threshold(threshold)
    plain = order is None and threshold is None and not as_printed and settings["direction"] is Direction.BOTH
    if stored is not None and kind is None and plain and judged_curve is None:
        chosen = stored.method
    elif kind is None and judged_curve is not None:
        chosen = _build(type(default_method(scores.design, judged_curve)), settings, judged_curve)
    else:
        usual = stored.method if stored is not None else default_method(scores.design)
        curve_claim = judged_curve or (stored.claim if stored is not None else None)
        chosen = _build(kind or type(usual), settings, curve_claim)
    if claim is not None and judged is not None and kind is None and getattr(chosen, "curve", None) is not None:
        chosen = point_method(scores.design, judged, like=chosen)  # the store tested a curve, and a point is claimed now
    if independent_canaries:
        chosen = canary_by_canary(chosen)
    if stored is not None:
        _require_stated_hypothesis(chosen, stored)
    provisional = not chosen.anytime and unfinished
    if provisional and judged is not None and stored is not None:
        raise InvalidArgument(
            f"{file} has {scores.trials:,} of {stored.planned_trials:,} trials, and {chosen.name} gives no verdict "
            "until all trials are finished: resume the audit, or leave --epsilon out"
        )
    result = bound(scores, chosen, claim=judged, delta=delta, failure_probability=failure_probability)
    refuted = judged is not None and result.refutes(judged)
    if as_json:
        plain_result = {**result.to_dict(), **_summary(result, judged), "provisional": provisional}
        typer.echo(json.dumps(plain_result, indent=2, allow_nan=False))
    else:
        typer.echo(printable(result.describe(None if judged is None else judged.epsilon)))
        if provisional:
            typer.echo(PROVISIONAL)
        if judged is not None:
            tested = (
                judged.point if result.hypothesis is Hypothesis.POINT else judged
            )  # some methods test a curve's point only
            claimed = f"the claim {tested}" if tested.curve is None else f"the claim of {tested},"
            typer.echo(f"{claimed} is {'refuted' if refuted else 'not refuted'}")
        if judged is not None and result.point is not None:
            point = "refuted too" if result.verdicts(judged)["point"] else "not refuted"
            typer.echo(f"the claim at this δ alone is {point}")
    return 1 if refuted else 0


def _summary(result: EpsilonBound, judged: Claim | None) -> dict[str, Any]:
    """Return the fields of the JSON output that sum up a bound and the verdicts on a claim."""
    summary: dict[str, Any] = {"epsilon_point": result.epsilon_point, "trials": result.fell_at or result.trials}
    if judged is None:
        return summary
    verdicts = {name: str(_VERDICTS[refuted]) for name, refuted in result.verdicts(judged).items()}
    return summary | {
        "verdict": {"claim": judged.epsilon, "refuted": result.refutes(judged)},
        "verdicts": verdicts,
        "claim": judged.to_dict(),
    }


def _is_unfinished(stored: AuditResult) -> bool:
    """Return whether trials are still to be run: some are missing, and not because the audit stopped on a refutation."""
    stopped = stored.verdict is Verdict.REFUTED and stored.configuration["stop_when"] == "refuted"
    return stored.scores.trials < stored.planned_trials and not stopped


def _stored(file: Path, methods: list[type[Storable]]) -> AuditResult | None:
    """Return the result in the store of an audit; None if the file holds scores."""
    if file.suffix in (".npz", ".csv") or not os.path.isfile(file) or not is_store(file):  # noqa: PTH113  # no name makes it raise
        return None
    from lidp.engine.audit import result_of  # imported here, because scores in a file do not need it

    return result_of(file, methods=methods)


def _require_stated_hypothesis(method: Method, stored: AuditResult) -> None:
    """Raise if a method assumes independent canaries, and the audit, which checks whether its target's are, did not."""
    if (
        method.assumes_independent_canaries
        and not stored.method.assumes_independent_canaries
        and stored.scores.canaries > 1
    ):
        raise InvalidArgument(
            f"{method.name} assumes that the canaries of one run are independent of one another, and an audit states this "
            f"hypothesis before it runs; audit with --method {method.name}, or name another method"
        )


def _build(kind: type[Method], options: dict[str, Any], claim: Claim | None) -> Method:
    known = {item.name for item in fields(kind)}  # type: ignore[arg-type]  # every concrete method is a dataclass
    if "direction" not in known and options["direction"] is Direction.BOTH:  # the default, so probably not typed
        options = {name: value for name, value in options.items() if name != "direction"}
    for name in options:
        if name not in known:
            raise InvalidArgument(f"{kind.name} takes no --{name.replace('_', '-')}; leave it out")
    return make_method(kind, claim, **options)


def _bounds(
    scores: Scores, claim: Claim | None, delta: float, failure_probability: float, direction: Direction
) -> dict[str, EpsilonBound | str]:
    """Return the bound of each method by name, or as text why the method does not apply."""
    results: dict[str, EpsilonBound | str] = {}
    for name, method in applicable(scores, claim).items():
        if isinstance(method, str):
            results[name] = method
            continue
        try:
            chosen = make_method(type(method), claim, direction=direction)  # every method of lidp has a direction
            results[name] = bound(scores, chosen, delta=delta, failure_probability=failure_probability)
        except LidpError as error:
            results[name] = str(error)
    if all(isinstance(result, str) for result in results.values()):
        raise InvalidArgument(next(str(result) for result in results.values()))
    return results


def _print_json(results: dict[str, EpsilonBound | str], unfinished: bool) -> None:
    plain = {
        "bounds": {
            name: {**result.to_dict(), "provisional": unfinished and not METHODS[name].anytime}
            for name, result in results.items()
            if not isinstance(result, str)
        },
        "not_applicable": {name: result for name, result in results.items() if isinstance(result, str)},
        "warning": PICKING,
    }
    typer.echo(json.dumps(plain, indent=2, allow_nan=False))


def _print_table(
    results: dict[str, EpsilonBound | str],
    delta: float,
    failure_probability: float,
    *,
    unfinished: bool,
    stopped_early: bool,
) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"lower bounds on ε at δ = {delta:g}, β = {failure_probability:g}", title_justify="left")
    table.add_column("method")
    table.add_column("ε ≥", justify="right")
    table.add_column("guarantee")
    for name, result in results.items():
        if not isinstance(result, str):
            mark = ", provisional" if unfinished and not METHODS[name].anytime else ""
            table.add_row(name, fixed(result.epsilon, 3), f"{result.guarantee}{mark}")
    console = Console()
    console.print(table)
    if unfinished:
        console.print(
            "provisional: the audit is not finished, and these methods hold for the planned number of trials only",
            soft_wrap=True,
        )
    others = [name for name, result in results.items() if isinstance(result, str)]
    if others:
        console.print(f"not applicable: {', '.join(others)} (lidp bound ... --method NAME says why)", soft_wrap=True)
    if stopped_early:
        console.print(STOPPED, soft_wrap=True)
    console.print(PICKING, soft_wrap=True)
