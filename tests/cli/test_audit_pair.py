"""``lidp audit-pair``."""

import json

import pytest

from tests.cli.invoke import lidp

FILE = """
import lidp

def noisy(count, rng):
    return count + rng.laplace(0, 0.4)

pair = (noisy, 0, 1)
target = lidp.PairTarget(noisy, 0, 1, name="my count")
other = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def test_a_pair_from_a_file(capsys, file, tmp_path):
    code, out, _ = lidp(capsys, "audit-pair", f"{file}:target", "--epsilon", 1, "--runs", 5000, "--quiet")
    assert code == 1
    assert "refuted: my count claims (1, 0)-DP" in out
    code, out, _ = lidp(capsys, "audit-pair", f"{file}:pair", "--epsilon", 4, "--runs", 500, "--quiet", "--json")
    assert code == 0
    assert json.loads(out)["verdict"] == "not refuted"
    report = tmp_path / "r.json"
    assert lidp(capsys, "audit-pair", f"{file}:pair", "--epsilon", 1, "--report", report, "--quiet")[0] == 1
    assert "leak" in json.loads(report.read_text())


def test_a_mechanism_of_the_catalogue(capsys):
    assert lidp(capsys, "audit-pair", "catalogue:svt5", "--epsilon", 1, "--quiet")[0] == 1
    assert lidp(capsys, "audit-pair", "catalogue:laplace", "--epsilon", 1, "--runs", 2000, "--quiet")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit-pair", "catalogue:svt9"], "no mechanism 'svt9' in the catalogue"),
        (["audit-pair", "catalogue:gaussian"], "gaussian adds Gaussian noise, which needs --delta above 0"),
        (["audit-pair", "nonsense"], "the target must be package.module:object or path/file.py:object"),
        (["audit-pair", "{file}:other"], "not a lidp.PairTarget or a tuple"),
        (["audit-pair", "{file}:nothing"], "has no 'nothing'"),
        (["audit-pair", "{file}:pair", "--runs", "0"], "runs must be"),
        (["audit-pair", "{file}:pair", "--stop-when", "later"], "stop_when must be one of refuted, never"),
        (["audit-pair", "{file}:pair", "--trials", "5"], "No such option: --trials"),
        (["audit", "{file}:pair"], "use lidp audit-pair"),
        (["audit", "gaussian", "--runs", "5"], "No such option: --runs"),
        (["audit-catalogue", "svt5"], "unexpected extra argument"),
        (["audit-catalogue", "--json"], "No such option: --json"),
    ],
)
def test_bad_usage(capsys, file, arguments, message):
    code, _, err = lidp(capsys, *[text.format(file=file) for text in arguments], "--epsilon", 1, "--quiet")
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_a_mechanism_that_exits(capsys, tmp_path):
    path = tmp_path / "leaves.py"
    path.write_text("import sys\npair = (lambda data, rng: sys.exit(0), 0, 1)\n")
    code, _, err = lidp(capsys, "audit-pair", f"{path}:pair", "--epsilon", 1, "--quiet")
    assert code == 2
    assert "raises on d0: SystemExit: 0" in err


def test_an_interrupt_shows_the_bound_so_far(capsys, tmp_path):
    path = tmp_path / "stops.py"
    path.write_text(
        "import signal\n"
        "calls = 0\n"
        "def mechanism(data, rng):\n"
        "    global calls\n"
        "    calls += 1\n"
        "    if calls > 300:\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    return data + rng.laplace(0, 1.0)\n"
        "pair = (mechanism, 0, 1)\n"
    )
    code, out, err = lidp(capsys, "audit-pair", f"{path}:pair", "--epsilon", 1, "--quiet")
    assert code == 130
    assert "of 50,000 runs" in out
    assert "interrupted" in err
