"""``lidp report``: write the result of an audit as a page, as Markdown, as JSON or as JUnit XML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lidp import checks
from lidp._runtime.terminal_text import printable
from lidp.cli.method_imports import Import, import_methods
from lidp.cli.report_files import check_report, is_page
from lidp.engine.audit import result_of
from lidp.errors import InvalidArgument

HELP = """Write the result in STORE to a file.

An HTML page needs no network and runs no script. Markdown is for job summaries, junit for the test reports of CI systems.
An existing file is replaced. The audit may still be running; the report then shows the result so far. The exit code is 0
whatever the verdict.
"""


def command(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The file that was given as --store.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write to.", show_default="STORE with .html, .md, .json or .xml"),
    ] = None,
    format_name: Annotated[str, typer.Option("--format", help="html, markdown, json or junit.")] = "html",
    modules: Import = None,
) -> int:
    from lidp.report.formats import Format  # imported here, because it is slow to import
    from lidp.report.page import write_page
    from lidp.report.wording import verdict

    chosen = checks.member(Format, format=format_name)
    output = output or store.with_suffix(chosen.suffix)
    check_report(output, store)
    if chosen is Format.HTML and not is_page(output):
        raise InvalidArgument(f"{output}: the report is a page (.html); for JSON, add --format json")
    result = result_of(store, methods=import_methods(modules))
    typer.echo(printable(f"{write_page(chosen.render(result), output)}: {verdict(result)}"))
    return 0
