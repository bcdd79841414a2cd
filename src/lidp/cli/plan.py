"""``lidp plan``: how many models an audit takes."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from lidp.claim import Claim
from lidp.cli import options
from lidp.designs import CoinFlip
from lidp.planner import BudgetPlan, plan

HELP = """Say which design, how many canaries and how many models refute a claim, if the truth is the suspected ε.

Simulates audits of a Gaussian mechanism of that ε. --dimension (the number of parameters, say) includes the interference
between canaries; left out, there is none.
"""


def command(
    claim: options.ClaimedEpsilon,
    suspect: Annotated[float, typer.Option(help="The ε that you fear.", show_default=False)],
    delta: options.Delta = 1e-5,
    models: Annotated[int | None, typer.Option(help="Say what so many models can reach.", show_default=False)] = None,
    canaries: Annotated[int | None, typer.Option(help="Only this many canaries.", show_default=False)] = None,
    dimension: Annotated[int | None, typer.Option(help="Dimension of the canaries.", show_default=False)] = None,
    power: Annotated[float, typer.Option(help="The probability to refute that is wished for.")] = 0.8,
    failure_probability: options.FailureProbability = 0.05,
    seconds_per_model: Annotated[float | None, typer.Option(help="For the cost.", show_default=False)] = None,
    price_per_hour: Annotated[float | None, typer.Option(help="Of one worker.", show_default=False)] = None,
    workers: Annotated[int | None, typer.Option(help="How many work at once.", show_default=False)] = None,
    repeats: Annotated[int, typer.Option(help="Simulated audits per row.")] = 200,
    as_json: options.Json = False,
) -> int:
    found = plan(
        Claim(claim, delta),
        suspect=suspect,
        models=models,
        canaries=canaries,
        dimension=dimension,
        power=power,
        failure_probability=failure_probability,
        seconds_per_model=seconds_per_model,
        price_per_hour=price_per_hour,
        workers=workers,
        repeats=repeats,
    )
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False))
    else:
        _print(found)
    return 0


def _print(found: BudgetPlan) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"refuting ε = {found.claim.epsilon:g} if the truth is {found.suspect:g}", title_justify="left")
    for name in ("design", "canaries", "method", f"models for {found.power:.0%}", "at models", "ε̂", "power"):
        table.add_column(name, justify="left" if name in ("design", "method") else "right")
    for row in found.rows:
        layout = "coin flip" if isinstance(row.design, CoinFlip) else "leave one out"
        models = f"{row.models:,}" if row.models is not None else f"> {row.simulated:,}"
        table.add_row(
            layout,
            str(row.design.canaries),
            row.method,
            models,
            f"{row.at_models:,}",
            f"{row.epsilon:.2f}",
            f"{row.power:.0%}",
        )
    console = Console()
    console.print(table)
    console.print(found.sentence(), soft_wrap=True)
