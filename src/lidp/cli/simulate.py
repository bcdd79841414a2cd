"""``lidp simulate``: simulate scores of mechanisms with a known ε, to try methods on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lidp.curves.gaussian import gaussian_epsilon
from lidp.designs import CoinFlip, Design, LeaveOneOut
from lidp.errors import InvalidArgument
from lidp.mechanisms.gaussian import simulate_gaussian
from lidp.rounding import counted
from lidp.score_files import write_scores
from lidp.store import is_store

app = typer.Typer(help="Simulate scores of a mechanism with a known ε.", rich_markup_mode=None)


@app.callback()
def _group() -> None:
    """Keep the name of the subcommand even though there is only one."""


@app.command(name="gaussian")
def gaussian(
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write the scores to (.npz).", show_default=False)],
    sigma: Annotated[float, typer.Option(help="Standard deviation of the noise; the sensitivity is 1.")] = 2.149,
    design: Annotated[str, typer.Option(help="coin-flip or leave-one-out.")] = "coin-flip",
    canaries: Annotated[int, typer.Option(help="Canaries per trial.")] = 64,
    trials: Annotated[int, typer.Option(help="Number of trials.")] = 256,
    dimension: Annotated[int, typer.Option(help="Dimension of the canaries.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Same seed, same scores.")] = 0,
    delta: Annotated[float, typer.Option(help="δ at which the true ε is printed.")] = 1e-5,
) -> int:
    """Simulate scores of the Gaussian mechanism, from their exact distribution."""
    layouts: dict[str, Design] = {"coin-flip": CoinFlip(canaries), "leave-one-out": LeaveOneOut(canaries, canaries)}
    if design not in layouts:
        raise InvalidArgument(f"design must be one of {', '.join(layouts)}, got {design!r}")
    scores = simulate_gaussian(layouts[design], trials=trials, sigma=sigma, dimension=dimension, seed=seed)
    truth = gaussian_epsilon(1 / sigma, delta)
    if is_store(out):
        raise InvalidArgument(f"{out} is the store of an audit, which scores must not replace; choose another name")
    write_scores(scores, out)
    typer.echo(
        f"wrote {out}: {counted(scores.trials, 'trials')} x {counted(scores.canaries, 'canaries')}, "
        f"true ε = {truth:.3g} at δ = {delta:g}"
    )
    return 0
