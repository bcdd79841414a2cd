"""``lidp audit``: audit a target that is defined in Python."""

from __future__ import annotations

from typing import Annotated

import typer

from lidp.cli.executor_options import ExecutorOptions
from lidp.cli.option_groups import with_option_groups
from lidp.cli.options import EXIT_CODES, CanaryOptions, ClaimOptions, OutputOptions, Store
from lidp.cli.running import run_canary_audit
from lidp.errors import InvalidArgument
from lidp.target_spec import TargetSpec
from lidp.target_spec.built_in import GAUSSIAN

HELP = f"""Audit a target that is defined in Python. Plants canaries, runs it, bounds ε, tests the claim.

TARGET is a lidp.Target, as path/file.py:object or package.module:object, or a built-in mechanism: {", ".join(GAUSSIAN)}.

To audit something else, use audit-dpsgd, audit-program or audit-pair. {EXIT_CODES}
"""


@with_option_groups
def command(
    *,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The target to audit.", show_default=False)],
    claim: ClaimOptions,
    canaries: CanaryOptions,
    store: Store = None,
    executor: ExecutorOptions,
    output: OutputOptions,
) -> int:
    return run_canary_audit(parse_target(target), claim, canaries, store, executor, output)


def parse_target(text: str) -> TargetSpec:
    """Return the spec of a TARGET argument.

    Raises:
        InvalidArgument: if the text is neither a built-in name nor a path with an object.
    """
    if text in GAUSSIAN:
        return TargetSpec("built-in", {"name": text})
    if ":" not in text:
        raise InvalidArgument(
            f"the target must be package.module:object, path/file.py:object or built in ({', '.join(GAUSSIAN)}), got {text!r}"
        )
    return TargetSpec("python", {"path": text})
