"""``lidp plan``: how many canaries and models an audit needs to refute a claim."""

from __future__ import annotations

from typing import Annotated

import typer

from lidp.claim import Claim
from lidp.cli import options
from lidp.planner import BudgetPlan, plan

HELP = """Plan an audit: how many canaries and models it takes to refute a claim.

Simulates audits of a Gaussian mechanism whose true ε is the suspected one. Canaries interfere with one another only if
--dimension is given, for example the number of parameters.
"""


def command(
    claim: Annotated[float, typer.Option("--epsilon", "--claim", help="Claimed ε.", show_default=False)],
    suspect: Annotated[float | None, typer.Option(help="Suspected true ε.", show_default=False)] = None,
    noise_ratio: Annotated[
        float | None, typer.Option(help="Suspected noise / claimed noise, to test the whole curve.", show_default=False)
    ] = None,
    delta: options.Delta = 1e-5,
    models: Annotated[
        int | None, typer.Option(help="Report the expected bound and the power for this many models.", show_default=False)
    ] = None,
    canaries: Annotated[int | None, typer.Option(help="Canaries per trial.", show_default="several are compared")] = None,
    dimension: Annotated[int | None, typer.Option(help="Dimension of the canaries.", show_default=False)] = None,
    power: Annotated[float, typer.Option(help="Desired probability of refuting the claim.")] = 0.8,
    failure_probability: options.FailureProbability = 0.05,
    seconds_per_model: Annotated[
        float | None, typer.Option(help="Training time of a model in seconds, to compute costs.", show_default=False)
    ] = None,
    price_per_hour: Annotated[float | None, typer.Option(help="Price of one worker per hour.", show_default=False)] = None,
    workers: Annotated[int | None, typer.Option(help="Workers that train at the same time.", show_default=False)] = None,
    repeats: Annotated[int, typer.Option(help="Simulated audits per row.")] = 100,
    as_json: options.Json = False,
) -> int:
    budget = plan(
        Claim(claim, delta),
        suspect=suspect,
        noise_ratio=noise_ratio,
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
        typer.echo(budget.to_json(indent=2))
    else:
        _print(budget)
    return 0


def _print(budget: BudgetPlan) -> None:
    from rich.console import Console
    from rich.table import Table

    header, rows = budget.table()
    table = Table(title=budget.title, title_justify="left")
    for name in header:
        table.add_column(name, justify="left" if name in ("design", "method") else "right")
    for row in rows:
        table.add_row(*row)
    console = Console()
    console.print(table)
    console.print(budget.sentence(), soft_wrap=True)
