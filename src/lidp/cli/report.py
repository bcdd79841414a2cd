"""``lidp report``: the result of an audit as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lidp._runtime.terminal_text import printable
from lidp.cli import options
from lidp.cli.method_imports import Import, import_methods
from lidp.engine.audit import result_of

HELP = """Write the result in STORE as one HTML page, for a browser or a printer.

The page needs no network and runs no script. An existing file is replaced. The audit may still be running: the page then says
how things stand. The exit code is 0 whatever the verdict.
"""


def command(
    store: Annotated[Path, typer.Argument(help="The file given as --store.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write it.", show_default="STORE with .html")
    ] = None,
    modules: Import = None,
) -> int:
    output = output or store.with_suffix(".html")
    options.check_report(output, store)
    from lidp.report.page import write_report
    from lidp.report.wording import verdict  # here, so that other commands do not wait for it

    result = result_of(store, methods=import_methods(modules))
    typer.echo(printable(f"{write_report(result, output)}: {verdict(result)}"))
    return 0
