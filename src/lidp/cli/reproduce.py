"""``lidp reproduce``: recompute figures and statements of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lidp.cli import options
from lidp.cli.watching import watching
from lidp.errors import InvalidArgument
from lidp.reproduce import EXPERIMENTS, Reproduction, reproduce

HELP = """Reproduce experiments of the paper.

"list" prints the names of all experiments; "all" runs those that exist at the chosen scale.

Each experiment writes NAME.csv, NAME.svg and summary.json (the paper's number, ours, the tolerance) to OUT/NAME/.
Finished parts are kept: after an interrupt, run the same command again to resume.
"""


def command(
    names: Annotated[
        list[str], typer.Argument(metavar="NAMES", help='Names of experiments, "all", or "list".', show_default=False)
    ],
    scale: Annotated[
        str,
        typer.Option(help="smoke (a test run of seconds), reduced (less data; trained models only) or paper (full size)."),
    ] = "smoke",
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("reproduction"),
    workers: Annotated[int, typer.Option(help="Processes to use.")] = 1,
    minutes: Annotated[
        float | None,
        typer.Option(help="Minutes per experiment; then nothing new is started.", show_default="no limit"),
    ] = None,
    quiet: options.Quiet = False,
) -> int:
    if [name.lower() for name in names] == ["list"]:
        for name, experiment in EXPERIMENTS.items():
            typer.echo(f"{name:24} {experiment.about}")
        return 0
    if [name.lower() for name in names] == ["all"]:
        # If the scale is unknown, no experiment has it: keep them all, so that reproduce() reports the scale.
        chosen = [name for name, experiment in EXPERIMENTS.items() if scale in experiment.scales] or list(EXPERIMENTS)
    else:
        chosen = list(dict.fromkeys(names))
    unknown = [name for name in chosen if name not in EXPERIMENTS]
    if unknown:
        raise InvalidArgument(f'there is no experiment {unknown[0]!r}; "lidp reproduce list" shows them')
    for name in chosen:
        try:
            with watching(quiet=quiet) as watch:
                reproduction = reproduce(name, scale=scale, out=out, workers=workers, minutes=minutes, watch=watch)
        except KeyboardInterrupt:
            typer.echo("lidp: interrupted; the same command resumes", err=True)
            return 130
        typer.echo(_describe(reproduction))
    return 0


def _describe(reproduction: Reproduction) -> str:
    left = f", {reproduction.cells_left:,} cells left" if reproduction.cells_left else ""
    lines = [f"{reproduction.experiment} ({reproduction.scale}{left}) -> {reproduction.folder}"]
    for finding in reproduction.findings:
        paper = "" if finding.paper is None else f", paper {finding.paper:g}"
        verdict = {True: "holds", False: "DIFFERS", None: "-"}[reproduction.holds(finding)]
        ours = "not found" if finding.ours is None else f"{finding.ours:.4g}"
        lines.append(f"  {verdict:8} {finding.statement}: {ours}{paper}")
    return "\n".join(lines)
