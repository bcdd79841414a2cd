"""The verdict as a small SVG image, for a README."""

from __future__ import annotations

from markupsafe import Markup

from lidp.report import wording
from lidp.report.figure_data import claimed_epsilon
from lidp.report.texts import clean
from lidp.result import AuditResult, Verdict

_LABEL = "DP audit"
# White text has a contrast above 4.5 on each of them. "Not refuted" is not green: it does not mean that the claim is true.
_COLOURS = {Verdict.REFUTED: "#b3261e", Verdict.NOT_REFUTED: "#0b5cad", Verdict.INCONCLUSIVE: "#515b66"}
_LABEL_COLOUR = "#24292f"
_CHARACTER, _MARGIN, _HEIGHT = 6.6, 8, 20

_BADGE = Markup(
    '<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
    'aria-labelledby="title"><title id="title">{title}</title>'
    '<rect width="{left}" height="{height}" fill="{label_colour}"/>'
    '<rect x="{left}" width="{right}" height="{height}" fill="{colour}"/>'
    '<g fill="#ffffff" font-family="Verdana, DejaVu Sans, Geneva, sans-serif" font-size="11">'
    '<text x="{margin}" y="14" textLength="{label_length}" lengthAdjust="spacingAndGlyphs">{label}</text>'
    '<text x="{message_at}" y="14" textLength="{message_length}" lengthAdjust="spacingAndGlyphs">{message}</text>'
    "</g></svg>\n"
)


def badge_message(result: AuditResult) -> str:
    """Return the verdict, the bound and the claim in a few words: "not refuted: ε ≥ 1.2 of 2"."""
    verdict = wording.verdict(result)
    if result.verdict is Verdict.INCONCLUSIVE:
        return verdict
    return f"{verdict}: ε ≥ {wording.bound_words(result)} of {claimed_epsilon(result)}"


def render_badge(result: AuditResult) -> str:
    """Return the badge: a static image that loads nothing; its title names the target, for those who cannot see it."""
    message = badge_message(result)
    label_length, message_length = (round(_CHARACTER * len(words)) for words in (_LABEL, message))
    left = label_length + 2 * _MARGIN
    right = message_length + 2 * _MARGIN
    return _BADGE.format(
        width=left + right,
        height=_HEIGHT,
        left=left,
        right=right,
        margin=_MARGIN,
        message_at=left + _MARGIN,
        label_length=label_length,
        message_length=message_length,
        label=_LABEL,
        label_colour=_LABEL_COLOUR,
        colour=_COLOURS[result.verdict],
        message=message,
        title=clean(f"{_LABEL} of {result.target}: {message}"),
    )
