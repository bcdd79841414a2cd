"""``lidp report``: write the result of an audit as a page, as Markdown, as JSON, as JUnit XML or as a badge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lidp import checks
from lidp._runtime.terminal_text import printable
from lidp.cli.method_imports import Import, import_methods
from lidp.cli.report_files import check_report
from lidp.engine.audit import result_of

HELP = """Write the result in STORE to a file.

An HTML page needs no network and runs no script. Markdown is for job summaries, junit for the test reports of CI systems,
badge is a small image (.svg) for a README. An existing file is replaced. The audit may still be running; the report then
shows the result so far. The exit code is 0 whatever the verdict.
"""


def command(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The file that was given as --store.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write to.", show_default="STORE with the ending of the format"),
    ] = None,
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format", help="html, markdown, json, junit or badge.", show_default="by the ending of --output, else html"
        ),
    ] = None,
    modules: Import = None,
) -> int:
    from lidp.report.formats import Format  # imported here, because it is slow to import
    from lidp.report.wording import verdict

    chosen = Format.HTML if format_name is None else checks.member(Format, format=format_name)
    path = output or store.with_suffix(chosen.suffix)
    check_report(path, store)
    if format_name is None:
        chosen = Format.of_file(path)
    result = result_of(store, methods=import_methods(modules))
    typer.echo(printable(f"{chosen.write(result, path)}: {verdict(result)}"))
    return 0
