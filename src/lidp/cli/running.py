"""Run an audit from the command line: show progress, print the result, write the report, choose the exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import typer

from lidp._runtime.terminal_text import printable
from lidp.claim import Claim, Neighbours
from lidp.cli.executor_options import ExecutorOptions
from lidp.cli.next_steps import next_steps
from lidp.cli.options import CanaryOptions, OutputOptions
from lidp.cli.output import stdout_kept_for_results
from lidp.cli.report_files import check_format, check_report, write_result
from lidp.cli.watching import Watch, watching
from lidp.engine.audit import audit
from lidp.result import AuditInterrupted, AuditResult, Verdict
from lidp.target_spec import TargetSpec


class BuildsClaim(Protocol):
    """Options that state a claim."""

    def build(self, neighbours: Neighbours | str) -> Claim:
        """Return the claim about this neighbour relation."""


NOT_STORED = "nothing was stored; use --store to be able to resume"


def run_canary_audit(
    spec: TargetSpec,
    claim_options: BuildsClaim,
    canary_options: CanaryOptions,
    store: Path | None,
    executor_options: ExecutorOptions,
    output: OutputOptions,
) -> int:
    """Audit a target with canaries, print the result, write the report, and return the exit code."""
    design = canary_options.build_design()
    claim = claim_options.build(design.neighbours)
    method = canary_options.build_method()
    executor = executor_options.build()
    absolute_store = None if store is None else store.absolute()  # the target may change the working directory

    def run(watch: Watch | None) -> AuditResult:
        return audit(
            spec.load(claim),
            claim=claim,
            design=None if canary_options.leaves_number_to_target else design,
            trials=canary_options.trials,
            method=method,
            independent_canaries=canary_options.independent_canaries,
            failure_probability=canary_options.failure_probability,
            seed=canary_options.seed,
            store=absolute_store,
            stop_when=canary_options.stop_when,
            executor=executor,
            watch=watch,
            target_spec=spec,
        )

    hint = NOT_STORED if store is None else f"to resume: {executor_options.resume_command(store)}"
    return show_result(run, resume_hint=hint, store=store, output=output)


def show_result(
    run: Callable[[Watch | None], AuditResult], *, resume_hint: str, store: Path | None, output: OutputOptions
) -> int:
    """Call ``run``, which audits; print its result, write the report, and return the exit code.

    If the audit is interrupted, print ``resume_hint`` and write no report.
    """
    report = output.report
    if report is not None:
        check_report(report, *([] if store is None else [store]))
        check_format(report)
        report = report.absolute()  # the target may change the working directory
    try:
        # Text that the target prints must not get into the result.
        with stdout_kept_for_results(), watching(quiet=output.quiet) as watch:
            result = run(watch)
    except AuditInterrupted as interrupt:
        if interrupt.result is not None and not output.as_json:
            typer.echo(printable(str(interrupt.result)))
        typer.echo(printable(f"lidp: interrupted; {resume_hint}"), err=True)
        return 130
    # Print before writing the report: the verdict must not be lost if the report fails.
    typer.echo(result.to_json(indent=2) if output.as_json else printable(str(result)))
    if report is not None:
        write_result(result, report)
    if not (output.as_json or output.quiet):
        typer.echo(printable(next_steps(result, store)), err=True)
    return 1 if result.verdict is Verdict.REFUTED else 0
