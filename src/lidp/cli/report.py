"""``lidp report``: write the result of an audit as an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lidp._runtime.terminal_text import printable
from lidp.cli.method_imports import Import, import_methods
from lidp.cli.report_files import check_report, is_page
from lidp.engine.audit import result_of
from lidp.errors import InvalidArgument

HELP = """Write the result in STORE as an HTML page.

The page needs no network and runs no script. An existing file is replaced. The audit may still be running; the page then shows
the result so far. The exit code is 0 whatever the verdict.
"""


def command(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The file that was given as --store.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write to.", show_default="STORE with .html")
    ] = None,
    modules: Import = None,
) -> int:
    output = output or store.with_suffix(".html")
    check_report(output, store)
    if not is_page(output):
        raise InvalidArgument(
            f"{output}: lidp report writes a page (.html); lidp resume {store} --json prints the result as JSON"
        )
    from lidp.report.page import write_report  # imported here, because it is slow to import
    from lidp.report.wording import verdict

    result = result_of(store, methods=import_methods(modules))
    typer.echo(printable(f"{write_report(result, output)}: {verdict(result)}"))
    return 0
