"""``lidp resume``: go on with an audit that was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lidp.audits import resume
from lidp.cli.audit import again, finish
from lidp.cli.targets import load_target
from lidp.cli.watching import watcher
from lidp.result import AuditResult

HELP = (
    "Go on with the audit in STORE, where it stopped, with the same settings. The target is loaded again from where it was."
)


def command(
    store: Annotated[Path, typer.Argument(help="The file given as --store.", show_default=False)],
    workers: Annotated[int, typer.Option(help="Processes to run trials in.")] = 1,
    time_limit: Annotated[float | None, typer.Option(help="Seconds a trial may take.", show_default=False)] = None,
    no_retry: Annotated[bool, typer.Option("--no-retry", help="Do not rerun a trial whose worker died.")] = False,
    report: Annotated[Path | None, typer.Option(help="Write the result as JSON to this file.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> int:
    def run() -> AuditResult:
        watch, close = watcher(quiet=quiet)
        try:
            return resume(store, load_target, workers=workers, time_limit=time_limit, retry=not no_retry, watch=watch)
        finally:
            close()

    return finish(run, again=again(store, workers, time_limit, no_retry), report=report, as_json=as_json)
