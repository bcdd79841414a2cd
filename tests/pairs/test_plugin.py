"""The pytest plugin, in sessions of its own."""

import json
import subprocess
import sys

import pytest

from lidp import InvalidArgument
from lidp.integrations.assertions import NotPrivate, Suite, share_of_call
from tests.pairs.plugin_suites import LAPLACE
from tests.waiting import PATIENCE

pytest_plugins = ["pytester"]

SUITE = f"""
import pytest
{LAPLACE}
@pytest.mark.parametrize("start", range(3))
def test_right(assert_private, start):
    assert_private(Laplace(1.0), start, start + 1, epsilon=1.0, runs=5_000)

def test_wrong(assert_private):
    assert_private(Laplace(0.4), 0, 1, epsilon=1.0, delta=1e-6, runs=5_000)

def test_other():
    pass
"""


@pytest.fixture
def session(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    pytester.makepyfile(test_suite=SUITE)

    def run(*arguments):
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)

    run.path = pytester.path
    return run


def witness_command(path):
    # In a process of its own: pytester forgets modules that are imported while it is at work.
    command = [sys.executable, "-m", "lidp", "witness", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)


def test_right_ones_pass_and_wrong_ones_fail_with_all_that_is_needed(session):
    result = session("--dp-seed=5")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*Laplace is not (1, 1e-06)-DP under add-remove neighbours",
            "*bound    ε ≥ 1.*, more than the 1 claimed",
            "*runs     * of 5,000; a true claim would fail here with probability 2.*e-07",
            "*leak     value*runs on d0*",
            "*seed     *; pytest --dp-seed=5 repeats the session",
            "*witness  lidp witness *test_suite.py-test_wrong-*-1.json checks it again",
            "dp: 4 assertions, 1 refuted, * runs, budget quick, false-alarm probability 9e-07 of 1e-06 used, --dp-seed=5",
        ]
    )
    (witness,) = (session.path / "dp-witnesses").glob("test_suite.py-test_wrong-*-1.json")
    checked = witness_command(witness)
    assert checked.returncode == 1
    assert "refuted: ε ≥ 1." in checked.stdout
    forged = json.loads(witness.read_text()) | {"epsilon": 7.0}
    witness.write_text(json.dumps(forged))
    checked = witness_command(witness)
    assert checked.returncode == 2
    assert "the witness states ε ≥ 7.0" in checked.stderr


@pytest.mark.slow
def test_the_same_seed_fails_in_the_same_way_on_workers_too(session):
    lines = []
    for options in ((), ("-n", "2")):
        result = session("--dp-seed=5", *options)
        result.assert_outcomes(passed=4, failed=1)
        lines.append([line for line in result.outlines if "runs     " in line or line.startswith("dp: ")])
    assert lines[0] == lines[1]
    assert len(lines[0]) >= 2


@pytest.mark.slow
def test_a_random_seed_is_printed(session):
    seeds = set()
    for _ in range(2):
        (line,) = [line for line in session("-k", "right").outlines if line.startswith("dp: ")]
        seeds.add(line.rpartition("--dp-seed=")[2])
    assert len(seeds) == 2


def test_budgets_scale_runs(session):
    result = session("-k", "test_right and 0", "--dp-budget=nightly")
    result.stdout.fnmatch_lines(["dp: 1 assertion, 0 refuted, 50,000 runs, budget nightly*"])


def test_a_failure_probability_of_ones_own(session):
    result = session("-k", "wrong", "--dp-failure-probability=0.01")
    result.stdout.fnmatch_lines(["*with probability 0.009"])


@pytest.mark.parametrize("option", ["--dp-failure-probability=2", "--dp-budget=huge", "--dp-seed=-1"])
def test_bad_options(session, option):
    result = session(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*argument {option.partition('=')[0]}: *{option.partition('=')[2]}*"])


def test_nothing_is_imported_where_nothing_is_asserted(pytester):
    pytester.makepyfile(test_plain="import sys\n\ndef test_it():\n    assert not any(n.partition('.')[0] in ('lidp', 'numba') for n in sys.modules)\n")  # fmt: skip  # noqa: E501
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
    result.assert_outcomes(passed=1)
    assert not [line for line in result.outlines if line.startswith("dp:")]


def suite(tmp_path, **options):
    return Suite(
        **{
            "failure_probability": 0.01,
            "tests": frozenset("tuvw"),
            "seed": 1,
            "scale": 1.0,
            "witnesses": tmp_path,
            **options,
        }
    )


def test_an_assertion_that_could_never_fail_is_refused(tmp_path):
    assert_private = suite(tmp_path).asserting("t")
    with pytest.raises(InvalidArgument, match="could never fail; raise runs"):
        assert_private(lambda count, rng: count + rng.laplace(), 0, 1, epsilon=1.0, runs=10)


def test_what_the_session_decides_is_not_for_tests(tmp_path):
    with pytest.raises(InvalidArgument, match="failure_probability is set by the session"):
        suite(tmp_path).asserting("t")(lambda count, rng: count, 0, 1, epsilon=1.0, failure_probability=0.5)


def test_shares_add_up():
    assert sum(share_of_call(call) for call in range(1, 100_000)) == pytest.approx(1.0, abs=1e-4)
    assert sum(share_of_call(call) for call in range(1, 1000)) <= 1.0


def test_the_failure_probability_is_split(tmp_path):
    assert_private = suite(tmp_path).asserting("t")
    results = [assert_private(lambda count, rng: count + rng.laplace(), 0, 1, epsilon=1.0, runs=200) for _ in range(3)]
    shares = [result.bound.failure_probability for result in results]
    assert shares == pytest.approx([0.0025 * 0.9, 0.0025 * 0.05, 0.0025 * 0.1 / 6])
    assert len({result.seed for result in results}) == 3


def test_a_test_that_was_not_counted_is_refused(pytester):
    pytester.makepyfile(
        test_lazy="""
        def test_it(request):
            request.getfixturevalue("assert_private")
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(errors=0, failed=1)
    result.stdout.fnmatch_lines(["*test_it was not counted when the failure probability was split*"])


def test_a_witness_that_cannot_be_written_does_not_hide_the_failure(tmp_path):
    (tmp_path / "file").write_text("")
    assert_private = suite(tmp_path, witnesses=tmp_path / "file" / "below").asserting("t")
    with pytest.raises(NotPrivate, match="could not be written to"):
        assert_private(lambda count, rng: count + rng.laplace(0, 0.1), 0, 1, epsilon=1.0, runs=2000)
    long = suite(tmp_path, tests=frozenset(["x" * 500]))
    with pytest.raises(NotPrivate, match="checks it again"):
        long.asserting("x" * 500)(lambda count, rng: count + rng.laplace(0, 0.1), 0, 1, epsilon=1.0, runs=2000)
