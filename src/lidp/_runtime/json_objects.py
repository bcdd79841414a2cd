"""Read JSON that should describe one object."""

from __future__ import annotations

import json
from typing import Any

from lidp.errors import InvalidArgument


def object_from_json(text: str, what: str) -> dict[str, Any]:
    """Return the object in a JSON text; ``what`` names what it should describe.

    Raises:
        InvalidArgument: if the text is not JSON, or no object.
    """
    try:
        plain = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidArgument(f"this is not JSON: {error}") from None
    if not isinstance(plain, dict):
        raise InvalidArgument(f"this is not {what}: expected an object, got {type(plain).__name__}")
    return plain
