"""``lidp resume``: resume an audit that was interrupted."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from lidp.claim import Claim
from lidp.cli import options
from lidp.cli.audit import finish
from lidp.cli.method_imports import Import, import_methods
from lidp.cli.running import Running
from lidp.cli.targets import load_target
from lidp.cli.trust import approved_origin
from lidp.cli.watching import Watch
from lidp.engine.audit import resume
from lidp.errors import LidpError, StoreError
from lidp.result import AuditResult
from lidp.target import Target

HELP = """Resume the audit in STORE with the same settings.

The target is loaded again from where it was: this runs code that STORE names. For a store that you did not make yourself on this
machine, lidp shows that code and asks first; --trust answers yes beforehand.
"""


def command(
    store: Annotated[Path, typer.Argument(help="The file given as --store.", show_default=False)],
    trust: Annotated[
        bool, typer.Option("--trust", help="Run the code that the store names, whoever made it.", show_default=False)
    ] = False,
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
    modules: Import = None,
) -> int:
    running = Running(workers, time_limit, retry, executor, ray_address, cpus_per_trial, gpus_per_trial)
    chosen = running.chosen()
    approved = approved_origin(store, trust=trust)
    methods = import_methods(modules)

    def run(watch: Watch | None) -> AuditResult:
        return resume(store, partial(_load, store, approved), executor=chosen, watch=watch, methods=methods)

    return finish(run, again=running.again(store), store=store, report=report, as_json=as_json, quiet=quiet)


def _load(store: Path, approved: str | None, origin: str, claim: Claim) -> Target:
    if origin != approved:
        raise StoreError("the store was replaced by another one meanwhile; resume it again")
    try:
        return load_target(origin, claim)
    except LidpError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise StoreError(f"{store} is damaged: its origin cannot be read ({type(error).__name__}: {error})") from None
