"""What a mechanism prints does not get into the result, where it goes does not move it, and names cannot write to a terminal."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lidp._runtime.terminal_text import printable
from lidp.cli.app import run

NOISY = """
import atexit, ctypes, os, subprocess, sys
import numpy as np
import lidp

os.write(1, b"[import]")
os.chdir("/")
atexit.register(print, "[at exit]")
atexit.register(os.write, 1, b"[at exit too]")

def mechanism(dataset, rng):
    os.write(1, b"[descriptor]")
    print("[python]")
    sys.__stdout__.write("[original stream]")
    ctypes.CDLL(None).printf(b"[c]")
    subprocess.run(["echo", "[process]"], check=True)
    os.chdir("/tmp")
    return float(rng.standard_normal())

def score(output, canary):
    return output

target = lidp.Target(mechanism, lidp.UniformSphere(2), score, name="noisy")
"""
KINDS = ["import", "descriptor", "python", "original stream", "c", "process", "at exit", "at exit too"]


def lidp(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "lidp", *map(str, arguments)],
        cwd=folder, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
    )  # fmt: skip


@pytest.mark.slow_after_first
@pytest.mark.parametrize("workers", [1, 2])
def test_only_the_result_is_on_stdout_and_files_stay_where_they_were_named(tmp_path, workers):
    (tmp_path / "noisy.py").write_text(NOISY)
    audit = ["audit", "noisy.py:target", "--epsilon", 1, "--trials", 3, "--canaries", 2, "--workers", workers]
    found = lidp(tmp_path, *audit, "--json", "--store", "kept.db", "--report", "page.html")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["target"] == "noisy"
    for kind in KINDS:
        assert f"[{kind}]" in found.stderr
    assert {"kept.db", "page.html"} <= {path.name for path in tmp_path.iterdir()}
    plain = lidp(tmp_path, *audit, "--report", "result.json")
    assert "[" not in plain.stdout
    assert json.loads((tmp_path / "result.json").read_text())["target"] == "noisy"


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"


def test_control_characters_are_written_out():
    assert printable(HOSTILE) == r"\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
    assert printable("ε ≥ 1.2\n\tδ: é, 漢字") == "ε ≥ 1.2\n\tδ: é, 漢字"
    assert printable("\r\x08\x7f\u2028\ud800") == r"\r\x08\x7f\u2028\ud800"


def test_names_in_strangers_stores_reach_no_terminal(tmp_path, capsys):
    import lidp

    for name in ("one", "two"):
        target = lidp.Target(_noise, lidp.UniformSphere(2), _first, name=f"{HOSTILE}{name}", facts={f"f{HOSTILE}": HOSTILE})
        store = tmp_path / f"{name}{HOSTILE}.db"
        shown = lidp.audit(target, claim=lidp.Claim(1, 0), trials=2, design=lidp.CoinFlip(2), store=store)
        assert HOSTILE in str(shown)
    stores = sorted(map(str, tmp_path.glob("*.db")))
    for arguments in (
        ["compare", *stores],
        ["report", stores[0]],
        ["bound", stores[0]],
        ["bound", f"{HOSTILE}.npz", "--delta", "0"],
    ):
        run(arguments)
        printed = "".join(capsys.readouterr())
        assert printed
        assert not set(printed) & set("\x1b\x07\x9b\u202e"), arguments
    run(["resume", stores[0]])
    assert "\x1b" not in "".join(capsys.readouterr())
    assert Path(stores[0]).exists()


def _noise(_dataset, rng):
    return float(rng.standard_normal())


def _first(output, _canary):
    return output
