"""``lidp audit --pair``, ``lidp catalogue`` and ``lidp witness`` as typed."""

import json

import pytest

from lidp.cli.app import run as main

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


def run(capsys, *arguments):
    code = main([*map(str, arguments)])
    return code, *capsys.readouterr()


def test_a_pair_from_a_file(capsys, file, tmp_path):
    code, out, _ = run(capsys, "audit", f"{file}:target", "--pair", "--epsilon", 1, "--runs", 5000, "--quiet")
    assert code == 1
    assert "refuted: my count claims (1, 0)-DP" in out
    code, out, _ = run(capsys, "audit", f"{file}:pair", "--pair", "--epsilon", 4, "--runs", 500, "--quiet", "--json")
    assert code == 0
    assert json.loads(out)["verdict"] == "not refuted"
    report = tmp_path / "r.json"
    assert run(capsys, "audit", f"{file}:pair", "--pair", "--epsilon", 1, "--report", report, "--quiet")[0] == 1
    assert "leak" in json.loads(report.read_text())


def test_the_catalogue(capsys):
    code, out, _ = run(capsys, "catalogue")
    assert code == 0
    assert "svt3" in out
    assert "not private" in out
    assert run(capsys, "audit", "catalogue:svt5", "--epsilon", 1, "--quiet")[0] == 1
    assert run(capsys, "audit", "catalogue:laplace", "--epsilon", 1, "--runs", 2000, "--quiet")[0] == 0
    code, out, _ = run(capsys, "audit", "catalogue", "--all", "--epsilon", 1, "--runs", 400, "--quiet")
    assert code == 1
    assert "svt5                         not private            refuted" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["catalogue:svt9"], "no mechanism 'svt9' in the catalogue"),
        (["catalogue"], "catalogue --all audits all"),
        (["catalogue:svt1", "--all"], "catalogue --all audits all"),
        (["gaussian", "--all"], "--all is for the target catalogue"),
        (["{file}:other", "--pair"], "not a lidp.PairTarget or a tuple"),
        (["{file}:nothing", "--pair"], "has no 'nothing'"),
        (["{file}:pair"], "add --pair"),
        (["{file}:pair", "--pair", "--store", "x.db"], "--store is for audits with canaries; --report FILE.html keeps"),
        (["{file}:pair", "--pair", "--runs", "0"], "runs must be"),
        (["catalogue:gaussian"], "gaussian adds Gaussian noise, which needs --delta above 0"),
        (["{file}:pair", "--pair", "--trials", "5"], "--trials is for audits with canaries"),
        (["{file}:pair", "--pair", "--design", "bogus"], "--design is for audits with canaries"),
        (["gaussian", "--runs", "5"], "--runs is for --pair"),
        (["catalogue", "--all", "--json"], "--json is for one mechanism"),
    ],
)
def test_bad_usage(capsys, file, arguments, message):
    code, _, err = run(capsys, "audit", *[text.format(file=file) for text in arguments], "--epsilon", 1, "--quiet")
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_bad_witnesses(capsys, tmp_path):
    assert run(capsys, "witness", tmp_path / "none.json")[0] == 2
    path = tmp_path / "w.json"
    for text in ("{", "[]", "{}", '{"claim": 3}'):
        path.write_text(text)
        code, _, err = run(capsys, "witness", path)
        assert code == 2
        assert err.startswith("lidp: ")
        assert err.count("\n") == 1


def test_a_mechanism_that_exits(capsys, tmp_path):
    path = tmp_path / "leaves.py"
    path.write_text("import sys\npair = (lambda data, rng: sys.exit(0), 0, 1)\n")
    code, _, err = run(capsys, "audit", f"{path}:pair", "--pair", "--epsilon", 1, "--quiet")
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
    code, out, err = run(capsys, "audit", f"{path}:pair", "--pair", "--epsilon", 1, "--quiet")
    assert code == 130
    assert "of 50,000 runs" in out
    assert "interrupted" in err
