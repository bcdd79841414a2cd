import http.client
import re
import signal
import socket
import subprocess
import sys

import pytest

from tests.cli.invoke import lidp
from tests.sample_targets import run
from tests.waiting import PATIENCE


def test_the_help_fits_a_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    code, out, _ = lidp(capsys, "serve", "--help")
    assert code == 0
    assert len(out.splitlines()) <= 50
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal_ends_it(tmp_path, number):
    run(trials=3, store=tmp_path / "a.db")
    command = [sys.executable, "-m", "lidp", "serve", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            address = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/ shows 1 audit; Ctrl-C ends it\n", line)
            assert address, line
            connection = http.client.HTTPConnection("127.0.0.1", int(address[1]), timeout=PATIENCE)
            connection.request("GET", "/")
            assert "Privacy audits" in connection.getresponse().read().decode()
            connection.close()
            process.send_signal(number)
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (0, "", "lidp: the server has ended\n")


def test_nothing_is_written(tmp_path):
    run(trials=3, store=tmp_path / "a.db")
    before = (tmp_path / "a.db").read_bytes()
    from lidp.serve.audits import Audits

    audits = Audits([tmp_path])
    (entry,) = audits.catalogue().entries
    assert audits.look(entry).done == 3
    assert (tmp_path / "a.db").read_bytes() == before
    assert not (tmp_path / "a.db-lock").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no such folder or store"),
        (["text.db"], "text.db is not a store of an audit"),
        ([".", "--token", "short"], "the token must have at least 16 characters"),
        ([".", "--cost-per-model", "-1"], "cost_per_model"),
        ([".", "--port", "70000"], "--port"),
    ],
)
def test_errors_are_one_line(capsys, monkeypatch, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.db").write_text("no store", encoding="utf-8")
    code, out, err = lidp(capsys, "serve", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_a_port_in_use_is_one_line(capsys, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        code, _, err = lidp(capsys, "serve", tmp_path, "--port", other.getsockname()[1])
    assert code == 2
    assert "is in use; choose another by --port" in err


def test_a_missing_extra_is_named(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "lidp.serve.server", raising=False)
    code, _, err = lidp(capsys, "serve", tmp_path)
    assert (code, err) == (2, "lidp: lidp serve needs starlette and uvicorn; pip install 'lidp[serve]'\n")
