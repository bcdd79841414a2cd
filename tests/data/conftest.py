"""Fixtures for data sets: a machine without them, and a site that serves them."""

import http.server
import threading

import pytest

from lidp.data import fashion_mnist
from tests.waiting import PATIENCE


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Hide the data sets of this machine; return the folder of the cache."""
    monkeypatch.setattr(fashion_mnist, "DEBIAN", tmp_path / "nowhere")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LIDP_DATA", raising=False)
    return tmp_path / "cache" / "lidp"


@pytest.fixture
def site():
    """Serve a site from this machine; yield its URL, its files, which tests may change, and the names of requested files.

    A file of content None breaks off during its transfer.
    """
    files = {}

    class Site(http.server.BaseHTTPRequestHandler):
        timeout = PATIENCE

        def do_GET(self):
            name = self.path.lstrip("/")
            if name not in files:
                self.send_error(404)
                return
            requested.append(name)
            content = files[name]
            self.send_response(200)
            self.send_header("Content-Length", "1000" if content is None else str(len(content)))
            self.end_headers()
            self.wfile.write(b"only this" if content is None else content)

        def log_message(self, *_):
            pass

    requested = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", files, requested
    server.shutdown()
    server.server_close()
    thread.join(10)
