"""``lidp resume``: go on with an audit that was interrupted."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from lidp.audits import resume
from lidp.claim import Claim
from lidp.cli import options
from lidp.cli.audit import finish
from lidp.cli.running import Running
from lidp.cli.targets import load_target
from lidp.cli.watching import Watch
from lidp.errors import StoreError
from lidp.result import AuditResult
from lidp.store import Store
from lidp.target import Target, fingerprint

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
        return resume(store, partial(_load, store), executor=chosen, watch=watch)

    return finish(run, again=running.again(store), report=report, as_json=as_json, quiet=quiet)


def _load(store: Path, origin: str, claim: Claim) -> Target:
    """The target of a store, by its name if it has changed: an origin is for machines, with all its options in it."""
    target = load_target(origin, claim)
    with Store.read(store) as opened:
        before = opened.configuration["fingerprint"]
    if fingerprint(target) != before:
        raise StoreError(
            f"{target.name} is not what it was when {store} was made; put it back to go on, or begin a new audit"
        )
    return target
