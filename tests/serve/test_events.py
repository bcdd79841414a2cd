import asyncio
import json

import pytest

from lidp.errors import StoreError
from lidp.serve.events import News, stream


async def stays():
    return False


def collected(looks):
    """The events of a stream whose looks return or raise these, one after the other; then the server stops."""
    waiting = list(looks)

    def look():
        outcome = waiting.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return News(outcome, 0.0)

    async def collect():
        events = stream(look, has_left=stays, stopping=lambda: not waiting, retry=0.0)
        return [event async for event in events]

    return asyncio.run(collect())


def parsed(event):
    name, data, *_ = event.splitlines()
    return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def test_only_what_has_changed_is_sent():
    events = collected([{"a": "1", "b": "1"}, {"a": "1", "b": "1"}, {"a": "1", "b": "2"}])
    assert [parsed(event) for event in events] == [("parts", {"a": "1", "b": "1"}), ("parts", {"b": "2"})]


def test_a_problem_is_said_once_and_taken_back():
    damaged = StoreError("a.db is damaged")
    events = collected([{"a": "1"}, damaged, damaged, {"a": "1"}])
    assert [parsed(event) for event in events] == [("parts", {"a": "1"}), ("problem", "a.db is damaged"), ("parts", {})]


def test_text_cannot_end_an_event():
    (event,) = collected([{"a": "one\n\nevent: parts\ndata: two\u2028"}])
    assert event.count("\n") == 3
    assert parsed(event)[1] == {"a": "one\n\nevent: parts\ndata: two\u2028"}


def test_an_error_of_the_program_ends_the_stream():
    with pytest.raises(ZeroDivisionError):
        collected([{"a": "1"}, ZeroDivisionError()])


def test_the_stream_ends_when_the_reader_leaves():
    async def left():
        return True

    async def collect():
        return [event async for event in stream(lambda: News({}, 0.0), has_left=left, stopping=lambda: False)]

    assert asyncio.run(collect()) == []
