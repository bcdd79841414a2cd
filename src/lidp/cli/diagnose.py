"""``lidp diagnose``: say which part of a training deviates from its claim."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lidp._runtime.terminal_text import printable
from lidp.cli import options
from lidp.cli.method_imports import Import, import_methods

HELP = """Say which part of a training deviates from its claim.

STORE is that of an audit with --scores transcript. The answer has limits on the noise of each parameter group and of each stretch
of steps, on how often canaries took part, and on how much they added. All limits hold at once. A diagnosis is no privacy bound. The
exit code is 0 whatever is found.
"""


def command(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The file that was given as --store.", show_default=False)],
    failure_probability: Annotated[float, typer.Option(help="Maximum probability that any of the limits is wrong.")] = 0.05,
    noise_multiplier: Annotated[
        float | None, typer.Option(help="Claimed noise multiplier.", show_default="what the claim says")
    ] = None,
    sampling_rate: Annotated[
        float | None, typer.Option(help="Claimed sampling rate.", show_default="what the claim says")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Claimed number of steps.", show_default="what the claim says")] = None,
    separate_canaries: Annotated[
        bool,
        typer.Option(
            "--separate-canaries",
            help="The gradients of canaries do not overlap. Known for dirac-gradient canaries of audit-dpsgd.",
        ),
    ] = False,
    as_json: options.Json = False,
    modules: Import = None,
) -> int:
    from lidp.diagnosis import diagnose  # imported here, because it is slow to import

    diagnosis = diagnose(
        store,
        failure_probability=failure_probability,
        separate_canaries=separate_canaries or None,
        noise_multiplier=noise_multiplier,
        sampling_rate=sampling_rate,
        steps=steps,
        methods=import_methods(modules),
    )
    typer.echo(diagnosis.to_json(indent=2) if as_json else printable(str(diagnosis)))
    return 0
