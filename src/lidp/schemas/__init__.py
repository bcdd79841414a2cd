"""JSON schemas (draft 2020-12) of the JSON that lidp writes.

>>> schema("epsilon-bound")["title"]
'Lower bound on ε'
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from lidp.errors import InvalidArgument

SCHEMAS = ("audit-result", "bounds", "budget-plan", "epsilon-bound")
"""Names of the schemas."""
_SHARED = ("common", "epsilon-bound")  # other schemas refer to them


def schema(name: str) -> dict[str, Any]:
    """Return a schema as plain data. It includes all schemas that it refers to, so that a validator needs no other file.

    Raises:
        InvalidArgument: if there is no schema of this name.
    """
    if name not in SCHEMAS:
        raise InvalidArgument(f"there is no schema {name!r}; the schemas are {', '.join(SCHEMAS)}")
    whole = _read(name)
    others = {other: _read(other) for other in _SHARED if other != name}
    return whole | {"$defs": whole.get("$defs", {}) | others}


def _read(name: str) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(files(__name__).joinpath(f"{name}.json").read_text(encoding="utf-8"))
    return plain
