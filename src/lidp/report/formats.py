"""The formats in which a result can be written."""

from __future__ import annotations

from enum import StrEnum

from lidp.report.junit import render_junit
from lidp.report.markdown import render_markdown
from lidp.report.page import render_report
from lidp.result import AuditResult


class Format(StrEnum):
    """A format of reports."""

    HTML = "html"
    MARKDOWN = "markdown"
    JSON = "json"
    JUNIT = "junit"

    @property
    def suffix(self) -> str:
        """The usual ending of file names."""
        return {"html": ".html", "markdown": ".md", "json": ".json", "junit": ".xml"}[self]

    def render(self, result: AuditResult) -> str:
        """Return the text of the report."""
        if self is Format.HTML:
            return render_report(result)
        if self is Format.MARKDOWN:
            return render_markdown(result)
        return render_junit(result) if self is Format.JUNIT else result.to_json(indent=2) + "\n"
