"""``lidp compare``: compare the audits in several stores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lidp._runtime.terminal_text import printable
from lidp.cli.method_imports import Import, import_methods
from lidp.cli.report_files import check_report
from lidp.engine.audit import result_of

HELP = """Compare the audits in several stores.

Prints a table; with -o also writes a page. Each audit has its own failure probability, so picking the best of them afterwards
is not valid. The exit code is 0 whatever the verdicts.
"""


def command(
    stores: Annotated[
        list[Path], typer.Argument(metavar="STORES", help="Files that were given as --store.", show_default=False)
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write an HTML page to this file.", show_default=False)
    ] = None,
    modules: Import = None,
) -> int:
    from rich.console import Console

    from lidp.report.comparison import Comparison  # imported here, because it is slow to import

    if output is not None:
        check_report(output, *stores)
    methods = import_methods(modules)
    comparison = Comparison.of([(store.stem, result_of(store, methods=methods)) for store in stores])
    console = Console()
    console.print(comparison.table())
    for remark in comparison.remarks:
        console.print(printable(remark), soft_wrap=True, markup=False, highlight=False)
    if output is not None:
        typer.echo(printable(str(comparison.write(output))))
    return 0
