"""Ask before code runs that somebody else's store names."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from lidp._runtime.terminal_text import printable
from lidp.cli import command_options
from lidp.cli.targets import BUILT_IN
from lidp.errors import StoreError
from lidp.store import Store
from lidp.store.marks import made_by_this_user


def approved_origin(path: Path, *, trust: bool) -> str | None:
    """Return the origin of the target in a store, which may be loaded: nobody else's code, or the user agrees.

    Raises:
        StoreError: if the user does not agree, or cannot be asked, or the origin is no text.
        InvalidArgument: if the origin is a command that cannot be read.
    """
    with Store.read(path) as store:
        origin = store.configuration.get("origin")
        if origin is None:
            return None
        if not isinstance(origin, str):
            raise StoreError(f"{path} is damaged: its origin cannot be read (it is no text)")
        known = trust or not _runs_code(origin) or made_by_this_user(store, in_current_folder=_depends_on_folder(origin))
    if not known:
        _ask(path, origin)
    return origin


def _kind(origin: str) -> str:
    return origin.partition("?")[0]


def _runs_code(origin: str) -> bool:
    return _kind(origin) not in BUILT_IN


def _depends_on_folder(origin: str) -> bool:
    """Return whether the current folder decides what an origin means: modules and relative paths are looked for there."""
    return _kind(origin) != command_options.NAME and not Path(origin.rpartition(":")[0]).is_absolute()


def _ask(path: Path, origin: str) -> None:
    lines = [
        f"{_visible(str(path))} was not made by you, on this machine and in this folder. Resuming it runs",
        f"  {_describe(origin)}",
        "with all your rights.",
    ]
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise StoreError(f"{' '.join(line.strip() for line in lines)} If you trust it, add --trust")
    typer.echo(printable("\n".join(lines)), err=True)
    if not typer.confirm("Run it?", default=False, err=True):
        raise StoreError(f"{path} was not resumed: what it names is not trusted")


def _visible(text: str) -> str:
    """Return text on one line, with control characters made visible."""
    return printable(text).replace("\n", r"\n").replace("\t", r"\t")


def _describe(origin: str) -> str:
    """Say what would be run, with control characters made visible."""
    if _kind(origin) == command_options.NAME:
        given = command_options.options_in(origin)
        logs = f", writing logs to {given['logs']!r}" if "logs" in given else ""
        return f"the command {given['command']!r} in the folder {given['folder']!r} with the data {given['data']!r}{logs}"
    place, _, name = origin.rpartition(":")
    shown = str(Path(place).absolute()) if place.endswith(".py") else place
    return f"the Python code {shown!r} (its object {name!r})"
