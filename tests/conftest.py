"""Settings for all tests."""

import signal
import threading

import pytest
from hypothesis import settings

from lidp.store import Store
from tests.sample_targets import run

# Examples follow from the test alone, on any machine and in any order: no deadline that load could break, no leftovers.
settings.register_profile("lidp", deadline=None, derandomize=True, database=None)
settings.load_profile("lidp")


# A shell starts background jobs with Ctrl-C ignored, and what tests start would inherit that.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark all cases of a test with the mark ``slow_after_first`` as slow, but for the first one that is not slow anyway."""
    begun = set()
    for item in items:
        if item.get_closest_marker("slow_after_first") and not item.get_closest_marker("slow"):
            test = item.nodeid.partition("[")[0]
            if test in begun:
                item.add_marker("slow")
            begun.add(test)


@pytest.fixture(scope="session", autouse=True)
def _own_user_data(tmp_path_factory):
    """Keep the key that marks one's own stores out of the home folder of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("user-data")))
        yield


@pytest.fixture
def store(tmp_path):
    """An empty store of an audit of 40 trials with 6 canaries, open to write."""
    run(trials=40, store=tmp_path / "whole.db")
    with Store.read(tmp_path / "whole.db") as whole:
        configuration = whole.configuration
    with Store.create(tmp_path / "a.db", configuration) as opened:
        yield opened
