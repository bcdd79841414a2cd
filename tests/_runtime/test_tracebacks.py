"""Tracebacks of user code: formatted so that the user's own line is in them, and found again."""

import json

from lidp._runtime.tracebacks import describe_failure, format_failure, last_lines, own_line


def raised(function, *arguments):
    try:
        function(*arguments)
    except (TypeError, ValueError) as error:
        return error
    raise AssertionError("nothing was raised")


def fails():
    raise ValueError("no good")


LINE = fails.__code__.co_firstlineno + 1


def test_own_line_is_that_of_the_user_code_which_raised():
    assert own_line(format_failure(raised(fails), frames=8)) == f"{__file__}:{LINE}, in fails"


def test_own_line_is_the_last_one_before_a_library():
    text = format_failure(raised(json.loads, "{"), frames=8)
    assert "decoder.py" in text
    assert own_line(text) == f"{__file__}:{raised.__code__.co_firstlineno + 2}, in raised"


def test_own_line_survives_more_library_frames_than_are_kept():
    def deep():
        return json.dumps({"a": {1, 2}}, indent=1)

    text = format_failure(raised(deep), frames=1)
    assert text.count('File "') == 2
    assert own_line(text) == f"{__file__}:{deep.__code__.co_firstlineno + 1}, in deep"
    assert text.splitlines()[-1].startswith("TypeError: ")


def test_a_reason_without_traceback_names_no_line():
    assert own_line("the worker process died") == ""
    assert describe_failure("the worker process died") == "the worker process died"
    assert last_lines("the worker process died") == ""
    assert describe_failure("") == ""


def test_frames_of_lidp_itself_are_not_the_users():
    from lidp.checks import count

    text = format_failure(raised(lambda: count(trials="many")), frames=1)
    assert "/lidp/" in text
    assert own_line(text).startswith(f"{__file__}:")


def test_describe_failure_says_what_and_where_on_one_line():
    text = format_failure(raised(fails), frames=8)
    assert describe_failure(text) == f"ValueError: no good ({__file__}:{LINE}, in fails)"
    assert last_lines(text).splitlines()[-1] == "ValueError: no good"
