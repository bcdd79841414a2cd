"""``lidp seal``: draw canaries and coins for a training that happens elsewhere, and commit to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from lidp._runtime.terminal_text import printable
from lidp.claim import Neighbours
from lidp.cli import options
from lidp.cli.option_groups import with_option_groups
from lidp.errors import InvalidArgument
from lidp.rounding import counted
from lidp.seals import Seal, seal, seal_next

HELP = """Seal canaries for a training that happens elsewhere.

Draws candidates and secret coins, and commits to them, to the claim and to the method.

The new folder holds the data set to train on (or planting.json), the list of all candidates to be scored, the secret coins and a
public commitment. Train anywhere, score every candidate, then run lidp open.

The exit code is 0, or 2 for an error.
"""


TOO_FEW = "note: not even a training that reveals every coin would be refuted; use more canaries or more runs"


@with_option_groups
def command(
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to create.", show_default=False)],
    kind: Annotated[str | None, typer.Option(help="text, records or gradients.", show_default=False)] = None,
    canaries: Annotated[
        int | None, typer.Option(help="Number of candidates; a coin decides for each.", show_default=False)
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Data set: .jsonl, .csv, .npz, .parquet or a datasets folder.", show_default=False),
    ] = None,
    pool: Annotated[Path | None, typer.Option(help="records: file to draw candidates from.", show_default=False)] = None,
    text_field: Annotated[str | None, typer.Option(help="text: column of the texts.", show_default="text")] = None,
    canary_text: Annotated[
        str | None, typer.Option(help="text: new-tokens, random-tokens or sampled.", show_default="new-tokens")
    ] = None,
    secret_tokens: Annotated[
        int | None, typer.Option(help="text: random words at the end of each.", show_default="0")
    ] = None,
    fill: Annotated[
        list[str] | None,
        typer.Option(help="text: value of canaries in another column.", metavar="COLUMN=VALUE", show_default=False),
    ] = None,
    canary: Annotated[
        str | None,
        typer.Option(help="gradients: dirac-gradient or random-gradient.", show_default="dirac-gradient"),
    ] = None,
    claim: options.ClaimOptions,
    failure_probability: Annotated[
        float | None, typer.Option(help="Maximum probability of refuting a true claim.", show_default="0.05")
    ] = None,
    looks: Annotated[int | None, typer.Option(help="Different sets of scores that may be tried.", show_default="1")] = None,
    runs: Annotated[int | None, typer.Option(help="Planned number of trainings.", show_default="open")] = None,
    independent_canaries: options.IndependentCanaries = False,
    method: Annotated[
        str | None, typer.Option(help="Method (see lidp bound --help).", show_default="depends on claim and runs")
    ] = None,
    like: Annotated[
        Path | None, typer.Option(help="Seal the next run of this sealed folder's plan.", show_default=False)
    ] = None,
    seed_from_os: Annotated[
        bool, typer.Option("--seed-from-os", help="Draw coins from the operating system's randomness; the default.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="For tests only: whoever knows it knows the coins.", show_default=False)
    ] = None,
    as_json: options.Json = False,
) -> int:
    if seed is not None and seed_from_os:
        raise InvalidArgument("--seed and --seed-from-os contradict each other; leave --seed out for a real audit")
    of_plan: dict[str, Any] = {
        "kind": kind,
        "canaries": canaries,
        "text_field": text_field,
        "canary_text": canary_text,
        "secret_tokens": secret_tokens,
        "fill": _fill(fill),
        "canary": canary,
        "failure_probability": failure_probability,
        "looks": looks,
        "runs": runs,
        "method": method,
        "independent_canaries": independent_canaries or None,
    }
    given = {name: value for name, value in of_plan.items() if value is not None}
    if like is not None:
        _require_nothing_new(given, claim)
        sealed = seal_next(like, output, data=data, pool=pool, seed=seed)
    else:
        for name, remedy in (("kind", "give text, records or gradients"), ("canaries", "give the number of candidates")):
            if name not in given:
                raise InvalidArgument(f"--{name} is missing; {remedy}")
        _check_options_of_kind(given)
        stated = claim.build(Neighbours.ADD_REMOVE)
        sealed = seal(output, claim=stated, data=data, pool=pool, seed=seed, **given)
    if not sealed.could_refute:
        typer.echo(f"lidp: {TOO_FEW}", err=True)
    typer.echo(json.dumps(sealed.commitment.to_dict(), indent=2) if as_json else printable(_describe(sealed)))
    return 0


def _fill(pairs: list[str] | None) -> dict[str, str] | None:
    if not pairs:
        return None
    for pair in pairs:
        if "=" not in pair:
            raise InvalidArgument(f"--fill must be COLUMN=VALUE, got {pair!r}")
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


_KIND_OF_OPTION = {
    "text_field": "text",
    "canary_text": "text",
    "secret_tokens": "text",
    "fill": "text",
    "canary": "gradients",
}


def _check_options_of_kind(given: dict[str, Any]) -> None:
    for name, kind in _KIND_OF_OPTION.items():
        if name in given and given["kind"] != kind:
            raise InvalidArgument(f"--{name.replace('_', '-')} is for --kind {kind}, and the kind is {given['kind']}")


def _require_nothing_new(given: dict[str, Any], claim: options.ClaimOptions) -> None:
    names = [*given, *(name for name, value in vars(claim).items() if value is not None)]
    if names:
        raise InvalidArgument(
            f"--{names[0].replace('_', '-')} is fixed by the plan of --like; leave it out, or seal a plan of its own"
        )


def _describe(sealed: Seal) -> str:
    plan, run = sealed.commitment.plan, sealed.commitment.run
    planned = "" if plan.runs is None else f" of {plan.runs}"
    private = {"candidates": sealed.commitment.candidates_name, "coins": "coins.json"}
    return "\n".join(
        [
            f"sealed: {sealed.folder}, run {run}{planned} of plan {plan.id}, {counted(plan.canaries, 'candidates')}",
            f"  claim      {plan.claim}",
            f"  method     {plan.method.name}, failure probability {plan.failure_probability:g}"
            + (f" over {plan.looks} looks" if plan.looks > 1 else ""),
            f"  trainer    gets {', '.join(sealed.for_the_trainer)} and nothing else of this folder",
            f"  scorer     gets {private['candidates']}: one score per id, higher if it looks inserted",
            f"  secret     {private['coins']}: whoever trains or scores must not see it; without it nothing can be opened",
            f"  publish    {sealed.digest}",
        ]
    )
