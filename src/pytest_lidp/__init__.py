"""pytest plugin of lidp: the fixture ``assert_private``.

This is a separate package, so that sessions that do not use the fixture do not import lidp.
"""

from __future__ import annotations

import argparse
import secrets
from pathlib import Path
from typing import Any

import pytest

_BUDGET_FACTORS = {"quick": 1.0, "nightly": 10.0, "exhaustive": 100.0}
_FIXTURE = "assert_private"
_TESTS: pytest.StashKey[frozenset[str]] = pytest.StashKey()
_SEED: pytest.StashKey[int] = pytest.StashKey()
_COUNTS: pytest.StashKey[dict[str, int]] = pytest.StashKey()


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
    config.stash[_COUNTS] = {"assertions": 0, "runs": 0}


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Send the seed to a worker of pytest-xdist."""
    node.workerinput["lidp_seed"] = node.config.stash[_SEED]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Collect the tests that share the failure probability: those that use the fixture, directly or indirectly."""
    config.stash[_TESTS] = frozenset(item.nodeid for item in items if _FIXTURE in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def _dp_suite(request: pytest.FixtureRequest) -> Any:
    from lidp.integrations.assertions import Suite

    config = request.config
    suite = Suite(
        failure_probability=config.getoption("--dp-failure-probability"),
        tests=config.stash[_TESTS],
        seed=config.stash[_SEED],
        scale=_BUDGET_FACTORS[config.getoption("--dp-budget")],
        witnesses=config.rootpath / config.getoption("--dp-witnesses"),
    )
    yield suite
    config.stash[_COUNTS] = {"assertions": suite.assertions, "runs": suite.runs}


@pytest.fixture
def assert_private(_dp_suite: Any, request: pytest.FixtureRequest) -> Any:
    """Return ``assert_private(mechanism, d0, d1, epsilon=, delta=0, runs=50_000, ...)``, which fails if the claim is refuted."""
    return _dp_suite.asserting(request.node.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the counts of a worker of pytest-xdist to the session."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["lidp"] = session.config.stash[_COUNTS]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:  # noqa: ARG001  # the names are pytest-xdist's
    """Add the counts of a worker to those of the session."""
    for name, count in (getattr(node, "workeroutput", None) or {}).get("lidp", {}).items():
        node.config.stash[_COUNTS][name] += count


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the number of assertions and runs, and the false-alarm probability."""
    counts = config.stash[_COUNTS]
    if counts["assertions"]:
        from lidp.rounding import counted  # sessions without assertions do not import lidp

        terminalreporter.write_line(
            f"dp: {counted(counts['assertions'], 'assertions')}, {counted(counts['runs'], 'runs')}, "
            f"budget {config.getoption('--dp-budget')}, "
            f"false-alarm probability of the session {config.getoption('--dp-failure-probability'):g}, "
            f"--dp-seed={config.stash[_SEED]}"
        )
