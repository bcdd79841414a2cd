"""Options that several subcommands have in common."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from lidp.errors import InvalidArgument
from lidp.store import is_store

_STORE_FILES = ("", "-wal", "-shm", "-journal", "-lock", ".logs")
"""What is added to the name of a store for the files beside it."""

Delta = Annotated[float, typer.Option(help="The claimed δ.")]
ClaimedEpsilon = Annotated[float, typer.Option(help="The claimed ε.", show_default=False)]
FailureProbability = Annotated[float, typer.Option(help="β: how often a true claim may be refuted.")]
Workers = Annotated[int, typer.Option(help="Processes to run trials in.")]
TimeLimit = Annotated[float | None, typer.Option(help="Seconds a trial may take.", show_default=False)]
Retry = Annotated[
    bool, typer.Option("--retry", help="Rerun a trial whose worker died; valid if all randomness comes from rng.")
]
Executor = Annotated[str, typer.Option(help="Who runs trials: local or ray.")]
RayAddress = Annotated[str | None, typer.Option(help="auto or host:port.", show_default="a Ray of its own on this machine")]
CpusPerTrial = Annotated[float | None, typer.Option(help="For --executor ray.", show_default="1")]
GpusPerTrial = Annotated[float | None, typer.Option(help="For --executor ray.", show_default="0")]
Report = Annotated[
    Path | None,
    typer.Option(help="Write the result to this file: a page if it ends in .html, else JSON.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON only.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]


def check_report(report: Path, *stores: Path) -> None:
    """Refuse a report that could not be written, or would replace what was audited for, before the work is done.

    Raises:
        InvalidArgument: also if it is the file of one of the stores, whether that exists already or not, or a file beside it.
    """
    if not report.parent.is_dir():
        raise InvalidArgument(f"{report}: there is no such folder to write the report to")
    if report.is_dir():
        raise InvalidArgument(f"{report} is a folder; name a file to write the report to")
    if report.is_file() and is_store(report):
        raise InvalidArgument(f"{report} is the store of an audit, which a report must not replace; choose another name")
    for store in stores:
        if _places(report) & {f"{place}{suffix}" for place in _places(store) for suffix in _STORE_FILES}:
            raise InvalidArgument(
                f"{report} belongs to the store {store}, which a report must not replace; choose another name"
            )


def _places(path: Path) -> set[str]:
    """Return where a path leads: its name in its folder, and what that name is a link to; upper case may mean lower case."""
    named = os.path.join(os.path.realpath(path.parent), path.name)  # noqa: PTH118
    return {place.casefold() for place in (named, os.path.realpath(path))}  # realpath never raises, on loops for one
