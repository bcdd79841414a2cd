import socket

import pytest

from lidp.errors import InvalidArgument
from lidp.serve.audits import Audits
from lidp.serve.server import LiveServer
from tests.sample_targets import run
from tests.serve.servers import event_stream, get, serving


@pytest.fixture
def audits(tmp_path):
    run(trials=3, store=tmp_path / "a.db")
    return Audits([tmp_path])


def closed(server):
    server._socket.close()
    return server


def test_this_machine_needs_no_token(audits):
    server = closed(LiveServer(audits))
    assert server.token is None
    assert server.address == f"http://127.0.0.1:{server.port}/"


def test_other_machines_need_a_random_token(audits):
    server = closed(LiveServer(audits, host="0.0.0.0"))  # noqa: S104  # closed before anybody can connect
    assert len(server.token) >= 32
    assert server.address == f"http://{socket.gethostname()}:{server.port}/?token={server.token}"


def test_a_short_token_is_refused(audits):
    with pytest.raises(InvalidArgument, match="at least 16 characters, got 3"):
        LiveServer(audits, token="abc")  # noqa: S106  # of a test


def test_a_port_in_use_is_refused_with_the_remedy(audits):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InvalidArgument, match=f"port {port} of 127.0.0.1 is in use; choose another by --port"):
            LiveServer(audits, port=port)


def test_an_address_of_another_machine_is_refused(audits):
    with pytest.raises(InvalidArgument, match="cannot be bound"):
        LiveServer(audits, host="192.0.2.1")


def test_open_streams_do_not_keep_it_from_ending(tmp_path):
    run(trials=3, store=tmp_path / "a.db")
    with serving(tmp_path) as server:
        assert get(server, "/").status == 200
        with event_stream(server, "/events") as response:
            assert response.readline().startswith(b"event: parts")
            server.stop()
            assert response.read().count(b"event: parts") == 0  # the stream ends
