"""Who may see the pages, and what the pages may do: host names, the token, and the headers of every response."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SHORTEST_TOKEN = 16
TOKEN_PARAMETER = "token"  # noqa: S105  # the name of a parameter
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The content-security policy of the pages: nothing inline, and nothing from elsewhere."""
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
    "x-frame-options": "DENY",
}


def new_token() -> str:
    """Return a random token."""
    return secrets.token_urlsafe(24)


def is_loopback(host: str) -> bool:
    """Return whether a server at this address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Refuses requests of strangers, and adds the headers to every response.

    A request must name this server by an IP address, as localhost or by one of ``hosts``: a web page elsewhere whose own name
    resolves to this machine (DNS rebinding) names its own. With a token, a request must also carry it: as ``?token=``, which sets
    a cookie, or as ``Authorization: Bearer``.
    """

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str] = (), token: str | None = None) -> None:
        self._app = app
        self._hosts = {"localhost", *(host.lower() for host in hosts)}
        self._token = token
        self._session = "" if token is None else hashlib.sha256(b"lidp session" + token.encode()).hexdigest()
        self._cookie = f"lidp_{self._session[:8]}"  # cookies of one host are shared by all its ports

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        new_session = self._token is not None and self._gives_token(QueryParams(scope["query_string"]))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._complete(MutableHeaders(scope=message), new_session=new_session)
            await send(message)

        refusal = self._refusal(headers, new_session=new_session)
        app = self._app if refusal is None else refusal
        await app(scope, receive, send_with_headers)

    def _refusal(self, headers: Headers, *, new_session: bool) -> PlainTextResponse | None:
        if not self._is_own_name(headers.get("host", "")):
            return PlainTextResponse("This server does not have the name that the request gives it.\n", 421)
        if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            return PlainTextResponse("Other sites may not load this.\n", 403)
        if self._token is not None and not new_session and not self._is_known(headers):
            return PlainTextResponse("Open the address that lidp serve has printed, with its token.\n", 403)
        return None

    def _is_own_name(self, host: str) -> bool:
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        name = name.removeprefix("[").removesuffix("]").lower()
        if name in self._hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _gives_token(self, parameters: QueryParams) -> bool:
        return self._is_token(parameters.get(TOKEN_PARAMETER, ""))

    def _is_token(self, given: str) -> bool:
        return self._token is not None and hmac.compare_digest(given.encode(), self._token.encode())

    def _is_known(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(given.strip()):
            return True
        cookie = cookie_parser(headers.get("cookie", "")).get(self._cookie, "")
        return hmac.compare_digest(cookie.encode(), self._session.encode())

    def _complete(self, headers: MutableHeaders, *, new_session: bool) -> None:
        for name, value in _HEADERS.items():
            headers[name] = value
        headers.setdefault("content-security-policy", POLICY)
        if new_session:
            headers.append("set-cookie", f"{self._cookie}={self._session}; HttpOnly; Path=/; SameSite=Strict")
