"""Stores that somebody else made: nobody else's code runs unless trusted."""

import shutil
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest

from lidp import StoreError, Target
from lidp.cli import trust
from lidp.cli.app import run as lidp_command
from lidp.engine.audit import resume
from lidp.store import Store
from tests.engine import Numbers, closeness, leaky
from tests.pages import ROOT
from tests.stores import edit

# Strangers.

TELLTALE = """
from pathlib import Path
import lidp
from tests.engine import Numbers, closeness, leaky
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


@pytest.mark.parametrize("origin", ["elsewhere", "edited", "moved"])
def test_a_strangers_store_runs_nothing_unless_trusted(unfinished, origin, monkeypatch, tmp_path, capsys):
    if origin == "elsewhere":  # another user, or another machine: another key
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "somebody-else"))
    elif origin == "edited":
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
    if origin != "edited":
        assert lidp_command(["resume", "a.db", "--quiet", "--trust"]) == 0
        assert Path("was-run").exists()


def test_a_strangers_command_is_shown_before_it_is_run(store, capsys):
    origin = "command?command=touch+%1B%5B2Jpwned+%7Bdata%7D+%7Bout%7D&data=x.npz&folder=%2Ftmp"
    store.keep_fact("configuration", {**store.configuration, "origin": origin})
    store.close()
    assert lidp_command(["resume", str(store.path)]) == 2
    told = capsys.readouterr().err
    assert "touch" in told
    assert "\x1b" not in told


GIVEN = {"command": "true {data} {out}", "data": "x.npz", "folder": "/somewhere"}
REFUSED = {  # an origin, and a word of the complaint
    "dpsgd?foo=1": "'foo'",
    "dpsgd?claim=1": "'claim'",
    "dpsgd?measure-accuracy=1": "'measure-accuracy'",
    "dpsgd?scale=x": "'scale'",
    "dpsgd?records=x": "records must be a whole number, got 'x'",
    "dpsgd?epochs=x": "epochs must be a number, got 'x'",
    "dpsgd?clip-norm=x": "clip-norm must be a number, got 'x'",
    "dpsgd?canaries=4&canaries=5": "canaries once",
    "dpsgd?canary=": "canary of dpsgd is empty",
    "dpsgd?canaries": "cannot be read",
    f"dpsgd?canaries={'1' * 5000}": "canaries must be a whole number",
    f"dpsgd?canaries={'1' * 4000}": "canaries must be",
    f"dpsgd?hidden={'1' * 5000}": "hidden must be",
    "dpsgd?epochs=1e308": "is damaged: its origin cannot be read",
    "command?command=true": "needs the option data",
    "command?data=x.npz&folder=/tmp": "needs the option command",
    f"command?{urlencode([*GIVEN.items(), ('command', 'false {data} {out}')])}": "command once",
    f"command?{urlencode([*GIVEN.items(), ('shell', '1')])}": "'shell'",
    f"command?{urlencode([*GIVEN.items(), ('folder', '')])}": "folder once",
    f"command?{urlencode({**GIVEN, 'command': ''})}": "command of command is empty",
}


@pytest.mark.parametrize("origin", REFUSED, ids=range(len(REFUSED)))
@pytest.mark.parametrize("trusted", [[], ["--trust"]], ids=["asked", "trusted"])
def test_an_origin_with_options_that_mean_nothing_is_refused_in_one_line(store, capsys, origin, trusted):
    store.keep_fact("configuration", {**store.configuration, "origin": origin})
    store.close()
    assert lidp_command(["resume", str(store.path), "--quiet", *trusted]) == 2
    told = capsys.readouterr().err
    assert REFUSED[origin] in told
    assert "should not have happened" not in told
    assert told.count("\n") == 1
    assert len(told) < 6000


@pytest.mark.parametrize("option", ["pilots", "time_limit"])
def test_a_number_of_a_strangers_command_that_is_none_is_refused(store, capsys, option, tmp_path):
    np.savez(tmp_path / "x.npz", x=np.ones((20, 2)), y=np.arange(20) % 2)
    origin = f"command?{urlencode({**GIVEN, 'data': tmp_path / 'x.npz', option: 'x'})}"
    store.keep_fact("configuration", {**store.configuration, "origin": origin})
    store.close()
    assert lidp_command(["resume", str(store.path), "--quiet", "--trust"]) == 2
    assert f"{option} must be a" in capsys.readouterr().err


@pytest.mark.parametrize("origin", [7, True, ["dpsgd"], {"dpsgd": 1}], ids=str)
def test_an_origin_that_is_no_text_is_called_damaged(store, capsys, origin):
    store.keep_fact("configuration", {**store.configuration, "origin": origin})
    store.close()
    assert lidp_command(["resume", str(store.path), "--quiet", "--trust"]) == 2
    assert "is damaged: its origin cannot be read" in capsys.readouterr().err


def test_the_question_shows_what_would_be_run_and_no_control_characters(monkeypatch, capsys):
    given = {**GIVEN, "command": "touch \x1b[2J", "logs": "/elsewhere"}
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *_words, **_options: False)
    with pytest.raises(StoreError, match="not trusted"):
        trust._ask(Path("a\nwas made by you\x1b[2J.db"), f"command?{urlencode(given)}")
    told = capsys.readouterr().err
    assert told.startswith(r"a\nwas made by you\x1b[2J.db was not made by you")
    for shown in (r"touch \x1b[2J", "'/somewhere'", "'x.npz'", "'/elsewhere'"):
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
            store.keep_fact("configuration", {**store.configuration, "origin": "os:system"})
        return "telltale.py:target"

    monkeypatch.setattr("lidp.cli.resume.approved_origin", swap)
    assert lidp_command(["resume", str(unfinished), "--quiet"]) == 2


def test_resuming_in_python_takes_what_the_caller_loads(unfinished):
    result = resume(unfinished, lambda origin, claim: {"telltale.py:target": Target(leaky, Numbers(), closeness)}[origin])
    assert result.bound.trials == 4
