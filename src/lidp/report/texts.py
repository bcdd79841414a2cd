"""Clean text from users before it is shown. The templates escape it; this handles what escaping does not."""

from __future__ import annotations

import re
from typing import Any

from markupsafe import Markup

LONGEST = 2000
# Control characters and half surrogates, which no page may hold, and marks that turn the direction of writing, with which a
# name could pose as another.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


def clean(text: str) -> str:
    """Return the text with characters that cannot be shown replaced, cut off at ``LONGEST`` characters."""
    if isinstance(text, Markup):
        return text
    shown = _UNFIT.sub("\ufffd", text)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"


def finalize(value: Any) -> Any:
    """Return a template value, cleaned if it is text; the template escapes it afterwards."""
    return clean(value) if isinstance(value, str) else value
