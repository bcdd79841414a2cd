"""The formats in which a result can be written, and the endings of their file names."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from lidp.errors import InvalidArgument
from lidp.report.badge import render_badge
from lidp.report.junit import render_junit
from lidp.report.markdown import render_markdown
from lidp.report.page import render_report, write_page
from lidp.result import AuditResult


class Format(StrEnum):
    """A format of reports."""

    HTML = "html"
    MARKDOWN = "markdown"
    JSON = "json"
    JUNIT = "junit"
    BADGE = "badge"

    @property
    def suffix(self) -> str:
        """The usual ending of file names."""
        return _SUFFIXES[self][0]

    @classmethod
    def of_file(cls, path: Path) -> Format:
        """Return the format that the ending of a file name stands for.

        Raises:
            InvalidArgument: if it stands for none.
        """
        suffix = path.suffix.lower()
        for kind, suffixes in _SUFFIXES.items():
            if suffix in suffixes:
                return kind
        ending = f"not {suffix}" if suffix else "and the name has no ending"
        raise InvalidArgument(f"{path}: a report is {_described()}, {ending}; choose another name")

    def render(self, result: AuditResult) -> str:
        """Return the text of the report."""
        if self is Format.JSON:
            return result.to_json(indent=2) + "\n"
        renderers = {
            Format.HTML: render_report,
            Format.MARKDOWN: render_markdown,
            Format.JUNIT: render_junit,
            Format.BADGE: render_badge,
        }
        return renderers[self](result)

    def write(self, result: AuditResult, path: Path) -> Path:
        """Write the report; an existing file is replaced."""
        return write_page(self.render(result), path)


_SUFFIXES = {
    Format.HTML: (".html", ".htm"),
    Format.MARKDOWN: (".md", ".markdown"),
    Format.JSON: (".json",),
    Format.JUNIT: (".xml",),
    Format.BADGE: (".svg",),
}
_NAMES = {
    Format.HTML: "a page",
    Format.MARKDOWN: "Markdown",
    Format.JSON: "JSON",
    Format.JUNIT: "JUnit XML",
    Format.BADGE: "a badge",
}


def _described() -> str:
    """Return the formats with their endings: "a page (.html), …, or a badge (.svg)"."""
    *first, last = [f"{_NAMES[kind]} ({kind.suffix})" for kind in Format]
    return f"{', '.join(first)} or {last}"
