"""``lidp witness``: check the evidence of a refuted claim again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from lidp._runtime.terminal_text import printable
from lidp.cli.method_imports import Import, import_methods
from lidp.errors import InvalidArgument
from lidp.result import recheck
from lidp.rounding import at_least, exact

HELP = """Compute the bound of a witness file again, from the scores or predictions in it alone.

The exit code is 1 if the witness refutes its claim, 0 if it does not, 2 if it does not say what it states.
"""


def command(
    file: Annotated[Path, typer.Argument(help="A witness, as written by the pytest plugin.", show_default=False)],
    modules: Import = None,
) -> int:
    methods = import_methods(modules)
    try:
        witness = json.loads(file.read_text(encoding="utf-8"))
        found = recheck(witness, methods=methods)
    except OSError as error:
        raise InvalidArgument(f"{file}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(f"{file} is not a witness ({type(error).__name__}: {error})") from None
    claimed = witness["claim"]["epsilon"]
    verdict = "refuted" if witness["refuted"] else "not refuted"
    told = (
        f"{verdict}: ε ≥ {at_least(found.epsilon, above=claimed)}, claimed {exact(claimed)}, from {found.trials:,} trials, "
        f"{found.certainty}"
    )
    typer.echo(printable(told))
    return 1 if witness["refuted"] else 0
