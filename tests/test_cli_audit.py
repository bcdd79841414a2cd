"""``lidp audit``, ``resume`` and ``plan`` as a user types them."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from lidp import AuditInterrupted, Claim, CoinFlip, EpsilonBound, audit
from lidp.cli.app import run
from tests.engine import LEAKY, SLOW, InterruptedAfter, wait_for_more
from tests.waiting import PATIENCE

ROOT = Path(__file__).parent.parent


def lidp(capsys, *arguments):
    code = run([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_a_leak_by_module_and_by_file(capsys, tmp_path):
    common = ("--epsilon", 1, "--delta", "1e-5", "--canaries", 8, "--trials", 60, "--json")
    code, out, _ = lidp(capsys, "audit", "tests.engine:LEAKY", *common, "--report", tmp_path / "r.json")
    assert code == 1
    assert json.loads(out)["verdict"] == "refuted"
    assert json.loads((tmp_path / "r.json").read_text())["verdict"] == "refuted"
    target = tmp_path / "mine.py"
    target.write_text("from tests.engine import SILENT as target\n")
    code, out, _ = lidp(capsys, "audit", f"{target}:target", *common)
    assert code == 0
    assert json.loads(out)["verdict"] == "not refuted"


@pytest.mark.parametrize("design", ["coin-flip", "leave-one-out", "replace-one"])
def test_designs_by_name(capsys, design):
    code, out, _ = lidp(
        capsys, "audit", "tests.engine:LEAKY", "--epsilon", 1, "--canaries", 4, "--trials", 90, "--design", design
    )
    assert code == 1
    assert out.startswith("refuted: leaky claims")


def test_the_built_in_target(capsys):
    code, out, _ = lidp(capsys, "audit", "gaussian", "--epsilon", 1, "--delta", "1e-5", "--trials", 20)
    assert code == 0
    assert "not refuted" in out or "inconclusive" in out


def test_a_store_is_resumed_bounded_and_refused(capsys, tmp_path):
    store = tmp_path / "a.db"
    arguments = (
        "audit",
        "tests.engine:LEAKY",
        "--epsilon",
        1,
        "--delta",
        "1e-5",
        "--canaries",
        8,
        "--trials",
        50,
        "--store",
        store,
    )
    first = lidp(capsys, *arguments, "--json")
    again = lidp(capsys, "resume", store, "--json")
    assert first[0] == again[0] == 1
    assert json.loads(first[1])["bound"] == json.loads(again[1])["bound"]
    code, out, _ = lidp(capsys, "bound", store, "--json")
    assert code == 0
    assert json.loads(out)["epsilon"] == json.loads(first[1])["bound"]["epsilon"]
    code, _, err = lidp(capsys, *arguments, "--seed", 5)
    assert code == 2
    assert "seed was 0, is 5" in err


def test_fixed_size_methods_do_not_bound_a_store_that_stopped_early(capsys, tmp_path):
    store = tmp_path / "a.db"
    options = {"claim": Claim(1.0, 1e-5), "design": CoinFlip(8), "trials": 60, "store": store}
    assert audit(LEAKY, **options).bound.trials < 60
    code, _, err = lidp(capsys, "bound", store, "--method", "one-run")
    assert code == 2
    assert "stopped when the claim was refuted" in err
    code, _, err = lidp(capsys, "bound", store, "--method", "one-run", "--claim", 0.1)
    assert code == 2
    assert "stopped when the claim was refuted" in err
    code, out, _ = lidp(capsys, "bound", store, "--method", "all", "--json")
    assert code == 0
    assert set(json.loads(out)["bounds"]) == {"coin-wager"}
    assert not json.loads(out)["bounds"]["coin-wager"]["provisional"]
    assert "stopped when the claim was refuted" in json.loads(out)["not_applicable"]["one-run"]
    _, out, _ = lidp(capsys, "bound", store, "--method", "all")
    assert "these trials were stopped when the claim was refuted" in out


def test_bounds_of_an_unfinished_store_are_marked_as_provisional(capsys, tmp_path):
    store = tmp_path / "a.db"

    def interrupt(progress):
        if progress.done >= 5:
            raise KeyboardInterrupt

    with pytest.raises(AuditInterrupted):
        audit(SLOW, claim=Claim(9.0, 1e-5), design=CoinFlip(8), trials=2000, store=store, watch=interrupt)
    for method, provisional in (("one-run", True), ("coin-wager", False)):
        code, out, _ = lidp(capsys, "bound", store, "--method", method, "--json")
        assert code == 0
        assert json.loads(out)["provisional"] is provisional
        assert EpsilonBound.from_json(out).method == method
    _, out, _ = lidp(capsys, "bound", store, "--method", "one-run")
    assert "provisional: the audit is not finished" in out
    _, out, _ = lidp(capsys, "bound", store, "--method", "all", "--json")
    marks = {name: found["provisional"] for name, found in json.loads(out)["bounds"].items()}
    assert marks == {"coin-wager": False, "one-run": True, "one-run-fdp": True}
    _, out, _ = lidp(capsys, "bound", store, "--method", "all")
    assert "finite-sample, provisional" in out
    assert "provisional: the audit is not finished" in out


def test_an_unfinished_store_whose_claim_is_refuted_so_far_is_provisional_if_it_does_not_stop(capsys, tmp_path):
    store = tmp_path / "a.db"
    options = {"design": CoinFlip(8), "trials": 60, "stop_when": "never", "store": store}
    with pytest.raises(AuditInterrupted) as interrupted:
        audit(LEAKY, claim=Claim(0.1, 1e-5), executor=InterruptedAfter(40), **options)
    assert interrupted.value.result.verdict == "refuted"
    code, out, _ = lidp(capsys, "bound", store, "--method", "one-run", "--json")
    assert code == 0
    assert json.loads(out)["provisional"]


def test_an_interrupt_prints_the_bound_and_how_to_go_on(tmp_path):
    store = tmp_path / "a.db"
    process = subprocess.Popen(
        [
            sys.executable, "-m", "lidp", "audit", "tests.engine:SLOW", "--epsilon", "9", "--trials", "2000", "--canaries", "4",
            "--store", str(store), "--workers", "2",
        ],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # Shells start background jobs with interrupts ignored, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    wait_for_more(store, 20)  # the first one finished need not be the first one, and then there is no bound yet
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "of 2,000 trials" in out
    assert f"lidp resume {store}" in err
    assert "Traceback" not in err


BAD = [
    (["audit"], 2, "Missing option"),
    (["audit", "tests.engine:LEAKY"], 2, "--epsilon"),
    (["audit", "nonsense", "--epsilon", "1"], 2, "the target must be"),
    (["audit", "no.such.module:x", "--epsilon", "1"], 2, "there is no module"),
    (["audit", "none.py:x", "--epsilon", "1"], 2, "no such file"),
    (["audit", "tests.engine:NOTHING", "--epsilon", "1"], 2, "has no 'NOTHING'"),
    (["audit", "tests.engine:NOT_A_TARGET", "--epsilon", "1"], 2, "is a int, not a lidp.Target"),
    (["audit", "tests.engine:LEAKY", "--epsilon", "-1"], 2, "epsilon must be"),
    (["audit", "tests.engine:LEAKY", "--epsilon", "1", "--delta", "1"], 2, "delta must be"),
    (["audit", "tests.engine:LEAKY", "--epsilon", "1", "--design", "x"], 2, "design must be"),
    (["audit", "tests.engine:LEAKY", "--epsilon", "1", "--canaries", "0"], 2, "canaries must be"),
    (["audit", "tests.engine:LEAKY", "--epsilon", "1", "--workers", "0"], 2, "workers must be"),
    (["audit", "tests.engine:LEAKY", "--epsilon", "1", "--stop-when", "x"], 2, "stop_when must be"),
    (
        ["audit", "tests.engine:LEAKY", "--epsilon", "1", "--method", "one-run", "--stop-when", "refuted"],
        2,
        "not anytime-valid",
    ),
    (["audit", "tests.engine:LEAKY", "--epsilon", "1", "--neighbours", "x"], 2, "neighbours must be"),
    (["audit", "gaussian", "--epsilon", "1"], 2, "delta above 0"),
    (["audit", "gaussian", "--epsilon", "1e6", "--delta", "1e-5"], 2, "at most 500"),
    (["audit", "tests.engine:LEAKY", "--epsilon", "1", "--report", "/nowhere/r.json"], 2, "no such folder"),
    (["audit", "tests.engine:BROKEN", "--epsilon", "1", "--trials", "4"], 2, "all 4 trials failed"),
    (["bound", "/nowhere/a.db"], 2, "there is no such file"),
    (["resume", "none.db"], 2, "no such store"),
    (["resume", "README.md"], 2, "not a store"),
    (["plan", "--claim", "2"], 2, "--suspect"),
    (["plan", "--claim", "2", "--suspect", "1"], 2, "suspect must be above"),
    (["plan", "--claim", "2", "--suspect", "3", "--power", "1"], 2, "power must"),
    (["plan", "--claim", "2", "--suspect", "3", "--canaries", "0"], 2, "canaries must be"),
    (["plan", "--claim", "2", "--suspect", "3", "--price-per-hour", "1"], 2, "need seconds_per_model"),
    (["plan", "--claim", "2", "--suspect", "3", "--workers", "0"], 2, "workers must be"),
    (["plan", "--claim", "2", "--suspect", "3", "--price-per-hour", "-1"], 2, "price_per_hour must be"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), BAD, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_bad_input_is_one_line(capsys, arguments, code, message):
    found, out, err = lidp(capsys, *arguments)
    assert found == code
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("lidp: ")
    assert message in err


def test_bounding_a_store_uses_its_own_method_and_failure_probability(capsys, tmp_path):
    store = tmp_path / "a.db"
    lidp(
        capsys, "audit", "tests.engine:LEAKY", "--epsilon", 1, "--delta", "1e-5", "--canaries", 8, "--trials", 50, "--store", store,
        "--method", "one-run", "--failure-probability", "0.001",
    )  # fmt: skip
    found = json.loads(lidp(capsys, "bound", store, "--json")[1])
    assert (found["method"], found["failure_probability"]) == ("one-run", 0.001)


def test_a_damaged_store_is_one_line(capsys, tmp_path):
    store = tmp_path / "a.db"
    lidp(capsys, "audit", "tests.engine:LEAKY", "--epsilon", 1, "--canaries", 2, "--trials", 9, "--store", store)
    with sqlite3.connect(store) as connection:
        connection.execute("DELETE FROM scores WHERE trial = 3")
    connection.close()
    for command in ("bound", "resume"):
        code, _, err = lidp(capsys, command, store)
        assert code == 2
        assert "is damaged" in err
        assert err.count("\n") == 1


def test_a_target_that_cannot_be_loaded_exits_with_2(capsys, tmp_path):
    broken = tmp_path / "broken_target.py"
    for text in ("raise RuntimeError('not today')", "raise SystemExit('not today')"):
        broken.write_text(text)
        code, _, err = lidp(capsys, "audit", f"{broken}:x", "--epsilon", 1)
        assert code == 2
        assert "not today" in err


def test_progress_is_plain_off_a_terminal_and_absent_when_quiet(tmp_path):
    command = [
        sys.executable, "-m", "lidp", "audit", "tests.engine:SLOW", "--epsilon", "9", "--trials", "400", "--canaries", "2",
    ]  # fmt: skip
    loud = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "trials," in loud.stderr
    assert "claim 9" in loud.stderr
    silent = subprocess.run([*command, "--quiet", "--json"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert silent.stderr == ""
    assert json.loads(silent.stdout)["bound"]["trials"] == 400


def test_plan(capsys):
    arguments = ("plan", "--claim", "0.5", "--suspect", "4", "--canaries", "32", "--repeats", "10", "--models", "20")
    code, out, _ = lidp(capsys, *arguments, "--json")
    assert code == 0
    assert json.loads(out)["recommended"]["canaries"] == 32
    code, out, _ = lidp(capsys, *arguments)
    assert code == 0
    assert "to refute ε = 0.5" in out


def test_plan_says_models_times_time_times_price(capsys):
    arguments = (
        "plan",
        "--claim",
        "0.5",
        "--suspect",
        "4",
        "--canaries",
        "32",
        "--repeats",
        "10",
        "--seconds-per-model",
        "1800",
    )
    arguments += ("--price-per-hour", "2.5", "--workers", "4")
    best = json.loads(lidp(capsys, *arguments, "--json")[1])["recommended"]
    assert best["machine_hours"] == best["models"] / 2
    assert best["cost"] == best["models"] / 2 * 2.5
    assert best["wall_clock_seconds"] == -(-best["models"] // 4) * 1800
    out = lidp(capsys, *arguments)[1]
    assert "with 4 workers at once" in out
    assert f"{best['models'] / 2:,.1f} machine hours at 2.50 = {best['cost']:,.2f}" in out


@pytest.mark.parametrize(
    "report",
    ["n.db", "N.db", "sub/../n.db", "link.db", "folder/n.db", *(f"n.db{end}" for end in ("-wal", "-shm", "-lock"))],
)
def test_a_report_never_replaces_the_store(capsys, tmp_path, monkeypatch, report):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT))
    Path("sub").mkdir()
    Path("link.db").symlink_to("n.db")
    Path("folder").symlink_to(".")
    words = ("audit", "tests.engine:SILENT", "--epsilon", 9, "--trials", 3, "--store", "n.db", "--quiet")
    code, out, err = lidp(capsys, *words, "--report", report)
    assert (code, out) == (2, "")
    assert "a report must not replace" in err
    assert not Path("n.db").exists()  # nothing was run
    assert lidp(capsys, *words)[0] == 0
    kept = Path("n.db").read_bytes()
    for again in (
        (*words, "--report", report),
        ("resume", "n.db", "--quiet", "--report", report),
        ("report", "n.db", "-o", report),
        ("compare", "n.db", "n.db", "-o", report),
    ):
        assert lidp(capsys, *again)[0] == 2, again
    assert Path("n.db").read_bytes() == kept


def test_a_report_never_replaces_what_a_linked_store_leads_to(capsys, tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "n.db")
    words = ("audit", "tests.engine:SILENT", "--epsilon", 9, "--trials", 3, "--quiet", "--store", tmp_path / "link.db")
    for report in ("n.db", "n.db-wal", "link.db-lock"):
        code, _, err = lidp(capsys, *words, "--report", tmp_path / report)
        assert code == 2
        assert "belongs to the store" in err
