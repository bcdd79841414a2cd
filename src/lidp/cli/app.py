"""The application: its subcommands, and the exit codes of errors.

docs/audit.md#exit-codes describes the exit codes. There are no others.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Annotated

import typer

import lidp
from lidp._runtime.terminal_text import printable
from lidp.cli import other_options
from lidp.cli.commands import LazyGroup
from lidp.cli.replaced_commands import replacement
from lidp.errors import LidpError

# click's base exception, or that of the copy of click that newer versions of typer carry
_ClickException: type[BaseException] = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="lidp",
    cls=LazyGroup,
    help="Audit differential privacy: rigorous lower bounds on ε.",
    epilog="Exit codes of all commands: 0 done, or not refuted; 1 a claim is refuted; 2 error; 130 interrupted. The page "
    "“Audit a mechanism” of the documentation explains them (docs/audit.md#exit-codes).",
    add_completion=False,
    context_settings={"max_content_width": 100},
    rich_markup_mode=None,  # the framed style cuts long option names off at 80 columns
    pretty_exceptions_enable=False,
)


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
        return _complain(replacement(arguments) or str(error), 2, notes=getattr(error, "__notes__", ()))
    except _ClickException as error:
        if renamed := replacement(arguments):
            return _complain(renamed, 2)
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context else ""
        message = error.format_message().rstrip(".")  # type: ignore[attr-defined]
        if suggestion := other_options.hint(command, error):
            message = f"No such option: {error.option_name}{suggestion}"  # type: ignore[attr-defined]
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
    """Add the value of the option to a message about it; some versions of typer leave it out."""
    options = getattr(getattr(error, "param", None), "opts", ())
    for index, word in enumerate(arguments):
        option, equals, value = word.partition("=")
        given = value if equals else next(iter(arguments[index + 1 :]), "")
        if option in options and isinstance(error, typer.BadParameter) and repr(given) not in message:
            return f"{message}, got {given!r}"
    return message


def _complain(message: str, code: int, notes: Iterable[str] = ()) -> int:
    with contextlib.suppress(OSError, ValueError):  # a closed stderr does not change the exit code
        for note in notes:  # the last lines of a traceback of user code, before the line that says what is wrong
            typer.echo(printable(note), err=True)
        typer.echo(f"lidp: {printable(' '.join(message.split()))}", err=True)
    return code
