"""``lidp cite``: BibTeX of the methods used."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lidp.citations import BEHIND, bibtex
from lidp.errors import InvalidArgument
from lidp.stats.registry import METHODS

HELP = """Print BibTeX of the works behind methods.

WHAT is a method's name, or the store of an audit, whose method is meant. Without it, the works behind all methods are printed.
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
