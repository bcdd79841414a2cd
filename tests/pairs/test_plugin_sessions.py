"""The pytest plugin in sessions that run tests again, in parallel or only in part: the split of the false-alarm budget holds."""

import re
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from lidp.integrations.assertions import NotPrivate, Suite
from tests.pairs.plugin_suites import LAPLACE
from tests.waiting import PATIENCE

pytest_plugins = ["pytester"]

MECHANISMS = f"""
import os, pathlib
import pytest
{LAPLACE}
RIGHT, WRONG = Laplace(1.0), Laplace(0.2)
attempts = {{}}

def attempt(name):
    attempts[name] = attempts.get(name, 0) + 1
    return attempts[name]
"""

RERUNS = """
    @pytest.mark.parametrize("start", range(2))
    def test_right(assert_private, start):
        assert_private(RIGHT, start, start + 1, epsilon=1.0, runs=300)

    def test_fails_for_another_reason_first(assert_private):
        assert_private(RIGHT, 0, 1, epsilon=1.0, runs=300)
        assert attempt("other") == 2

    def test_broken_in_its_first_attempt(assert_private):
        assert_private(WRONG if attempt("broken") == 1 else RIGHT, 0, 1, epsilon=1.0, runs=300)

    def test_asserts_in_its_first_attempt_only(assert_private):
        if attempt("once") == 1:
            assert_private(WRONG, 0, 1, epsilon=1.0, runs=300)

    def test_expects_a_refutation(assert_private):
        with pytest.raises(AssertionError):
            assert_private(WRONG, 0, 1, epsilon=1.0, runs=300)
        assert attempt("expected") == 2
"""


@pytest.fixture
def session(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")

    def run(tests, *arguments):
        pytester.makepyfile(test_suite=MECHANISMS + "\n" + "\n".join(line[4:] for line in tests.splitlines()))
        result = pytester.runpytest_subprocess("--dp-report=out/dp.html", "--dp-seed=5", *arguments)
        result.summary = next((line for line in result.outlines if line.startswith("dp: ")), "")
        return result

    run.path = pytester.path
    return run


def used(result):
    """The false-alarm probability that the assertions used, and the session's."""
    return tuple(float(number) for number in re.search(r"probability (\S+) of (\S+) used", result.summary).groups())


@pytest.mark.slow_after_first
@pytest.mark.parametrize("options", [("-p", "no:xdist"), ("-n", "2")])
def test_reruns_neither_forgive_a_refutation_nor_use_more_than_was_reserved(session, options):
    result = session(RERUNS, "--reruns=2", *options)
    outcomes = result.parseoutcomes()
    assert (outcomes["failed"], outcomes["errors"], outcomes["rerun"]) == (1, 1, 6)
    result.stdout.fnmatch_lines_random(
        [
            "*rerun    an earlier attempt at this test refuted the claim; a rerun gets no other chance",
            "FAILED test_suite.py::test_broken_in_its_first_attempt - *",
            "ERROR test_suite.py::test_asserts_in_its_first_attempt_only - *",
        ]
    )
    share = 1e-6 / 6
    first, second = 0.9 * share, 0.05 * share
    assert used(result) == (pytest.approx(6 * first + second, rel=1e-3), 1e-6)
    assert ", 3 refuted, 5 reruns of a refuted one, " in result.summary
    assert "7 assertions" in result.summary
    page = (session.path / "out/dp.html").read_text(encoding="utf-8")
    assert page.count('<tr><th scope="row"') == 12
    assert "3 of 7 assertions refuted" in page


@pytest.mark.slow
def test_the_split_is_that_of_the_selected_tests(session):
    result = session(RERUNS, "-k", "right", "-p", "no:xdist")
    assert used(result) == (pytest.approx(0.9e-6, rel=1e-3), 1e-6)


@pytest.mark.slow
def test_a_rerun_that_is_skipped_does_not_forgive_a_refutation(session):
    result = session(
        """
    @pytest.fixture
    def service():
        if attempt("service") > 1:
            pytest.skip("it is away")

    def test_broken(service, assert_private):
        assert_private(WRONG, 0, 1, epsilon=1.0, runs=300)

    def test_skipped(assert_private):
        pytest.skip("nothing was refuted")
        """,
        "--reruns=1",
        "-p",
        "no:xdist",
    )
    result.assert_outcomes(errors=1, skipped=1)
    assert ", 1 refuted, 1 rerun of a refuted one, " in result.summary


@pytest.mark.slow
def test_a_test_that_is_selected_twice_counts_twice(session):
    result = session(RERUNS, "-n", "2", "--keep-duplicates", "test_suite.py", "test_suite.py", "-k", "right and 0")
    result.assert_outcomes(passed=2)
    assert used(result) == (pytest.approx(0.9e-6, rel=1e-3), 1e-6)


@pytest.mark.slow
def test_a_session_of_the_last_failed_tests_has_a_budget_of_its_own(session):
    for options in ((), ("--lf",)):
        result = session(RERUNS, "-p", "no:xdist", *options)
        result.assert_outcomes(passed=0 if options else 2, failed=4)
        assert used(result) == (pytest.approx(0.9e-6, rel=1e-3), 1e-6)


@pytest.mark.slow
def test_workers_that_each_run_all_tests_share_the_budget(session):
    result = session(RERUNS, "-k", "right", "--dist=each", "--tx=2*popen")
    result.assert_outcomes(passed=4)
    assert "4 assertions" in result.summary
    assert used(result) == (pytest.approx(0.9e-6, rel=1e-3), 1e-6)


@pytest.mark.slow
def test_an_attempt_that_died_with_its_worker_gets_no_other_chance(session):
    result = session(
        """
    def test_dies_once(assert_private):
        assert_private(RIGHT, 0, 1, epsilon=1.0, runs=300)
        if not pathlib.Path("died").exists():
            pathlib.Path("died").touch()
            os._exit(1)
        """,
        "--reruns=1",
        "-n",
        "1",
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*an earlier attempt at test_suite.py::test_dies_once was lost with its process*"])


@pytest.mark.slow
def test_the_page_lists_every_assertion_and_keeps_hostile_names_as_text(session):
    result = session(
        """
    class Hostile(Laplace):
        pass
    Hostile.__name__ = Hostile.__qualname__ = "<script>alert(1)</script>"

    @pytest.mark.parametrize("name", ["<img src=x>"])
    def test_hostile(assert_private, name):
        assert_private(Hostile(0.2), 0, 1, epsilon=1.0, runs=300)

    def test_error(assert_private):
        assert_private(RIGHT, 0, 0, epsilon=1.0, runs=300)
        """,
        "-p",
        "no:xdist",
    )
    result.assert_outcomes(failed=2)
    page = (session.path / "out/dp.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; is not (1, 0)-DP" in page
    assert "test_hostile[&lt;img src=x&gt;]" in page
    assert "InvalidArgument: d0 and d1 are equal (0)" in page
    assert "1 of 2 assertions refuted" in page


@pytest.mark.slow
def test_a_page_that_cannot_be_written_is_reported(session):
    (session.path / "out").write_text("a file, not a folder")
    result = session(RERUNS, "-p", "no:xdist", "-k", "right and 0")
    result.stdout.fnmatch_lines(["dp: *the folder of the report cannot be made*"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_a_folder_is_no_page(session):
    (session.path / "out/dp.html").mkdir(parents=True)
    result = session(RERUNS, "-p", "no:xdist")
    result.stderr.fnmatch_lines(["*--dp-report=out?dp.html is a folder; name a file*"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_a_page_with_another_ending_is_refused(pytester):
    result = pytester.runpytest_subprocess("--dp-report=dp.pdf", "-p", "no:xdist")
    result.stderr.fnmatch_lines(["*--dp-report=dp.pdf: the page is HTML; choose a name that ends in .html*"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def suite(tmp_path):
    return Suite(failure_probability=0.01, tests=("t", "u", "u"), seed=1, scale=1.0, witnesses=tmp_path)


def right(count, rng):
    return count + rng.laplace()


def wrong(count, rng):
    return count + rng.laplace(0, 0.1)


def test_calls_of_all_attempts_share_what_is_reserved(tmp_path):
    tests = suite(tmp_path)
    for _ in range(5):
        attempt = tests.asserting("t")
        for _ in range(2):
            attempt(right, 0, 1, epsilon=1.0, runs=120)
        attempt.finish()
    shares = [row.failure_probability for row in tests.rows("t")]
    assert len(shares) == 10
    assert len({row.seed for row in tests.rows("t")}) == 10
    assert sum(shares) <= 0.01 / 3  # a test that is selected twice counts twice


def test_a_refuted_assertion_stays_refuted(tmp_path):
    tests = suite(tmp_path)
    first = tests.asserting("t")
    first(right, 0, 1, epsilon=1.0, runs=200)
    with pytest.raises(NotPrivate) as caught:
        first(wrong, 0, 1, epsilon=1.0, runs=2000)
    assert "rerun" not in str(caught.value)
    second = tests.asserting("t")
    second(right, 0, 1, epsilon=1.0, runs=200)
    with pytest.raises(NotPrivate, match="a rerun gets no other chance") as repeated:
        second(right, 0, 1, epsilon=1.0, runs=2000)
    assert repeated.value.result is caught.value.result
    third = tests.asserting("t")
    with pytest.raises(NotPrivate, match="a rerun gets no other chance"):
        third.finish()
    assert [row.repeats for row in tests.rows("t")] == [False, False, False, True, True]


def test_assertions_in_several_threads_are_different_calls(tmp_path):
    tests, threads = suite(tmp_path), 3
    attempt, together = tests.asserting("t"), Barrier(threads, timeout=PATIENCE)

    def refute(_):
        waiting = [True]

        def mechanism(count, rng):
            if waiting:
                waiting.clear()
                together.wait()
            return wrong(count, rng)

        with pytest.raises(NotPrivate):
            attempt(mechanism, 0, 1, epsilon=1.0, runs=2000)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(refute, range(threads)))
    assert sorted(row.call for row in tests.rows("t")) == [1, 2, 3]
    assert sum(row.failure_probability for row in tests.rows("t")) <= 0.01 / 3
    assert len({row.seed for row in tests.rows("t")}) == len(list(tmp_path.iterdir())) == threads


def test_an_attempt_that_is_skipped_repeats_an_earlier_refutation_only(tmp_path):
    tests = suite(tmp_path)
    tests.asserting("t")(right, 0, 1, epsilon=1.0, runs=200)
    assert tests.skipped("t") == tests.skipped("u") == ""
    with pytest.raises(NotPrivate):
        tests.asserting("t")(wrong, 0, 1, epsilon=1.0, runs=2000)
    assert tests.skipped("t").endswith("a rerun gets no other chance")
