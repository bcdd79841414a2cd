"""The application: its subcommands, and how errors leave it.

Exit codes: 0 done (a claim was not refuted), 1 the claim was refuted and nothing else, 2 bad usage, bad input or an audit that
could not run, 130 interrupted. There are no others.
"""

from __future__ import annotations

import contextlib
from typing import Annotated

import typer

import lidp
from lidp._runtime.terminal_text import printable
from lidp.cli import audit, bound, catalogue, cite, compare, plan, report, reproduce, resume, simulate, witness
from lidp.errors import LidpError

# click's base exception, or that of the copy of click that newer versions of typer carry
_ClickException: type[BaseException] = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="lidp",
    help="Audit differential privacy: rigorous lower bounds on ε.",
    add_completion=False,
    rich_markup_mode=None,  # the framed style cuts long option names off at 80 columns
    pretty_exceptions_enable=False,
)
app.command(name="audit", help=audit.HELP)(audit.command)
app.command(name="resume", help=resume.HELP)(resume.command)
app.command(name="bound", help=bound.HELP)(bound.command)
app.command(name="report", help=report.HELP)(report.command)
app.command(name="compare", help=compare.HELP)(compare.command)
app.command(name="plan", help=plan.HELP)(plan.command)
app.command(name="reproduce", help=reproduce.HELP)(reproduce.command)
app.command(name="catalogue", help=catalogue.HELP)(catalogue.command)
app.command(name="witness", help=witness.HELP)(witness.command)
app.command(name="cite", help=cite.HELP)(cite.command)
app.add_typer(simulate.app, name="simulate")


@app.callback(invoke_without_command=True, no_args_is_help=False)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        typer.echo(lidp.__version__)
        raise typer.Exit


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code; every error is one line on stderr and exit code 2."""
    command = typer.main.get_command(app)
    try:
        code = command.main(args=arguments or ["--help"], prog_name="lidp", standalone_mode=False)
    except LidpError as error:
        return _complain(str(error), 2)
    except _ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context else ""
        message = error.format_message().rstrip(".")  # type: ignore[attr-defined]
        return _complain(f"{_with_value(message, error, arguments)}{hint}", 2)
    except (typer.Abort, KeyboardInterrupt):
        return _complain("interrupted", 130)
    except (MemoryError, OverflowError):
        return _complain("this is more than the machine can hold; use fewer trials, canaries, dimensions or thresholds", 2)
    except OSError as error:
        return _complain(f"{error.strerror or error}", 2)
    except BaseException as error:  # noqa: BLE001  # exit code 1 means "refuted", so nothing else may end with it
        return _complain(f"this should not have happened: {type(error).__name__}: {error}", 2)
    return code if isinstance(code, int) else 0


def _with_value(message: str, error: BaseException, arguments: list[str]) -> str:
    """A complaint about an option, with what was given for it, which some versions of typer leave out."""
    options = getattr(getattr(error, "param", None), "opts", ())
    for place, word in enumerate(arguments):
        option, equals, value = word.partition("=")
        given = value if equals else next(iter(arguments[place + 1 :]), "")
        if option in options and isinstance(error, typer.BadParameter) and repr(given) not in message:
            return f"{message}, got {given!r}"
    return message


def _complain(message: str, code: int) -> int:
    with contextlib.suppress(OSError, ValueError):  # a standard error that is closed does not change the code
        typer.echo(f"lidp: {printable(' '.join(message.split()))}", err=True)
    return code
