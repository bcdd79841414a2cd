"""``lidp witness``: check the evidence in a witness file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from lidp._runtime.file_kinds import describe_file
from lidp._runtime.terminal_text import printable
from lidp.cli.method_imports import Import, import_methods
from lidp.errors import InvalidArgument
from lidp.result import recheck
from lidp.rounding import at_least, claimed, counted
from lidp.store import is_store

HELP = """Check a witness file. Recomputes the bound from the scores or predictions in the file.

Exit code: 0 the claim is not refuted, 1 it is refuted, 2 the recomputed bound is not the one in the file, or another error.
"""


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A witness file of the pytest plugin.", show_default=False)],
    modules: Import = None,
) -> int:
    methods = import_methods(modules)
    try:
        _refuse_store(file)
        witness = json.loads(file.read_text(encoding="utf-8"))
        bound = recheck(witness, methods=methods)
    except OSError as error:
        raise InvalidArgument(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidArgument(f"{file} is not a witness, but {describe_file(file)}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(f"{file} is not a witness ({type(error).__name__}: {error})") from None
    epsilon = witness["claim"]["epsilon"]
    verdict = "refuted" if witness["refuted"] else "not refuted"
    sentence = (
        f"{verdict}: ε ≥ {at_least(bound.epsilon, above=epsilon)}, claimed {claimed(epsilon, bound.epsilon)}, "
        f"from {counted(bound.trials, 'trials')}, {bound.certainty}"
    )
    typer.echo(printable(sentence))
    return 1 if witness["refuted"] else 0


def _refuse_store(file: Path) -> None:
    if file.is_file() and is_store(file):
        raise InvalidArgument(
            f"{file} is the store of an audit, not a witness; lidp report shows its result, lidp bound computes it again"
        )
