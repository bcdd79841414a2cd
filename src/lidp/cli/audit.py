"""``lidp audit``: audit a target that is defined in Python."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import typer

from lidp.claim import Claim, Neighbours
from lidp.cli.executor_options import ExecutorOptions
from lidp.cli.option_groups import with_option_groups
from lidp.cli.options import EXIT_CODES, ClaimOptions, OutputOptions, Store, TargetCanaryOptions
from lidp.cli.running import run_canary_audit
from lidp.errors import InvalidArgument
from lidp.mechanisms.catalogue import CATALOGUE
from lidp.target_spec import TargetSpec
from lidp.target_spec.built_in import GAUSSIAN
from lidp.training.catalogue import TrainingEntry, find

HELP = f"""Audit a target that is defined in Python. Plants canaries, runs it, bounds ε, tests the claim.

TARGET is a lidp.Target, as path/file.py:object or package.module:object, or a built-in mechanism: {", ".join(GAUSSIAN)};
or catalogue:NAME for a training that "lidp catalogue" lists, which states its claim itself.

To audit something else, use audit-dpsgd, audit-program or audit-pair. {EXIT_CODES}
"""


_CATALOGUE_PREFIX = "catalogue:"


@dataclass(frozen=True)
class _TrainingClaim:
    """The claim of a training of the catalogue, unless the options state another."""

    entry: TrainingEntry
    options: ClaimOptions

    def build(self, neighbours: Neighbours | str) -> Claim:
        """Return the claim about this neighbour relation."""
        return self.entry.claim if self.options == ClaimOptions() else self.options.build(neighbours)


@with_option_groups
def command(
    *,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The target to audit.", show_default=False)],
    claim: ClaimOptions,
    canaries: TargetCanaryOptions,
    store: Store = None,
    executor: ExecutorOptions,
    output: OutputOptions,
) -> int:
    spec = parse_target(target)
    entry = find(str(spec.options["name"])) if spec.kind == "training" else None
    if entry is None:
        return run_canary_audit(spec, claim, canaries, store, executor, output)
    chosen = replace(canaries, canaries=entry.canaries) if canaries.canaries is None else canaries
    return run_canary_audit(spec, _TrainingClaim(entry, claim), chosen, store, executor, output)


def parse_target(text: str) -> TargetSpec:
    """Return the spec of a TARGET argument.

    Raises:
        InvalidArgument: if the text is neither a built-in name nor a path with an object, or names a mechanism of the catalogue.
    """
    if text.startswith(_CATALOGUE_PREFIX):
        name = text.removeprefix(_CATALOGUE_PREFIX)
        if name in CATALOGUE:
            raise InvalidArgument(f"{name} is a mechanism with two data sets; use lidp audit-pair {text}")
        return TargetSpec("training", {"name": name})
    if text in GAUSSIAN:
        return TargetSpec("built-in", {"name": text})
    if ":" not in text:
        raise InvalidArgument(
            f"the target must be package.module:object, path/file.py:object or built in ({', '.join(GAUSSIAN)}), got {text!r}"
        )
    return TargetSpec("python", {"path": text})
