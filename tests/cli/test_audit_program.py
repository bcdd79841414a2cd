"""``lidp audit-program``."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lidp.cli.audit_program import ProgramOptions
from tests.cli.invoke import lidp
from tests.integrations import programs
from tests.integrations.programs import PROGRAM, program_that_hangs_once
from tests.waiting import PATIENCE


@pytest.fixture
def data(tmp_path):
    place = tmp_path / "data.npz"
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((40, 10)) / 10, rng.integers(0, 2, 40)
    np.savez(place, x=x, y=y, test_x=np.repeat(np.eye(10), 3, axis=0), test_y=np.zeros(30, int))
    return str(place)


def test_a_program_from_the_command_line(data, tmp_path, capsys):
    options = ["--epsilon", "1", "--delta", "1e-5", "--canaries", "8", "--trials", "40", "--pilots", "2", "--data", data]
    code, out, _ = lidp(capsys, "audit-program", f"{PROGRAM} --noise 0.05", *options, "--quiet")
    assert code == 1
    assert out.startswith("refuted: ")
    store = tmp_path / "a.db"
    few = [*options[:6], "--trials", "6", *options[8:]]
    command = ["audit-program", f"{PROGRAM} --fail 3", *few, "--quiet", "--store", str(store)]
    command += ["--time-limit", str(PATIENCE)]
    code, out, _ = lidp(capsys, *command, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["failed_runs"] > 0
    assert len(list((tmp_path / "a.db.logs").iterdir())) >= found["failed_runs"]
    code, again, _ = lidp(capsys, "resume", str(store), "--quiet", "--json")
    assert (code, json.loads(again)["bound"]) == (0, found["bound"])


@pytest.fixture
def hangs_once(tmp_path):
    return program_that_hangs_once(tmp_path)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("workers", ["1", "2"])
def test_pilot_runs_that_fail_or_hang_are_told(data, hangs_once, workers):
    """In this process, or in one of their own: on the screen, whoever is quiet."""
    program = hangs_once.replace("COUNT", "30")
    command = [
        sys.executable, "-m", "lidp", "audit-program", program, "--data", data, "--epsilon", "9", "--trials", "2",
        "--canaries", "2", "--pilots", "3", "--time-limit", "5", "--workers", workers,
    ]  # fmt: skip
    found = subprocess.run([*command, "--quiet"], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert found.returncode == 0, found.stderr
    assert "1 of 3 pilot runs failed and are left out, the first with: passed the time limit of 5 s; repair" in found.stderr


def test_a_program_that_was_changed_is_called_by_its_name(data, tmp_path, capsys):
    script, store = tmp_path / "train.py", tmp_path / "a.db"
    script.write_text(Path(programs.__file__).with_name("trainer_program.py").read_text())
    command = f"{sys.executable} {script} --data {{data}} --out {{out}} --seed {{seed}}"
    again = ["audit-program", command, "--data", data, "--epsilon", "9", "--trials", "2", "--pilots", "0", "--quiet"]
    again += ["--store", str(store)]
    assert lidp(capsys, *again)[0] == 0
    script.write_text(script.read_text() + "# changed")
    for arguments in (again, ["resume", str(store), "--quiet"]):
        code, _, err = lidp(capsys, *arguments)
        assert code == 2
        assert err.startswith(
            f"lidp: {command} is not what it was when {store} was made, or lidp was another version; put it back to go on, or "
        )
        assert len(err.splitlines()) == 1


def test_the_help_warns_of_rates_that_reveal_the_number_of_canaries(capsys):
    told = " ".join(lidp(capsys, "audit-program", "--help")[1].split())
    assert "must not compute its sampling rate or number of steps from the number of records" in told
    assert "keep them constant, or claim --neighbours replace-one" in told


def test_the_spec_has_absolute_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = ProgramOptions("x.npz").build_spec("true {data} {out}", Path("a.db"), time_limit=3.0)
    assert not spec.depends_on_folder
    assert spec.options["data"] == str(tmp_path / "x.npz")
    assert spec.options["logs"] == str(tmp_path / "a.db.logs")
    assert (spec.options["folder"], spec.options["time_limit"]) == (str(tmp_path), 3.0)


COMMAND = "true {data} {out}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument 'COMMAND'"),
        ([COMMAND], "Missing option '--data'"),
        ([COMMAND, "--data", ""], "data of program is empty"),
        ([COMMAND, "--data", "no.npz"], "there is no such file"),
        ([COMMAND, "--data", "x.npz", "--epochs", "3"], "No such option: --epochs"),
        (["true", "--data", "DATA"], "must contain {data} and {out}"),
        ([COMMAND, "--data", "DATA", "--canary", "other"], "canary must be mislabelled or blank for a program"),
    ],
)
def test_wrong_usage(arguments, message, data, capsys):
    words = [data if word == "DATA" else word for word in arguments]
    code, _, err = lidp(capsys, "audit-program", *words, "--epsilon", "1")
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1
