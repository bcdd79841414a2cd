"""Format the tracebacks of user code, and find the line of the user's own code at which it failed."""

from __future__ import annotations

import re
import sysconfig
import traceback
from functools import cache
from pathlib import Path

_FRAME = re.compile(r'^[ |]*File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<function>.+)$', re.MULTILINE)
_LIBRARIES = ("stdlib", "platstdlib", "purelib", "platlib")
_LAST_LINES = 12


def format_failure(error: BaseException, frames: int) -> str:
    """Return the traceback of an exception with its last ``frames`` frames.

    If these are all frames of libraries, the last frame of the user's own code comes before them.
    """
    text = "".join(traceback.format_exception(error, limit=-frames))
    calls = traceback.extract_tb(error.__traceback__)
    own = [call for call in calls[:-frames] if _is_own(call.filename)]
    if not own or any(_is_own(call.filename) for call in calls[-frames:]):
        return text
    heading, _, rest = text.partition("\n")
    return f"{heading}\n{''.join(traceback.format_list(own[-1:]))}  ...\n{rest}"


def own_line(text: str) -> str:
    """Return where in the user's own code a formatted traceback failed, as ``file:line, in function``; empty if it names none."""
    own = [match for match in _FRAME.finditer(text) if _is_own(match["file"])]
    return f"{own[-1]['file']}:{own[-1]['line']}, in {own[-1]['function']}" if own else ""


def describe_failure(text: str) -> str:
    """Return a formatted traceback on one line: its last line, and where in the user's own code it failed."""
    reason, where = (text.strip().splitlines() or [""])[-1], own_line(text)
    return f"{reason} ({where})" if where else reason


def last_lines(text: str) -> str:
    """Return the last lines of a formatted traceback; empty if the text is no traceback but a reason of one line."""
    lines = text.strip().splitlines()
    return "\n".join(lines[-_LAST_LINES:]) if len(lines) > 1 else ""


def _is_own(file: str) -> bool:
    """Return whether a file is neither part of lidp nor of an installed library."""
    return not file.startswith("<frozen") and not file.startswith(_library_folders())


@cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = {str(Path(__file__).resolve().parents[1]), *(paths[name] for name in _LIBRARIES)}
    resolved = {str(Path(folder).resolve()) for folder in folders}
    return tuple(f"{folder}/" for folder in sorted(folders | resolved))
