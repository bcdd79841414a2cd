"""``lidp audit-pair``: audit a mechanism from its outputs on two neighbouring data sets."""

from __future__ import annotations

from typing import Annotated

import typer

from lidp.cli.executor_options import ExecutorOptions
from lidp.cli.option_groups import with_option_groups
from lidp.cli.options import EXIT_CODES, ClaimOptions, OutputOptions, RunOptions, Store
from lidp.cli.running import NOT_STORED, show_result
from lidp.cli.watching import Watch
from lidp.engine.audit_pair import audit_pair
from lidp.errors import InvalidArgument
from lidp.result import AuditResult
from lidp.target import PairTarget
from lidp.target_spec import TargetSpec

HELP = f"""Audit a mechanism from its outputs on two data sets. Runs it on one of them at random, guesses which, bounds ε.

TARGET is a lidp.PairTarget or a tuple (mechanism, d0, d1), as path/file.py:object or package.module:object; or catalogue:NAME
for a mechanism that "lidp catalogue" lists.

{EXIT_CODES}
"""
_CATALOGUE_PREFIX = "catalogue:"

StopWhen = Annotated[str, typer.Option(help="refuted or never.")]


@with_option_groups
def command(
    *,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="A mechanism and two data sets.", show_default=False)],
    claim: ClaimOptions,
    runs: RunOptions,
    stop_when: StopWhen = "refuted",
    bits: Annotated[bool, typer.Option("--bits", help="Also look at the bit patterns of floats.")] = False,
    store: Store = None,
    executor: ExecutorOptions,
    output: OutputOptions,
) -> int:
    spec, checked_claim = parse_pair(target), claim.build(runs.neighbours)
    chosen = executor.build()
    absolute_store = None if store is None else store.absolute()  # the target may change the working directory

    def run(watch: Watch | None) -> AuditResult:
        pair = spec.load(checked_claim)
        if not isinstance(pair, PairTarget):
            raise InvalidArgument(f"{spec} is not a mechanism with two data sets; use lidp audit")
        return audit_pair(
            pair,
            claim=checked_claim,
            runs=runs.runs,
            failure_probability=runs.failure_probability,
            seed=runs.seed,
            stop_when=stop_when,
            bits=bits,
            store=absolute_store,
            executor=chosen,
            watch=watch,
            target_spec=spec,
        )

    hint = NOT_STORED if store is None else f"to resume: {executor.resume_command(store)}"
    return show_result(run, resume_hint=hint, store=store, output=output)


def parse_pair(text: str) -> TargetSpec:
    """Return the spec of a TARGET argument of ``lidp audit-pair``."""
    if text.startswith(_CATALOGUE_PREFIX):
        return TargetSpec("catalogue", {"name": text.removeprefix(_CATALOGUE_PREFIX)})
    return TargetSpec("pair", {"path": text})
