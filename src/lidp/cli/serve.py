"""``lidp serve``: a live page about audits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lidp import checks
from lidp._runtime.terminal_text import printable
from lidp.cli.method_imports import Import, import_methods
from lidp.errors import InvalidArgument

HELP = """Show audits on a live page in the browser.

Lists the audits in all stores below PLACES (folders or stores), follows those that are running, compares audits, and opens and
downloads their reports. It reads stores, never writes them, and runs no code that they name. Ctrl-C ends it.

Only this machine can open the page, unless --host names another address; then the page needs the token that is printed.
"""


def command(
    places: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PLACES", help="Folders or stores.", show_default="this folder"),
    ] = None,
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any free one.", min=0, max=65535)] = 8765,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            help="Token that the page needs, also on this machine.",
            envvar="LIDP_SERVE_TOKEN",
            show_default="random with --host, else none",
            show_envvar=True,
        ),
    ] = None,
    cost_per_model: Annotated[
        float | None, typer.Option(help="Price of one trained model, to show what audits cost.", show_default=False)
    ] = None,
    modules: Import = None,
) -> int:
    price = None if cost_per_model is None else checks.non_negative(cost_per_model=cost_per_model)
    methods = import_methods(modules)
    try:
        from lidp.serve.server import LiveServer  # imported here, because it needs an extra and is slow to import
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise InvalidArgument("lidp serve needs starlette and uvicorn; pip install 'lidp[serve]'") from None
    from lidp.serve.audits import Audits

    audits = Audits(places or [Path()], methods=methods)
    count = len(audits.catalogue().entries)
    server = LiveServer(audits, host, port, token, price)
    typer.echo(printable(f"{server.address} shows {count:,} {'audit' if count == 1 else 'audits'}; Ctrl-C ends it"))
    try:
        server.run()
    except KeyboardInterrupt:  # uvicorn passes it on after it has closed all connections
        typer.echo("lidp: the server has ended", err=True)
    return 0
