"""Programs as trainers: what they are given, what they write, and all that they may do wrong."""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import lidp
from lidp import AuditFailed, Claim, CoinFlip, InvalidArgument, Verdict
from lidp.integrations import commands
from lidp.integrations.commands import ProgramFailed, command_target, read_losses
from lidp.target_spec.fingerprint import fingerprint
from tests.integrations.programs import PROGRAM, program_that_hangs_once
from tests.waiting import PATIENCE, processes_with, wait_until, wait_until_gone

X = np.random.default_rng(0).standard_normal((20, 10)) / 10
RECORDS = (X, np.zeros(20, np.int64))
POOL = (np.eye(10), np.zeros(10, np.int64))
CLAIM = Claim(1.0, 1e-5)


def audit(command, *, trials=12, pilots=2, time_limit=None, logs=None, **options):
    target = command_target(command, RECORDS, POOL, pilots=pilots, time_limit=time_limit, logs=logs)
    return lidp.audit(target, claim=options.pop("claim", CLAIM), trials=trials, design=CoinFlip(8), **options)


def test_a_program_that_leaks_is_refuted():
    assert audit(f"{PROGRAM} --noise 0.05", trials=40, pilots=0).verdict is Verdict.REFUTED


def test_losses_may_come_in_any_form():
    found = [audit(f"{PROGRAM} --form {form}", trials=2, pilots=0).scores.flips()[0] for form in ("npy", "text", "json")]
    np.testing.assert_allclose(found[1], found[0])
    np.testing.assert_allclose(found[2], found[0])


def test_the_same_seed_gives_the_same_on_any_number_of_workers():
    one, two = audit(PROGRAM, trials=6), audit(PROGRAM, trials=6, workers=2)
    np.testing.assert_array_equal(one.scores.flips()[0], two.scores.flips()[0])


@pytest.mark.slow
def test_a_program_that_fails_now_and_then(tmp_path):
    """The audit goes on; failures are outcomes, each with its reason and its log."""
    found = audit(f"{PROGRAM} --noise 0.05 --fail 4", trials=30, pilots=0, logs=tmp_path, claim=Claim(50.0, 1e-5))
    assert 0 < found.failed_runs < 20
    note = next(note for note in found.notes if note.failures)
    reason = note.failures["scores"]
    assert "exit code 7; it printed: the disk is on fire; all of its log is in" in reason
    kept = list(tmp_path.iterdir())
    assert len(kept) == found.failed_runs
    assert kept[0].read_text() == "the disk is on fire\n"


@pytest.mark.slow
def test_one_failure_in_twenty_does_not_keep_a_leak_from_being_found():
    found = audit(f"{PROGRAM} --noise 0.05 --fail 20", trials=40, workers=2, seed=9)  # trials 0 and 2 fail
    assert found.verdict is Verdict.REFUTED
    assert found.failed_runs > 0


NOISE = """
import json, random, sys
random.seed(int(sys.argv[2]))
open(sys.argv[1], "w").write(json.dumps([random.random() for _ in range(10)]))
"""
TIGHT = """
import resource, sys
import numpy as np
import lidp
from lidp.integrations.commands import command_target

records, pool = (np.zeros((4, 50_000)), np.zeros(4, int)), (np.ones((10, 50_000)), np.zeros(10, int))
target = command_target(sys.argv[1] + " noise.py {out} {seed} {data}", records, pool, pilots=0)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(14.5 * 50_000 * 8), resource.RLIM_INFINITY))
try:
    print(lidp.audit(target, claim=lidp.Claim(1.0, 1e-5), trials=220, design=lidp.CoinFlip(1), workers=int(sys.argv[2])))
except lidp.AuditFailed as failure:
    print("ended:", failure)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_data_that_can_be_written_only_without_a_canary_end_the_audit(tmp_path, workers):
    """Were it a failed run, a program that ignores its data would be refuted: it would fail exactly when the canary is in."""
    (tmp_path / "noise.py").write_text(NOISE)
    (tmp_path / "tight.py").write_text(TIGHT)
    words = [sys.executable, "tight.py", sys.executable, str(workers)]
    found = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert re.search(r"^ended: writing \S+data.npz failed: OSError: .*File too large; .*set TMPDIR", found.stdout), found


def test_what_goes_wrong_on_the_auditors_side_ends_the_audit(tmp_path, monkeypatch):
    """Before the program starts, and after it has ended: temporary folder, log, start, logs to keep, losses to read."""

    def refuse(*_args, **_options):
        raise OSError(24, "Too many open files")

    usual = commands.create_private

    def refuse_log(path, *args):
        return refuse() if path.name == "log.txt" else usual(path, *args)

    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {Path(__file__).parent / 'trainer_program.py'} $@\n")
    program.chmod(0o755)
    (tmp_path / "file").touch()
    command = f"{program} --data {{data}} --out {{out}} --seed {{seed}}"
    target = command_target(command, RECORDS, POOL, pilots=0)
    failing = command_target(f"{command} --fail 1", RECORDS, POOL, pilots=0, logs=tmp_path / "file")
    for place, name, value, message in (
        (tempfile, "tempdir", str(tmp_path / "nowhere"), "creating a temporary folder failed: .*nowhere.*; .*set TMPDIR"),
        (commands, "create_private", refuse_log, "writing .*log.txt failed: .*Too many open files; free some space"),
        (Path, "read_bytes", refuse, "reading .*out failed: .*Too many open files; see that"),
    ):
        monkeypatch.setattr(place, name, value)
        with pytest.raises(AuditFailed, match=message):
            lidp.audit(target, claim=CLAIM, trials=2, design=CoinFlip(8))
        monkeypatch.undo()
    with pytest.raises(AuditFailed, match="keeping a log in .*file/seed-.*failed: .*; make room there, or"):
        lidp.audit(failing, claim=CLAIM, trials=2, design=CoinFlip(8))
    program.unlink()
    with pytest.raises(AuditFailed, match=f"starting {program} in . failed: FileNotFoundError.*; see that both are there"):
        lidp.audit(target, claim=CLAIM, trials=2, design=CoinFlip(8))


def test_what_a_program_does_to_its_folder_is_an_outcome(tmp_path):
    """Something else at {out} than a file, a file as large as a model, all of the folder deleted."""
    for line, reason in (
        ("mkdir $1", "what it wrote to {out} is no file"),
        ("mkfifo $1", "what it wrote to {out} is no file"),
        ("head -c 1000000 /dev/zero > $1", "wrote 1,000,000 bytes to {out}, which cannot be losses alone"),
        ("printf '%2000s' | tr ' ' '[' > $1", "cannot be read as losses"),
        ('rm -r "$(dirname $1)"', "wrote nothing to {out}"),
    ):
        (tmp_path / "program.sh").write_text(f"{line}\n")
        with pytest.raises(AuditFailed, match="all 2 trials failed") as caught:
            audit(f"sh {tmp_path / 'program.sh'} {{out}} {{data}}", trials=2, pilots=0, logs=tmp_path / "logs")
        assert reason in str(caught.value)


@pytest.fixture
def hangs_once(tmp_path):
    return program_that_hangs_once(tmp_path)


@pytest.mark.slow
def test_a_program_that_hangs_once_is_ended_with_all_it_started(hangs_once, tmp_path):
    found = audit(hangs_once.replace("COUNT", str(len(POOL[0]))), trials=4, pilots=0, time_limit=5.0)
    assert found.failed_runs == 1
    assert "passed the time limit of 5 s" in found.notes[0].failures["scores"]
    wait_until_gone(str(tmp_path / "hung"))


@pytest.mark.parametrize(
    ("nonsense", "reason"),
    [
        ("text", "cannot be read as losses"),
        ("few", "wrote 2 losses to {out}, 10 canaries are to be scored"),
        ("nan", "not finite"),
        ("nothing", "exited with 0 but wrote nothing to {out}"),
        ("pickle", "cannot be read as losses"),
    ],
)
def test_nonsense_is_a_failure_that_says_so(nonsense, reason):
    with pytest.raises(AuditFailed, match="all 2 trials failed") as caught:
        audit(f"{PROGRAM} --nonsense {nonsense}", trials=2, pilots=0)
    assert reason in str(caught.value)
    with pytest.raises(AuditFailed, match="all 1 pilot runs failed"):
        audit(f"{PROGRAM} --nonsense {nonsense}", trials=2, pilots=1)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("python train.py", "must contain {data} and {out}"),
        ("", "the command is empty"),
        (
            "no-such-program {data} {out}",
            "there is no program 'no-such-program'.*is not there; no shell is used.*sh -c '...'",
        ),
        ("A=1 python train.py {data} {out}", "there is no program 'A=1'.*no shell is used.*sh -c '...'"),
        ("cd x && python train.py {data} {out}", "the command has &&, but no shell is used; put .* into sh -c '...'"),
        ("python train.py {data} {out} > log.txt", "the command has >, but no shell is used"),
        (f"{'x' * 300} {{data}} {{out}}", "is not there"),
        (f"{Path(__file__).parent / 'trainer_program.py'} {{data}} {{out}}", "is not executable"),
        ("python '{data} {out}", "No closing quotation"),
    ],
)
def test_commands_that_cannot_be_run(command, message):
    with pytest.raises(InvalidArgument, match=message):
        command_target(command, RECORDS, POOL)


def test_other_braces_are_left_alone(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import json, sys, numpy as np\n"
        "assert json.loads(sys.argv[1]) == {'lr': 0.1, 'format': '{x}'}\n"
        "np.save(sys.argv[3], np.random.default_rng(int(sys.argv[4])).random(len(np.load(sys.argv[2])['canary_x'])))\n"
    )
    options = '\'{"lr": 0.1, "format": "{x}"}\''
    found = audit(f"{sys.executable} {script} {options} {{data}} {{out}} {{seed}}", trials=2, claim=Claim(9.0))
    assert found.failed_runs == 0


def test_a_program_that_was_changed_is_another_one(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("1")
    one, again = (
        fingerprint(command_target(f"{sys.executable} {script} {{data}} {{out}}", RECORDS, POOL)) for _ in range(2)
    )
    script.write_text("2")
    other = fingerprint(command_target(f"{sys.executable} {script} {{data}} {{out}}", RECORDS, POOL, logs="elsewhere"))
    assert one == again != other
    script.write_text("1")
    assert one == fingerprint(
        command_target(f"{sys.executable} {script} {{data}} {{out}}", RECORDS, POOL, logs="elsewhere")
    )


def test_a_script_for_a_shell_is_run_and_watched_for_changes(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "noise.py").write_text(NOISE)
    script = f"cd x && '{sys.executable}' noise.py {{out}} {{seed}} '|' && : {{data}} {'long' * 100}"
    command = f"sh -c {shlex.quote(script)} ';'"
    target = command_target(command, RECORDS, POOL, pilots=0, folder=tmp_path)
    assert lidp.audit(target, claim=CLAIM, trials=2, design=CoinFlip(8)).failed_runs == 0
    straight = command.replace("cd x &&", ":;").replace("noise.py", "x/noise.py")
    before = fingerprint(command_target(straight, RECORDS, POOL, folder=tmp_path))
    (tmp_path / "x" / "noise.py").write_text(NOISE * 2)
    assert fingerprint(command_target(straight, RECORDS, POOL, folder=tmp_path)) != before


def test_a_program_that_ignores_its_seed_is_named():
    with pytest.raises(AuditFailed, match="ignores its seed"):
        audit(PROGRAM.replace("--seed {seed}", ""), trials=2, pilots=2)


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_program_and_no_data_behind(tmp_path, signal_number):
    (tmp_path / "data").mkdir()
    script = tmp_path / "slow.sh"
    (tmp_path / "endless").touch()
    script.write_text(f"#!/bin/sh\ntail -f {tmp_path / 'endless'}\nexit 0\n")
    np.savez(tmp_path / "x.npz", x=X, y=np.arange(20) % 2)
    command = [
        sys.executable, "-m", "lidp", "audit-program", f"sh {script} {{data}} {{out}}", "--data", str(tmp_path / "x.npz"),
        "--epsilon", "1", "--trials", "9", "--workers", "2", "--pilots", "0", "--quiet",
    ]  # fmt: skip
    process = subprocess.Popen(
        command, env=os.environ | {"TMPDIR": str(tmp_path / "data")}, stderr=subprocess.DEVNULL,
        # Shells start background jobs with interrupts ignored, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    try:
        wait_until(lambda: len(processes_with(f"-f\0{tmp_path / 'endless'}")) == 2, "both workers run the program")
        process.send_signal(signal_number)
        assert process.wait(PATIENCE) == 130
    finally:
        process.kill()
    wait_until_gone(str(tmp_path))
    assert not list((tmp_path / "data").iterdir())


@pytest.mark.parametrize("who", ["driver", "workers"])
def test_data_do_not_outlive_a_killed_process(tmp_path, who):
    """SIGKILL, which nobody can answer: the data of the runs go all the same."""
    temporary, started = tmp_path / "data", tmp_path / "started"
    temporary.mkdir()
    started.mkdir()
    script = tmp_path / "slow.sh"
    # Its parent is the worker that runs it.
    script.write_text(f"#!/bin/sh\necho $PPID > {started}/$$.new\nmv {started}/$$.new {started}/$$\nsleep 3000\n")
    np.savez(tmp_path / "x.npz", x=X, y=np.arange(20) % 2)
    command = [
        sys.executable, "-m", "lidp", "audit-program", f"sh {script} {{data}} {{out}}", "--data", str(tmp_path / "x.npz"),
        "--epsilon", "1", "--trials", "2", "--workers", "2", "--pilots", "0", "--quiet",
    ]  # fmt: skip
    process = subprocess.Popen(command, env=os.environ | {"TMPDIR": str(temporary)}, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: sum(path.suffix == "" for path in started.iterdir()) == 2, "both programs run")
        folders = list(temporary.iterdir())
        assert len([path for path in folders if path.name.startswith("lidp-")]) == 2
        for folder in folders:
            assert folder.stat().st_mode & 0o077 == 0
            assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
        victims = [process.pid] if who == "driver" else [int(path.read_text()) for path in started.iterdir()]
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
        wait_until(lambda: not any(folder.exists() for folder in folders), "the folders are gone")
        process.wait()
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("name", ["a b", "$(touch pwned)", "`touch pwned`", "a;touch pwned;", "'", '"', "{out}"])
def test_a_folder_for_temporary_files_is_never_read_as_code(tmp_path, monkeypatch, name):
    hostile = tmp_path / name
    hostile.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(hostile))
    target = command_target("sh -c 'cat {data} > {out}'", RECORDS, POOL, pilots=0, folder=tmp_path)
    with pytest.raises(AuditFailed, match="set TMPDIR to a folder whose path has only letters"):
        lidp.audit(target, claim=CLAIM, trials=2, design=CoinFlip(8))
    assert not (tmp_path / "pwned").exists()


def test_kept_logs_are_for_the_users_eyes_only(tmp_path):
    target = command_target(f"{PROGRAM} --fail 1", RECORDS, POOL, pilots=0, logs=tmp_path / "logs")
    with pytest.raises(AuditFailed, match="the only trial failed with: "):
        lidp.audit(target, claim=CLAIM, trials=1, design=CoinFlip(8))
    logs = list((tmp_path / "logs").iterdir())
    assert len(logs) == 1
    for place in (tmp_path / "logs", *logs):
        assert place.stat().st_mode & 0o077 == 0


def test_records_must_be_columns():
    with pytest.raises(InvalidArgument, match="canaries must be a tuple of two arrays"):
        command_target(PROGRAM, RECORDS, POOL[0])


def test_losses_are_read_in_every_form(tmp_path):
    for name, text in (("a", "1.5 2\n3e0\n"), ("b", "[1.5, 2, 3.0]")):
        (tmp_path / name).write_text(text)
        np.testing.assert_array_equal(read_losses(tmp_path / name, 3), [1.5, 2, 3])
    np.save(tmp_path / "c", np.array([[1.5, 2, 3]], np.float32))
    np.testing.assert_array_equal(read_losses(tmp_path / "c", 3), [1.5, 2, 3])
    (tmp_path / "d").write_bytes(b"")
    with pytest.raises(ProgramFailed, match="wrote 0 losses"):
        read_losses(tmp_path / "d", 3)
