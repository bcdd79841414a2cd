"""``lidp cite``: print BibTeX entries of the works that methods rest on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lidp.cli.method_imports import Import, find_method, import_methods
from lidp.errors import InvalidArgument
from lidp.stats.citations import HasWorks, bibtex
from lidp.stats.method import Method
from lidp.stats.registry import METHODS
from lidp.stats.storable import Storable

HELP = """Print BibTeX entries of the works that methods rest on.

WHAT is the name of a method, or the store of an audit. Without it, the entries for all methods are printed.
"""


def command(
    what: Annotated[
        list[str] | None, typer.Argument(metavar="WHAT", help="Names of methods, or stores.", show_default=False)
    ] = None,
    modules: Import = None,
) -> int:
    classes = import_methods(modules)
    methods = [_method(name, classes) for name in what] if what else list(METHODS.values())
    typer.echo(bibtex(methods))
    return 0


def _method(name: str, classes: list[type[Storable]]) -> HasWorks:
    imported = {cls.name for cls in classes if issubclass(cls, Method)}
    if name in METHODS or name in imported:
        return find_method(name, classes)
    if not Path(name).is_file():
        raise InvalidArgument(f"{name!r} is neither a method ({', '.join([*METHODS, *imported])}) nor a file")
    from lidp.engine.audit import plan_of

    return plan_of(name, methods=classes).method
