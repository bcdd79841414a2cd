"""``lidp resume``: go on with an audit that was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lidp.audits import resume
from lidp.cli import options
from lidp.cli.audit import finish
from lidp.cli.running import Running
from lidp.cli.targets import load_target
from lidp.cli.watching import Watch
from lidp.result import AuditResult

HELP = (
    "Go on with the audit in STORE, where it stopped, with the same settings. The target is loaded again from where it was."
)


def command(
    store: Annotated[Path, typer.Argument(help="The file given as --store.", show_default=False)],
    workers: options.Workers = 1,
    time_limit: options.TimeLimit = None,
    retry: options.Retry = False,
    executor: options.Executor = "local",
    ray_address: options.RayAddress = None,
    cpus_per_trial: options.CpusPerTrial = None,
    gpus_per_trial: options.GpusPerTrial = None,
    report: options.Report = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    running = Running(workers, time_limit, retry, executor, ray_address, cpus_per_trial, gpus_per_trial)
    chosen = running.chosen()

    def run(watch: Watch | None) -> AuditResult:
        return resume(store, load_target, executor=chosen, watch=watch)

    return finish(run, again=running.again(store), report=report, as_json=as_json, quiet=quiet)
