"""The application: its commands, their help, and how errors leave it."""

import pytest
import typer

from lidp.cli.app import app
from tests.cli.invoke import lidp
from tests.commands import options_of
from tests.pages import ROOT

COMMANDS = typer.main.get_command(app).commands
AUDITS = ("audit", "audit-dpsgd", "audit-program", "audit-pair", "audit-catalogue")


def test_version(capsys):
    assert lidp(capsys, "--version")[:2] == (0, "0.1.0\n")


def test_no_arguments_print_the_help(capsys):
    assert lidp(capsys) == lidp(capsys, "--help")
    assert lidp(capsys)[0] == 0


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS), ["simulate", "gaussian"]], ids=" ".join)
def test_help_fits_a_screen(capsys, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "100")
    code, out, _ = lidp(capsys, *command, "--help")
    assert code == 0
    assert len(out.splitlines()) <= 50
    assert max(map(len, out.splitlines())) <= 100


def test_the_list_of_commands_cuts_no_sentence(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    listed = lidp(capsys, "--help")[1].partition("Commands:\n")[2].partition("\n\n")[0]
    assert set(COMMANDS) == {line.split()[0] for line in listed.splitlines()}
    assert "..." not in listed


def test_the_help_names_the_exit_codes_and_the_page_that_explains_them(capsys):
    text = " ".join(lidp(capsys, "--help")[1].split())
    assert "1 a claim is refuted" in text
    page, _, anchor = text.rpartition("(")[2].partition(")")[0].partition("#")
    assert f"\n## {anchor.replace('-', ' ').capitalize()}\n" in (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_explained_by_a_sentence(command):
    for parameter in COMMANDS[command].params:
        if parameter.name != "help":
            assert parameter.help, parameter.name
            assert parameter.help.endswith("."), parameter.help


def test_an_audit_command_has_its_own_options_only():
    options = {name: options_of(name) for name in AUDITS}
    for name in AUDITS:
        assert ("--preset" in options[name]) is (name == "audit-dpsgd")
        assert ("--data" in options[name]) is (name in ("audit-dpsgd", "audit-program"))
        assert ("--runs" in options[name]) is (name in ("audit-pair", "audit-catalogue"))
        assert ("--canaries" in options[name]) is (name in ("audit", "audit-dpsgd", "audit-program"))
        assert not options[name] & {"--pair", "--command", "--all"}


def test_an_unknown_command_is_one_line(capsys):
    code, out, err = lidp(capsys, "fly")
    assert (code, out) == (2, "")
    assert err.startswith("lidp: No such command 'fly'")
    assert err.count("\n") == 1
