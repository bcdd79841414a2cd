"""``lidp resume``: resume an audit that was interrupted."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from lidp.claim import Claim
from lidp.cli.executor_options import ExecutorOptions
from lidp.cli.method_imports import Import, import_methods
from lidp.cli.option_groups import with_option_groups
from lidp.cli.options import EXIT_CODES, OutputOptions
from lidp.cli.running import show_result
from lidp.cli.trust import approved_spec
from lidp.cli.watching import Watch
from lidp.engine.audit import resume
from lidp.errors import LidpError, StoreError
from lidp.result import AuditResult
from lidp.target import PairTarget, Target
from lidp.target_spec import TargetSpec

HELP = f"""Resume the audit in STORE with the same settings, or extend it by --trials.

This loads the target, which runs code that STORE names. If you did not make STORE yourself on this machine and in this folder,
lidp shows that code and asks first.

{EXIT_CODES}
"""


@with_option_groups
def command(
    *,
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The file that was given as --store.", show_default=False)],
    trials: Annotated[
        int | None, typer.Option(help="Extend the audit to so many trials; anytime-valid methods only.", show_default=False)
    ] = None,
    stop_when: Annotated[
        str | None, typer.Option(help="never: go on after a refutation; anytime-valid methods only.", show_default=False)
    ] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Run the code that STORE names without asking.")] = False,
    executor: ExecutorOptions,
    output: OutputOptions,
    modules: Import = None,
) -> int:
    chosen = executor.build()
    approved = approved_spec(store, trust=trust)
    methods = import_methods(modules)

    def run(watch: Watch | None) -> AuditResult:
        load = partial(_load, store, approved)
        return resume(store, load, trials=trials, stop_when=stop_when, executor=chosen, watch=watch, methods=methods)

    hint = f"to resume: {executor.resume_command(store)}"
    return show_result(run, resume_hint=hint, store=store, output=output)


def _load(store: Path, approved: TargetSpec | None, spec: TargetSpec, claim: Claim) -> Target | PairTarget:
    if spec != approved:
        raise StoreError("the store was replaced by another one in the meantime; resume it again")
    try:
        target = spec.load(claim)
    except LidpError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise StoreError(f"{store} is damaged: its target cannot be loaded ({type(error).__name__}: {error})") from None
    return target
