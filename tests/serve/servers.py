"""A server of the live page in a thread of the tests, and small audits for it to show."""

import http.client
import threading
from contextlib import contextmanager

from lidp.serve.audits import Audits
from lidp.serve.server import LiveServer
from lidp.store.writer_lock import WriterLock
from tests.waiting import PATIENCE


@contextmanager
def serving(*places, **options):
    """Yield a server on a free port of this machine; it ends with the block."""
    server = LiveServer(Audits(places), **options)
    thread = threading.Thread(target=server.run, name="lidp-serve")
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()


class Answer:
    """What a server answered."""

    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.text = response.read().decode("utf-8")


def get(server, path, headers=None, method="GET"):
    """Ask a server, and return its answer."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE)
    try:
        connection.request(method, path, headers=headers or {})
        return Answer(connection.getresponse())
    finally:
        connection.close()


@contextmanager
def event_stream(server, path):
    """Yield a stream of events, line by line."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        yield connection.getresponse()
    finally:
        connection.close()


@contextmanager
def locked(store):
    """Hold the lock of a store, as a process does that runs its audit."""
    lock = WriterLock(store)
    try:
        yield
    finally:
        lock.release()
