"""Who watches an audit."""

import io
import sys
import warnings
from types import SimpleNamespace

import pytest

import lidp
from lidp.engine.watchers import NotebookLine, TerminalLine, choose_watch
from lidp.integrations.assertions import Suite
from tests.sample_targets import LEAKY, run


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Recorder:
    """A watch that keeps what it is told."""

    def __init__(self):
        self.progress, self.results = [], []

    def __call__(self, progress):
        self.progress.append(progress)

    def finish(self, result):
        self.results.append(result)


def terminal_for(monkeypatch):
    """Make stderr a terminal, from within a test: pytest replaces it between fixtures and tests."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def audit(**options):
    return lidp.audit(LEAKY, claim=lidp.Claim(1.0, 1e-5), design=lidp.CoinFlip(8), trials=40, **options)


def pair(**options):
    return lidp.audit_pair(lambda data, rng: data + rng.laplace(), 0, 1, claim=lidp.Claim(1.0), runs=200, **options)


@pytest.mark.parametrize("verb", [audit, pair])
def test_on_a_terminal_there_is_a_line_by_default(monkeypatch, verb):
    terminal = terminal_for(monkeypatch)
    verb()
    first, *lines = terminal.getvalue().split("\r")
    assert first == ""
    assert "ε ≥" in lines[-1]
    assert all(line.endswith("\x1b[K") for line in lines[:-1])
    assert terminal.getvalue().endswith("\x1b[K\n")
    assert terminal.getvalue().count("\n") == 1


@pytest.mark.parametrize("verb", [audit, pair])
def test_none_switches_the_line_off(monkeypatch, verb):
    terminal = terminal_for(monkeypatch)
    verb(watch=None)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("verb", [audit, pair])
def test_elsewhere_nothing_is_written(monkeypatch, verb):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    verb()
    assert stream.getvalue() == ""


def test_without_a_stderr_nobody_watches(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert choose_watch("auto") is None


def test_a_line_that_cannot_be_written_does_not_end_the_audit(monkeypatch):
    terminal = terminal_for(monkeypatch)
    line = TerminalLine()
    terminal.close()
    line(lidp.Progress(1, 2, None, 1.0, 1.0, 0))
    line.finish(None)


def test_a_line_fits_the_terminal_and_hides_no_control_characters(monkeypatch):
    terminal = terminal_for(monkeypatch)
    monkeypatch.setenv("COLUMNS", "30")
    TerminalLine()(lidp.Progress(1, 2, None, 1.0, 1.0, 0, unit="\x1b[2Jtrials of a long name"))
    text = terminal.getvalue().removeprefix("\r").removesuffix("\x1b[K")
    assert len(text) == 29
    assert "\x1b" not in text


def test_assertions_of_a_test_session_show_no_line(monkeypatch, tmp_path):
    terminal = terminal_for(monkeypatch)
    suite = Suite(0.05, frozenset({"a"}), 0, 1.0, tmp_path)
    suite.asserting("a")(lambda data, rng: rng.random(), 0, 1, epsilon=1.0, runs=2000)
    assert terminal.getvalue() == ""


def test_something_else_is_no_watch():
    with pytest.raises(lidp.InvalidArgument, match="\"auto\" or None, got 'yes'"):
        audit(watch="yes")


def test_a_watch_is_told_the_result():
    watch = Recorder()
    result = audit(watch=watch)
    assert watch.progress
    assert watch.results == [result]


def test_a_watch_is_told_that_there_is_no_result():
    watch = Recorder()
    with pytest.raises(lidp.AuditFailed):
        lidp.audit_pair(fail, 0, 1, claim=lidp.Claim(1.0), runs=200, watch=watch)
    assert watch.results == [None]


def fail(data, rng):
    raise ValueError("never works")


def test_a_watch_is_told_the_result_so_far_of_an_interrupted_audit():
    class Impatient(Recorder):
        def __call__(self, progress):
            super().__call__(progress)
            if progress.done:
                raise KeyboardInterrupt

    watch = Impatient()
    with pytest.raises(lidp.AuditInterrupted) as caught:
        run(trials=100_000, watch=watch, stop_when="never")
    assert watch.results == [caught.value.result]
    assert watch.results[0] is not None


def test_a_result_is_not_lost_if_its_watch_fails():
    class Failing(Recorder):
        def finish(self, result):
            raise OSError("disk full")

    with pytest.warns(UserWarning, match="the watch of the audit failed at its end: OSError: disk full"):
        result = audit(watch=Failing())
    assert result.verdict is lidp.Verdict.REFUTED


def test_a_notebook_gets_one_output_that_is_updated(monkeypatch):
    shown, updates = [], []

    def display(value, display_id):
        assert display_id
        shown.append(value)
        return SimpleNamespace(update=updates.append)

    shell = SimpleNamespace(kernel=object())
    module = SimpleNamespace(get_ipython=lambda: shell, display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", module)
    assert isinstance(choose_watch("auto"), NotebookLine)
    audit()
    assert len(shown) == 1
    assert len(updates) >= 1
    shell.kernel = None  # IPython on a terminal
    with warnings.catch_warnings():
        assert choose_watch("auto") is None
