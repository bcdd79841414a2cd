"""Write values as pieces of HTML for notebooks: escaped text, no script, and colours that suit light and dark themes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from lidp._runtime.terminal_text import printable

_LONGEST = 2000
_RED, _GREY = "#d1453b", "#8c959f"  # of borders and bars; text keeps the colour of the theme
_CELL = "text-align:left;vertical-align:top;padding:.15em .8em .15em 0"
Rows = Iterable[Sequence[str]]


def escaped(text: str) -> str:
    """Return text for HTML: markup is escaped, control characters are shown as such, and long text is cut off."""
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return escape(printable(shown))


def card(title: str, *parts: str, alarming: bool = False) -> str:
    """Return a framed piece of HTML. The title is plain text, the parts are HTML."""
    frame = f"border-left:.4em solid {_RED if alarming else _GREY};padding:.2em .8em;max-width:60em"
    return (
        f'<div class="lidp" style="{frame}"><p style="margin:0;font-weight:bold">{escaped(title)}</p>{"".join(parts)}</div>'
    )


def table(rows: Rows, *, header: Sequence[str] = ()) -> str:
    """Return a table of plain texts; the first cell of each row heads it."""
    head = "".join(f'<th scope="col" style="{_CELL}">{escaped(cell)}</th>' for cell in header)
    body = "".join(
        f'<tr><th scope="row" style="{_CELL};font-weight:normal;opacity:.8">{escaped(first)}</th>'
        + "".join(f'<td style="{_CELL}">{escaped(cell)}</td>' for cell in rest)
        + "</tr>"
        for first, *rest in rows
    )
    thead = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f'<table style="border-collapse:collapse;background:transparent">{thead}<tbody>{body}</tbody></table>'


def paragraph(text: str) -> str:
    """Return a paragraph of plain text."""
    return f'<p style="margin:.3em 0">{escaped(text)}</p>'


def gauge(value: float, mark: float, label: str, *, alarming: bool = False) -> str:
    """Return a bar up to ``value``, with a vertical mark; red if alarming."""
    most = 1.25 * max(value, mark) or 1.0
    bar = f"position:absolute;left:0;top:0;height:100%;width:{100 * value / most:.2f}%"
    line = f"position:absolute;left:{100 * mark / most:.2f}%;top:-.15em;height:1em;border-left:2px dashed currentColor"
    return (
        f'<div role="img" aria-label="{escaped(label)}" style="position:relative;height:.7em;margin:.5em 0;max-width:24em;'
        f'background:rgba(128,128,128,.25)"><div style="{bar};background:{_RED if alarming else _GREY}"></div>'
        f'<div style="{line}"></div></div>'
    )


def progress_bar(done: int, planned: int, text: str) -> str:
    """Return a progress bar with text beside it."""
    share = f'value="{done}" max="{max(planned, 1)}"'
    return f'<div class="lidp"><progress {share} aria-label="progress"></progress> {escaped(text)}</div>'
