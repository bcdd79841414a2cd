"""``lidp compare``: several audits side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lidp._runtime.terminal_text import printable
from lidp.cli import options
from lidp.cli.method_imports import Import, import_methods
from lidp.engine.audit import result_of

HELP = """Put the audits in several stores side by side: a table here, and a page with -o.

Each audit keeps its own failure probability: picking the best of them afterwards is not valid. The exit code is 0 whatever the
verdicts.
"""


def command(
    stores: Annotated[list[Path], typer.Argument(help="Files given as --store.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write an HTML page to this file.", show_default=False)
    ] = None,
    modules: Import = None,
) -> int:
    from rich.console import Console

    from lidp.report.comparison import Comparison  # here, so that other commands do not wait for it

    if output is not None:
        options.check_report(output, *stores)
    methods = import_methods(modules)
    found = Comparison.of([(store.stem, result_of(store, methods=methods)) for store in stores])
    console = Console()
    console.print(found.table())
    for remark in found.remarks:
        console.print(printable(remark), soft_wrap=True, markup=False, highlight=False)
    if output is not None:
        typer.echo(printable(str(found.write(output))))
    return 0
