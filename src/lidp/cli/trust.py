"""Ask before running code that a store names, unless this user made the store here."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from lidp._runtime.terminal_text import printable
from lidp.errors import InvalidArgument, StoreError
from lidp.store import Store
from lidp.store.marks import made_by_this_user
from lidp.target_spec import TargetSpec


def approved_spec(path: Path, *, trust: bool) -> TargetSpec | None:
    """Return the target spec in a store if it may be loaded; None if the store has none. Reading a spec runs no code.

    A spec may be loaded if ``trust`` is set, if it runs no code of the store's choice, or if this user made the store on this
    machine (and in this folder, if the folder decides which code is meant). Otherwise the user is asked.

    Raises:
        StoreError: if the user does not agree or cannot be asked, or if the spec cannot be read.
    """
    with Store.read(path) as store:
        plain = store.configuration.get("target_spec")
        if plain is None:
            return None
        try:
            spec = TargetSpec.from_dict(plain)
        except InvalidArgument as error:
            raise StoreError(f"{path} is damaged: its target spec cannot be read ({error})") from None
        approved = trust or not spec.runs_code or made_by_this_user(store, in_current_folder=spec.depends_on_folder)
    if not approved:
        _ask(path, spec)
    return spec


def _ask(path: Path, spec: TargetSpec) -> None:
    """Raise StoreError unless the user agrees to run the code."""
    lines = [
        f"{_on_one_line(str(path))} was not made by you on this machine and in this folder. Resuming it runs",
        f"  {_describe_code(spec)}",
        "with all your rights.",
    ]
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise StoreError(f"{' '.join(line.strip() for line in lines)} If you trust it, add --trust")
    typer.echo(printable("\n".join(lines)), err=True)
    if not typer.confirm("Run it?", default=False, err=True):
        raise StoreError(f"{path} was not resumed: the code that it names is not trusted")


def _on_one_line(text: str) -> str:
    """Return text on one line, with control characters made visible."""
    return printable(text).replace("\n", r"\n").replace("\t", r"\t")


def _describe_code(spec: TargetSpec) -> str:
    """Say which code would run, with control characters made visible."""
    if spec.kind == "program":
        given = spec.options
        logs = f", writing logs to {given['logs']!r}" if "logs" in given else ""
        return f"the command {given['command']!r} in the folder {given['folder']!r} with the data {given['data']!r}{logs}"
    source, _, name = str(spec).rpartition(":")
    shown = str(Path(source).absolute()) if source.endswith(".py") else source
    return f"the Python code {shown!r} (its object {name!r})"
