"""Groups of options that several commands share: a parameter whose type is a dataclass stands for one option per field."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def with_option_groups(command: Callable[..., int]) -> Callable[..., int]:
    """Replace each parameter whose type is a dataclass by the fields of that dataclass, which become options.

    The command is called with instances of its dataclasses, made from the options that were typed. The fields of all groups of a
    command need different names, and no default factories.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        expanded = _fields_as_parameters(groups[name]) if name in groups else [parameter.replace(annotation=hints[name])]
        parameters += [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in expanded]

    @wraps(command)
    def run(**given: Any) -> int:
        made = {
            name: group(**{item.name: given.pop(item.name) for item in fields(group)}) for name, group in groups.items()
        }
        return command(**made, **given)

    run.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {"return": int}
    del run.__wrapped__  # or typer would follow it to the annotations before the expansion
    return run


def _fields_as_parameters(group: type) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            item.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if item.default is MISSING else item.default,
            annotation=hints[item.name],
        )
        for item in fields(group)
    ]
