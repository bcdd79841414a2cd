"""Text from elsewhere, made fit to be shown. Escaping is the template's; this is what escaping does not catch."""

from __future__ import annotations

import re
from typing import Any

from markupsafe import Markup

LONGEST = 2000
# Control characters and half surrogates, which no page may hold, and marks that turn the direction of writing, with which a
# name could pose as another.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


def clean(text: str) -> str:
    """The text with what cannot be shown replaced, and cut off where it is absurdly long."""
    if isinstance(text, Markup):
        return text
    shown = _UNFIT.sub("\ufffd", text)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"


def finalize(value: Any) -> Any:
    """What the templates do to every value before it is escaped."""
    return clean(value) if isinstance(value, str) else value
