"""pytest plugin of lidp: the fixture ``assert_private``.

This is a separate package, so that sessions that do not use the fixture do not import lidp.
"""

from __future__ import annotations

import argparse
import secrets
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

_BUDGET_FACTORS = {"quick": 1.0, "nightly": 10.0, "exhaustive": 100.0}
_FIXTURE = "assert_private"
_ROWS = "lidp_assertions"
"""Attribute of a test's reports, which pytest-xdist sends to the session: its assertions so far, as plain data."""
_TESTS: pytest.StashKey[Collection[str]] = pytest.StashKey()
_SEED: pytest.StashKey[int] = pytest.StashKey()
_SUITE: pytest.StashKey[Any] = pytest.StashKey()
_ATTEMPTS: pytest.StashKey[Counter[str]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    group = parser.getgroup("lidp", "differential privacy")
    group.addoption(
        "--dp-failure-probability",
        type=_probability,
        default=1e-6,
        metavar="BETA",
        help="probability that a session fails although all claims are true, divided among its tests (default: 1e-6)",
    )
    group.addoption(
        "--dp-budget",
        choices=list(_BUDGET_FACTORS),
        default="quick",
        help="number of runs per assertion: as written, 10 times, 100 times as many (default: quick)",
    )
    group.addoption(
        "--dp-seed", type=_seed, default=None, metavar="N", help="seed of all assertions (default: random, and printed)"
    )
    group.addoption(
        "--dp-witnesses",
        type=Path,
        default=Path("dp-witnesses"),
        metavar="FOLDER",
        help="folder for witnesses of refuted claims, relative to the root folder (default: dp-witnesses)",
    )
    group.addoption(
        "--dp-report",
        type=Path,
        default=None,
        metavar="FILE",
        help="HTML page that lists all assertions: verdict, bound, claim, runs, failure probability",
    )


def _probability(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"must lie strictly between 0 and 1, got {text}")
    return value


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0, got {text}")
    return int(text)


def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed: workers of pytest-xdist use that of the session."""
    option = config.getoption("--dp-seed")
    from_session = getattr(config, "workerinput", {}).get("lidp_seed")
    config.stash[_SEED] = next((seed for seed in (option, from_session) if seed is not None), secrets.randbelow(2**31))
    config.stash[_ATTEMPTS] = Counter()
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Collector(config), "lidp-collector")
    report = config.getoption("--dp-report")
    if report is not None and report.suffix.lower() not in (".html", ".htm"):
        raise pytest.UsageError(f"--dp-report={report}: the page is HTML; choose a name that ends in .html")
    if report is not None and (config.invocation_params.dir / report).is_dir():
        raise pytest.UsageError(f"--dp-report={report} is a folder; name a file, such as {report / 'dp.html'}")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Send the seed to a worker of pytest-xdist, and how many workers run every test."""
    node.workerinput["lidp_seed"] = node.config.stash[_SEED]
    every_worker = node.config.getoption("dist", "no") == "each"
    node.workerinput["lidp_copies"] = node.workerinput["workercount"] if every_worker else 1


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Collect the tests that share the failure probability: those that use the fixture, directly or indirectly.

    If another plugin deselects more of them later, their shares are not used.
    """
    config.stash[_TESTS] = tuple(item.nodeid for item in items if _FIXTURE in getattr(item, "fixturenames", ()))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Count the attempts at a test in this process."""
    item.config.stash[_ATTEMPTS][item.nodeid] += 1


def _suite(config: pytest.Config) -> Any:
    """Return the suite of this process. It outlives session fixtures, which end before the last test is run again."""
    if _SUITE not in config.stash:
        from lidp.integrations.assertions import Suite

        copies = getattr(config, "workerinput", {}).get("lidp_copies", 1)
        config.stash[_SUITE] = Suite(
            failure_probability=config.getoption("--dp-failure-probability") / copies,
            tests=config.stash[_TESTS],
            seed=config.stash[_SEED],
            scale=_BUDGET_FACTORS[config.getoption("--dp-budget")],
            witnesses=config.rootpath / config.getoption("--dp-witnesses"),
        )
    return config.stash[_SUITE]


@pytest.fixture
def assert_private(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Return ``assert_private(mechanism, d0, d1, epsilon=, delta=0, runs=50_000, ...)``, which fails if the claim is refuted."""
    item = request.node
    # pytest-rerunfailures counts attempts over all processes; a worker that died has taken its own with it.
    lost = getattr(item, "execution_count", 0) - request.config.stash[_ATTEMPTS][item.nodeid]
    attempt = _suite(request.config).asserting(item.nodeid, lost_attempts=max(0, lost))
    yield attempt
    attempt.finish()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Attach a test's assertions to its reports. Each has all of them: plugins may drop reports of earlier attempts.

    A test of which an earlier attempt refuted a claim does not pass because another attempt is skipped.
    """
    report = yield
    suite = item.config.stash.get(_SUITE, None)
    if suite is not None and report.when == "setup" and report.skipped and not hasattr(report, "wasxfail"):
        failure = suite.skipped(item.nodeid)
        if failure:
            report.outcome, report.longrepr = "failed", failure
    rows = [] if suite is None else suite.rows(item.nodeid)
    if rows:
        setattr(report, _ROWS, [row.to_dict() for row in rows])
    return report


class _Collector:
    """Collects the assertions of all reports, those of workers included, and reports them at the end of the session."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._problem = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        rows = getattr(report, _ROWS, None)
        if rows:
            self._rows[getattr(report, "worker_id", ""), report.nodeid] = rows

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the page. A session whose page cannot be written does not pass."""
        path = self._config.getoption("--dp-report")
        if path is None or self._config.getoption("collectonly"):
            return
        from lidp.errors import InvalidArgument

        try:
            self._report().write(self._config.invocation_params.dir / path)
        except InvalidArgument as error:
            self._problem = f"dp: {error}"
            if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the number of assertions and runs, and how much of the false-alarm probability they used."""
        if self._rows:
            terminalreporter.write_line(f"dp: {self._report().summary()}")
        if self._problem:
            terminalreporter.write_line(self._problem, red=True)

    def _report(self) -> Any:
        from lidp.report.assertions import AssertionRow, SessionReport

        return SessionReport.of(
            [AssertionRow.from_dict(row) for rows in self._rows.values() for row in rows],
            failure_probability=self._config.getoption("--dp-failure-probability"),
            budget=self._config.getoption("--dp-budget"),
            seed=self._config.stash[_SEED],
        )
