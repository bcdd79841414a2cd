"""``lidp cite``: print BibTeX entries for methods."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lidp.citations import BEHIND, bibtex
from lidp.errors import InvalidArgument
from lidp.stats.registry import METHODS

HELP = """Print BibTeX entries of the publications that methods are from.

WHAT is the name of a method, or the store of an audit. Without it, the entries for all methods are printed.
"""


def command(
    what: Annotated[list[str] | None, typer.Argument(help="Names of methods, or stores.", show_default=False)] = None,
) -> int:
    typer.echo(bibtex([_method(name) for name in what or list(BEHIND)]))
    return 0


def _method(name: str) -> str:
    if name in BEHIND:
        return name
    if not Path(name).is_file():
        raise InvalidArgument(f"{name!r} is neither a method ({', '.join(METHODS)}) nor a file")
    from lidp.engine.audit import plan_of

    return plan_of(name).method.name
