"""Server-sent events: send the parts of a page that have changed, until the reader leaves or the server ends."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from lidp.errors import LidpError
from lidp.report.texts import clean
from lidp.serve.pages import Parts

_ALIVE_SECONDS = 10.0  # a comment after this long without news finds out whether anybody still reads
_SLICE_SECONDS = 0.1


@dataclass(frozen=True)
class News:
    """The parts of a page as they are now, and in how many seconds to look again."""

    parts: Parts
    pause: float


async def stream(
    look: Callable[[], News], *, has_left: Callable[[], Awaitable[bool]], stopping: Callable[[], bool], retry: float = 3.0
) -> AsyncIterator[str]:
    """Yield events: ``parts`` with the parts that have changed, ``problem`` with a text if they cannot be read now.

    The first event has all parts, so that a page that connects again is up to date.
    """
    sent: dict[str, str] = {}
    problem = ""
    spoken = time.monotonic()
    while not stopping() and not await has_left():
        try:
            news = await run_in_threadpool(look)
            changed, pause = {name: html for name, html in news.parts.items() if sent.get(name) != html}, news.pause
            message = _event("parts", changed) if changed or problem else ""
            sent |= changed
            problem = ""
        except LidpError as error:
            message, pause = "" if problem == str(error) else _event("problem", clean(str(error))), retry
            problem = str(error)
        if message or time.monotonic() - spoken > _ALIVE_SECONDS:
            yield message or ": nothing new\n\n"
            spoken = time.monotonic()
        await _sleep(pause, stopping)


def _event(name: str, value: object) -> str:
    return f"event: {name}\ndata: {json.dumps(value)}\n\n"


async def _sleep(seconds: float, stopping: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not stopping():
        await asyncio.sleep(min(_SLICE_SECONDS, seconds))
