"""Run the live page: bind an address, and serve until a signal ends it."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass, field
from urllib.parse import quote

import uvicorn

from lidp.errors import InvalidArgument
from lidp.serve.app import Site
from lidp.serve.audits import Audits
from lidp.serve.security import SHORTEST_TOKEN, TOKEN_PARAMETER, is_loopback, new_token

_END_SECONDS = 2  # that connections get to end by themselves


@dataclass
class LiveServer:
    """A server that is bound to its address, and not yet running.

    ``host`` that others can reach needs a token; if none is given, a random one is made.

    Raises:
        InvalidArgument: if the address cannot be bound, or the token is too short.
    """

    audits: Audits
    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    price: float | None = None
    _socket: socket.socket = field(init=False, repr=False)
    _server: uvicorn.Server = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback(self.host):
            self.token = new_token()
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise InvalidArgument(
                f"the token must have at least {SHORTEST_TOKEN} characters, got {len(self.token)}; leave it out for a random one"
            )
        self._socket = _bind(self.host, self.port)
        self.port = self._socket.getsockname()[1]
        site = Site(self.audits, self.price, stopping=lambda: self._server.should_exit)
        app = site.app(hosts=[self.host, socket.gethostname()], token=self.token)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                http="h11",
                loop="asyncio",
                ws="none",
                lifespan="off",
                log_level="error",
                access_log=False,  # addresses may hold the token
                server_header=False,
                timeout_graceful_shutdown=_END_SECONDS,
            )
        )

    @property
    def address(self) -> str:
        """The address of the list, with the token."""
        host = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(self.host, self.host)  # noqa: S104  # to print
        token = "" if self.token is None else f"?{TOKEN_PARAMETER}={quote(self.token, safe='')}"
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/{token}"

    def run(self) -> None:
        """Serve until :meth:`stop`, or until Ctrl-C or SIGTERM if this is the main thread."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()

    def stop(self) -> None:
        """End :meth:`run`, which another thread runs."""
        self._server.should_exit = True


def _bind(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InvalidArgument(
                f"port {port} of {host} is in use; choose another by --port, or 0 for any free one"
            ) from None
        raise InvalidArgument(
            f"{host}, port {port}: cannot be bound: {error.strerror or error}; choose others by --host and --port"
        ) from None
