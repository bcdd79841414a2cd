"""Resuming a store that somebody else made runs no code unless the user trusts it."""

import shutil
from pathlib import Path

import pytest

from lidp import StoreError, Target, TargetSpec
from lidp.cli import trust
from lidp.cli.app import run as lidp_command
from lidp.engine.audit import resume
from lidp.store import Store
from tests.pages import ROOT
from tests.sample_targets import Numbers, closeness, leaky, run
from tests.stores import edit

TELLTALE = """
from pathlib import Path
import lidp
from tests.sample_targets import Numbers, closeness, leaky
Path(__file__).with_name("was-run").touch()
target = lidp.Target(leaky, Numbers(), closeness)
"""


@pytest.fixture
def unfinished(tmp_path, monkeypatch):
    """An audit of telltale.py that stopped half-way; its code leaves a file when it is loaded."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT))
    Path("telltale.py").write_text(TELLTALE)
    assert lidp_command([*AUDIT, "--store", "a.db"]) == 0
    edit("a.db", "DELETE FROM scores WHERE trial = 3")
    edit("a.db", "DELETE FROM trials WHERE number = 3")
    Path("was-run").unlink()
    return Path("a.db")


AUDIT = ["audit", "telltale.py:target", "--epsilon", "9", "--trials", "4", "--stop-when", "never", "--quiet"]


def test_ones_own_store_is_resumed_without_a_question(unfinished):
    assert lidp_command(["resume", str(unfinished), "--quiet"]) == 0
    assert Path("was-run").exists()


@pytest.mark.parametrize("change", ["elsewhere", "edited", "moved"])
def test_a_strangers_store_runs_nothing_unless_trusted(unfinished, change, monkeypatch, tmp_path, capsys):
    if change == "elsewhere":  # another user, or another machine: another key
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "somebody-else"))
    elif change == "edited":
        with Store.open(unfinished) as store:
            store.keep_fact("configuration", {**store.configuration, "seed": 5})
    else:
        (tmp_path / "other").mkdir()
        for name in ("a.db", "telltale.py"):
            shutil.copy(name, tmp_path / "other" / name)
        monkeypatch.chdir(tmp_path / "other")
    assert lidp_command(["resume", "a.db", "--quiet"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "telltale.py" in told
    assert "--trust" in told
    assert not Path("was-run").exists()
    if change != "edited":
        assert lidp_command(["resume", "a.db", "--quiet", "--trust"]) == 0
        assert Path("was-run").exists()


def put_spec(store, spec):
    """Replace the target spec in a store, as its author could, and close the store."""
    store.keep_fact("configuration", {**store.configuration, "target_spec": spec})
    store.close()


def test_a_strangers_command_is_shown_before_it_is_run(store, capsys):
    put_spec(store, program(command="touch \x1b[2Jpwned {data} {out}"))
    assert lidp_command(["resume", str(store.path)]) == 2
    told = capsys.readouterr().err
    assert "touch" in told
    assert "\x1b" not in told


GIVEN = {"command": "true {data} {out}", "data": "/nowhere/x.npz", "folder": "/somewhere"}


def program(**changes):
    return {"kind": "program", "options": {**GIVEN, **changes}}


def dpsgd(**options):
    return {"kind": "dpsgd", "options": {"canaries": 4, **options}}


def without(name):
    return {"kind": "program", "options": {key: value for key, value in GIVEN.items() if key != name}}


DAMAGED = "is damaged: its target "
REFUSED = [  # a target spec, and a part of the message
    (dpsgd(foo=1), "dpsgd has no option 'foo'"),
    (dpsgd(claim=1), "'claim'"),
    (dpsgd(measure_accuracy=True), "'measure_accuracy'"),
    (dpsgd(scale="x"), "'scale'"),
    (dpsgd(records="x"), "records must be a whole number, got 'x'"),
    (dpsgd(records=1.5), "records must be a whole number, got 1.5"),
    (dpsgd(records=True), "records must be a whole number, got True"),
    (dpsgd(epochs="1"), "epochs must be a number, got '1'"),
    (dpsgd(clip_norm="x"), "clip_norm must be a number, got 'x'"),
    (dpsgd(random_start=1), "random_start must be true or false, got 1"),
    (dpsgd(canary=""), "canary of dpsgd is empty"),
    (dpsgd(canary=None), "canary must be text, got None"),
    (dpsgd(canaries=10**4000), "canaries must be"),
    (dpsgd(hidden="1" * 5000), "hidden must be"),
    (dpsgd(epochs=1e308), f"{DAMAGED}cannot be loaded"),
    ({"kind": "dpsgd", "options": {}}, "dpsgd needs the option canaries"),
    (without("data"), "program needs the option data"),
    (without("command"), "program needs the option command"),
    (without("folder"), "program needs the option folder"),
    (program(environment="x"), "'environment'"),
    (program(command=""), "command of program is empty"),
    (program(pilots="x"), "pilots must be a whole number"),
    (program(time_limit="x"), "time_limit must be a number"),
    ({"kind": "shell", "options": {"command": "true"}}, "the kind of a target must be one of python"),
    ({"kind": ["python"], "options": {"path": "os:system"}}, "the kind of a target must be one of python"),
    ({"kind": "python", "options": ["os:system"]}, "the options of python must be a mapping"),
    ({"kind": "python"}, "must have a kind and options"),
    ({"kind": "python", "options": {"path": "os:system"}, "more": 1}, "must have a kind and options"),
    ({"kind": "catalogue", "options": {"name": "laplace"}}, "laplace is not what it was when"),
    ("dpsgd", f"{DAMAGED}spec cannot be read"),
    (7, f"{DAMAGED}spec cannot be read"),
    (True, f"{DAMAGED}spec cannot be read"),
    (["dpsgd"], f"{DAMAGED}spec cannot be read"),
]


@pytest.mark.parametrize(("spec", "message"), REFUSED, ids=range(len(REFUSED)))
@pytest.mark.parametrize("trusted", [[], ["--trust"]], ids=["asked", "trusted"])
def test_a_spec_that_cannot_be_read_is_refused_in_one_line(store, capsys, spec, message, trusted):
    put_spec(store, spec)
    assert lidp_command(["resume", str(store.path), "--quiet", *trusted]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert "should not have happened" not in told
    assert told.count("\n") == 1
    assert len(told) < 6000


@pytest.mark.parametrize("command", ["bound", "report", "resume"])
def test_reading_a_store_with_a_hostile_spec_runs_nothing(unfinished, command, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "somebody-else"))
    lidp_command([command, str(unfinished)])
    assert not Path("was-run").exists()


@pytest.mark.parametrize("option", ["folder", "data"])
def test_a_program_with_a_relative_path_is_ones_own_in_its_folder_only(tmp_path, monkeypatch, capsys, option):
    """What the command runs on, and where, would follow the current folder."""
    spec = TargetSpec("program", {**GIVEN, option: "."})
    monkeypatch.chdir(tmp_path)
    run(trials=3, store=tmp_path / "a.db", target_spec=spec)
    assert trust.approved_spec(tmp_path / "a.db", trust=False) == spec
    monkeypatch.chdir("/")
    with pytest.raises(StoreError, match="--trust"):
        trust.approved_spec(tmp_path / "a.db", trust=False)


def test_the_question_shows_what_would_be_run_and_no_control_characters(monkeypatch, capsys):
    given = {**GIVEN, "command": "touch \x1b[2J", "logs": "/elsewhere"}
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *_words, **_options: False)
    with pytest.raises(StoreError, match="not trusted"):
        trust._ask(Path("a\nwas made by you\x1b[2J.db"), TargetSpec("program", given))
    told = capsys.readouterr().err
    assert told.startswith(r"a\nwas made by you\x1b[2J.db was not made by you")
    for shown in (r"touch \x1b[2J", "'/somewhere'", "'/nowhere/x.npz'", "'/elsewhere'"):
        assert shown in told


def test_a_built_in_target_needs_no_trust(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    command = ["gaussian", "--epsilon", "2", "--delta", "1e-5", "--trials", "4", "--stop-when", "never", "--quiet"]
    assert lidp_command(["audit", *command, "--store", str(path)]) == 0
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "somebody-else"))
    assert lidp_command(["resume", str(path), "--quiet"]) == 0


def test_a_store_that_is_swapped_after_the_question_is_not_run(unfinished, monkeypatch):
    def swap(path, *, trust):
        with Store.open(path) as store:
            store.keep_fact(
                "configuration",
                {**store.configuration, "target_spec": {"kind": "python", "options": {"path": "os:system"}}},
            )
        return TargetSpec("python", {"path": "telltale.py:target"})

    monkeypatch.setattr("lidp.cli.resume.approved_spec", swap)
    assert lidp_command(["resume", str(unfinished), "--quiet"]) == 2


def test_resuming_in_python_takes_what_the_caller_loads(unfinished):
    targets = {TargetSpec("python", {"path": "telltale.py:target"}): Target(leaky, Numbers(), closeness)}
    result = resume(unfinished, lambda spec, claim: targets[spec])
    assert result.bound.trials == 4
