"""``lidp audit-program``: audit a program that trains, run as a command."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from lidp.cli.executor_options import ExecutorOptions
from lidp.cli.option_groups import with_option_groups
from lidp.cli.options import EXIT_CODES, ClaimOptions, OutputOptions, Store, TargetCanaryOptions
from lidp.cli.running import run_canary_audit
from lidp.target_spec import TargetSpec
from lidp.target_spec.spec import Option

HELP = f"""Audit a program that trains a model. Plants canaries in its data, runs it, tests the claim.

COMMAND is the program with its arguments, such as "python train.py --data {{data}} --out {{out}} --seed {{seed}}". No shell is
used. The program trains on x and y of the .npz file {{data}}, and writes the loss of each example in canary_x and canary_y of
that file to {{out}}. A run that fails or exceeds --time-limit counts as an outcome; its log is kept in STORE.logs.

The program must not compute its sampling rate or number of steps from the number of records, which reveals how many canaries
are in the data: keep them constant, or claim --neighbours replace-one. {EXIT_CODES}
"""


@dataclass(frozen=True)
class ProgramOptions:
    """The data of a program, and the canaries that are planted in them."""

    data: Annotated[str, typer.Option(help="An .npz file with x and y, to plant canaries in.", show_default=False)]
    canary: Annotated[str | None, typer.Option(help="mislabelled or blank.", show_default="mislabelled")] = None
    pilots: Annotated[int | None, typer.Option(help="Pilot runs, to learn how hard canaries are.", show_default="8")] = None

    def build_spec(self, command: str, store: Path | None, time_limit: float | None) -> TargetSpec:
        """Return the spec of the program, with absolute paths, so that the audit can be resumed from any folder."""
        options: dict[str, Option] = {"command": command, "data": str(Path(self.data).resolve()) if self.data else ""}
        options["folder"] = str(Path.cwd())
        given = {"canary": self.canary, "pilots": self.pilots, "time_limit": time_limit}
        options |= {name: value for name, value in given.items() if value is not None}
        if store is not None:
            options["logs"] = str(store.resolve().with_name(f"{store.name}.logs"))
        return TargetSpec("program", options)


@with_option_groups
def command(
    *,
    program_command: Annotated[str, typer.Argument(metavar="COMMAND", help="The program to run.", show_default=False)],
    claim: ClaimOptions,
    program: ProgramOptions,
    canaries: TargetCanaryOptions,
    store: Store = None,
    executor: ExecutorOptions,
    output: OutputOptions,
) -> int:
    spec = program.build_spec(program_command, store, executor.time_limit)
    # The program enforces the limit itself, so that the processes that it has started end with it.
    return run_canary_audit(spec, claim, canaries, store, replace(executor, time_limit=None), output)
