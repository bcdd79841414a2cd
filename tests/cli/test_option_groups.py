"""Dataclasses as groups of options."""

from dataclasses import dataclass
from inspect import signature
from typing import Annotated

import typer
from typer.testing import CliRunner

from lidp.cli.option_groups import with_option_groups


@dataclass(frozen=True)
class Size:
    width: Annotated[int, typer.Option(help="Width.")]
    height: Annotated[int, typer.Option(help="Height.")] = 2


@with_option_groups
def command(
    *,
    name: Annotated[str, typer.Argument(help="Name.")],
    size: Size,
    loud: Annotated[bool, typer.Option("--loud", help="Shout.")] = False,
) -> int:
    typer.echo(f"{name} {size} {loud}")
    return 0


def test_the_fields_of_a_group_become_options_in_its_place():
    assert list(signature(command).parameters) == ["name", "width", "height", "loud"]


def test_the_command_gets_an_instance_of_the_group():
    app = typer.Typer()
    app.command()(command)
    runner = CliRunner()
    assert runner.invoke(app, ["box", "--width", "3", "--loud"]).output == f"box {Size(3, 2)} True\n"
    assert runner.invoke(app, ["box", "--width", "3", "--height", "4"]).output == f"box {Size(3, 4)} False\n"
    assert runner.invoke(app, ["box"]).exit_code == 2  # a field without a default is required
