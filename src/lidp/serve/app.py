"""The routes of the live page. All of them only read."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from lidp.errors import LidpError
from lidp.report.page import render_report
from lidp.serve import pages
from lidp.serve.audits import Audits
from lidp.serve.events import News, stream
from lidp.serve.listing import Entry, State
from lidp.serve.security import Guard

_STATIC = {"report.css": "text/css", "serve.css": "text/css", "live.js": "text/javascript"}
_PAUSES = {State.RUNNING: 1.0, State.ENDED: 4.0, State.PAUSED: 2.0}
_LIST_PAUSE = 2.0
_TO_THE_LIST = {"All audits": "/"}


@dataclass(frozen=True)
class Site:
    """The pages about some audits.

    Attributes:
        audits: the audits.
        price: the cost of one model, if known.
        stopping: whether the server is about to end, so that streams of events should.
    """

    audits: Audits
    price: float | None = None
    stopping: Callable[[], bool] = lambda: False

    def app(self, *, hosts: Sequence[str] = (), token: str | None = None) -> ASGIApp:
        """Return the application, guarded against strangers."""
        routes = [
            Route("/", self.list_audits),
            Route("/events", self.list_events),
            Route("/compare", self.compare),
            Route("/static/{name}", self.static),
            Route("/audits/{key}", self.audit),
            Route("/audits/{key}/events", self.audit_events),
            Route("/audits/{key}/report", self.report),
            Route("/audits/{key}/report.html", self.download_report),
            Route("/audits/{key}/result.json", self.download_result),
        ]
        handlers = {LidpError: _show_error, HTTPException: _show_http_error}
        return Guard(Starlette(routes=routes, exception_handlers=handlers), hosts=hosts, token=token)

    # The functions that are not async run in threads, since they read files.

    def list_audits(self, _request: Request) -> Response:
        """Answer with the list of audits."""
        places = [str(place.resolve()) for place in self.audits.places]
        return HTMLResponse(pages.list_page(self.audits.catalogue(), places))

    async def list_events(self, request: Request) -> Response:
        """Answer with changes of the list as they happen."""

        def look() -> News:
            standings = self.audits.standings()
            pause = 0.0 if any(one.reading for one in standings.values()) else _LIST_PAUSE
            return News(pages.list_parts(self.audits.catalogue(), standings), pause)

        return self._stream(request, look)

    def audit(self, request: Request) -> Response:
        """Answer with the live page of an audit."""
        entry = self._entry(request)
        return HTMLResponse(pages.audit_page(entry, self.audits.look(entry), self.price))

    async def audit_events(self, request: Request) -> Response:
        """Answer with changes of an audit as they happen."""

        def look() -> News:
            entry = self._entry(request)
            snapshot = self.audits.look(entry)
            pause = 0.0 if snapshot.reading else _PAUSES[snapshot.state]
            return News(pages.audit_parts(snapshot, self.price), pause)

        return self._stream(request, look)

    def compare(self, request: Request) -> Response:
        """Answer with a comparison of the audits that the query names."""
        return _report(self.audits.compare(request.query_params.getlist("audit")).page(links=_TO_THE_LIST))

    def report(self, request: Request) -> Response:
        """Answer with the report of an audit, as a page."""
        entry = self._entry(request)
        links = {**_TO_THE_LIST, "Live page": f"/audits/{entry.key}"}
        return _report(render_report(self.audits.result(entry), links=links))

    def download_report(self, request: Request) -> Response:
        """Answer with the report of an audit, as a file to save."""
        entry = self._entry(request)
        response = _report(render_report(self.audits.result(entry)))
        response.headers["content-disposition"] = _attachment(f"{entry.path.stem}.html")
        return response

    def download_result(self, request: Request) -> Response:
        """Answer with the result of an audit as JSON, as a file to save."""
        entry = self._entry(request)
        text = self.audits.result(entry).to_json(indent=2) + "\n"
        headers = {"content-disposition": _attachment(f"{entry.path.stem}.json")}
        return Response(text, media_type="application/json", headers=headers)

    def static(self, request: Request) -> Response:
        """Answer with a style sheet or the script of the pages."""
        name = request.path_params["name"]
        if name not in _STATIC:
            raise HTTPException(404, "There is no such file.")
        return Response(pages.static_file(name), media_type=_STATIC[name])

    def _entry(self, request: Request) -> Entry:
        entry = self.audits.entry(request.path_params["key"])
        if entry is None:
            raise HTTPException(
                404, "There is no such audit, or its store cannot be read. The list says which stores there are."
            )
        return entry

    def _stream(self, request: Request, look: Callable[[], News]) -> Response:
        events = stream(look, has_left=request.is_disconnected, stopping=self.stopping)
        return StreamingResponse(events, media_type="text/event-stream")


def _report(page: str) -> HTMLResponse:
    return HTMLResponse(page, headers={"content-security-policy": pages.report_policy(page)})


def _attachment(name: str) -> str:
    """Return the header that makes a browser save a file under this name, which may hold any character."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_. ") else "_" for c in name)
    quoted = urllib.parse.quote(name.encode("utf-8", "surrogateescape"), safe="")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quoted}"


async def _show_error(_request: Request, error: Exception) -> Response:
    return HTMLResponse(pages.error_page("This cannot be shown", str(error)), 409)


async def _show_http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  # registered for these only
    return HTMLResponse(
        pages.error_page("Not found" if error.status_code == 404 else "Not possible", error.detail), error.status_code
    )
