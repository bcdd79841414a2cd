"""The subcommands: each is imported when it is used, so that ``lidp --help`` and every other command start quickly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

SUMMARIES = {
    "audit": "Audit a target that is defined in Python.",
    "audit-dpsgd": "Audit models that are trained by DP-SGD.",
    "audit-program": "Audit a program that trains a model.",
    "audit-pair": "Audit a mechanism from its outputs on two data sets.",
    "audit-catalogue": "Audit every mechanism of the catalogue, and print a table.",
    "resume": "Resume the audit in STORE with the same settings, or extend it by --trials.",
    "bound": "Bound ε from a file of scores.",
    "report": "Write the result in STORE to a file.",
    "compare": "Compare the audits in several stores.",
    "serve": "Show audits on a live page in the browser.",
    "diagnose": "Say which part of a training deviates from its claim.",
    "plan": "Plan an audit: how many canaries and models it takes to refute a claim.",
    "reproduce": "Reproduce experiments of the paper.",
    "catalogue": "List the mechanisms and the trainings of the catalogue.",
    "witness": "Check a witness file.",
    "seal": "Seal canaries for a training that happens elsewhere.",
    "open": "Open sealed runs with the scores of their candidates.",
    "verify": "Check the receipt of a sealed audit, offline.",
    "cite": "Print BibTeX entries of the works that methods rest on.",
    "simulate": "Simulate scores of a mechanism with a known ε.",
}
"""The first sentence of each command's help, by its name; ``audit-pair`` is defined in ``audit_pair.py``."""


class LazyCommands(Mapping[str, Any]):
    """The commands by name. A command is imported and built when it is first asked for."""

    def __init__(self) -> None:
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in SUMMARIES:
            raise KeyError(name)
        if name not in self._built:
            self._built[name] = _build(name)
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(SUMMARIES)

    def __len__(self) -> int:
        return len(SUMMARIES)


def _build(name: str) -> Any:
    module = import_module(f"lidp.cli.{name.replace('-', '_')}")
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(name=name, help=module.HELP)(module.command)
    return typer.main.get_command(app)


class LazyGroup(TyperGroup):
    """The command ``lidp``, whose help lists the commands without importing them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = LazyCommands()  # type: ignore[assignment]  # nobody adds commands to it

    def format_commands(self, _context: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))
