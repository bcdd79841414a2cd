"""The examples run and show what they say."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
VERDICTS = {  # what each prints, in order
    "audit_numpy_mean.py": ["refuted"],
    "audit_opendp.py": ["not refuted", "refuted"],
    "audit_diffprivlib.py": ["not refuted", "refuted"],
}


def run(*arguments):
    command = [sys.executable, "-W", "ignore", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_all_examples_are_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*VERDICTS, "test_in_ci.py"}
    assert all(len(path.read_text(encoding="utf-8").splitlines()) < 20 for path in EXAMPLES.glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("name", VERDICTS)
def test_an_example(name):
    for library in ("opendp", "diffprivlib"):
        if library in name:
            pytest.importorskip(library)
    found = run(EXAMPLES / name)
    assert found.returncode == 0, found.stderr
    lines = [line.partition(":")[0] for line in found.stdout.splitlines() if not line.startswith(" ")]
    assert lines == VERDICTS[name]


@pytest.mark.slow
def test_the_example_for_ci():
    found = run("-m", "pytest", "-q", "-p", "no:cacheprovider", EXAMPLES / "test_in_ci.py")
    assert found.returncode == 0, found.stdout
    assert "dp: 1 assertions, 50,000 runs" in found.stdout
