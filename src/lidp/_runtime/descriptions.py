"""Describe code, settings and data as plain data that is the same in every process, to tell whether they have changed."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import CodeType, FunctionType
from typing import Any

import numpy as np

_PLAIN = (bool, int, float, complex, str, bytes, np.generic)


def describe(value: Any) -> Any:
    """Return JSON-compatible data that is equal for equal values."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return [str(value.dtype), list(value.shape), hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()]
    if is_dataclass(value) and not isinstance(value, type):
        # A field that is left out of comparisons is left out here, too.
        compared = (getattr(value, item.name) for item in fields(value) if item.compare)
        return [type(value).__qualname__, *map(describe, compared)]
    if isinstance(value, (list, tuple)):
        return [describe(item) for item in value]
    if isinstance(value, dict):  # sorted: the order of entries makes no difference
        return ["dict", *sorted(([describe(key), describe(item)] for key, item in value.items()), key=json.dumps)]
    if isinstance(value, functools.partial):
        return ["partial", describe(value.func), describe(value.args), describe(sorted(value.keywords.items()))]
    if value is None or isinstance(value, _PLAIN):
        return repr(value)
    name = [getattr(value, "__module__", ""), getattr(value, "__qualname__", type(value).__qualname__)]
    if isinstance(getattr(value, "__code__", None), CodeType):
        return [*name, *describe_function(getattr(value, "py_func", value))]  # numba keeps the Python function there
    if hasattr(value, "detach") and hasattr(value, "numpy"):  # a tensor
        return [*name, describe(value.detach().cpu().numpy())]
    if hasattr(value, "tensors"):  # a data set of tensors
        return [*name, describe(tuple(value.tensors))]
    call = getattr(type(value), "__call__", None)  # noqa: B004  # its code, not whether it has any
    return [*name, *(describe_function(call) if isinstance(getattr(call, "__code__", None), CodeType) else [])]


def describe_function(function: Any) -> list[Any]:
    """Describe the code of a function, its defaults and the variables that it closes over."""
    closed_over = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    defaults = [*(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items())]
    code = _describe_code(function.__code__, _globals(function))
    return [code, [_describe_variable(value) for value in (*defaults, *closed_over)]]


def _describe_variable(value: Any) -> Any:
    """Describe a default or a closed-over variable of a function."""
    if isinstance(value, FunctionType):  # by its code alone: functions may close over one another
        return _describe_code(value.__code__, _globals(value))
    if isinstance(value, (tuple, functools.partial)) or (is_plain(value) and not isinstance(value, list)):
        return describe(value)
    return type(value).__qualname__  # the contents of a list, for example, may change while trials run


def _describe_code(code: CodeType, module_globals: Mapping[str, Any]) -> list[Any]:
    """Describe code, its literals, and the constants of its module that it names.

    Constants are the names in upper case. Other global variables may change while trials run.
    """
    has_docstring = bool(code.co_consts) and isinstance(code.co_consts[0], str) and code.co_name != "<lambda>"
    described = [_describe_literal(literal, module_globals) for literal in code.co_consts[has_docstring:]]
    constants = [
        [name, describe(module_globals[name])]
        for name in code.co_names
        if name.isupper() and name in module_globals and is_plain(module_globals[name])
    ]
    return [hashlib.sha256(code.co_code).hexdigest(), described, list(code.co_names), constants]


def _describe_literal(literal: Any, module_globals: Mapping[str, Any]) -> Any:
    if isinstance(literal, CodeType):
        return _describe_code(literal, module_globals)
    # The order of a set differs from process to process.
    return sorted(map(repr, literal)) if isinstance(literal, frozenset) else repr(literal)


def _globals(function: Any) -> Mapping[str, Any]:
    module_globals: Mapping[str, Any] = getattr(function, "__globals__", {})
    return module_globals


def is_plain(value: Any) -> bool:
    """Return whether a value is fully described by its contents: numbers, texts, arrays, and collections of them."""
    if isinstance(value, dict):
        return all(is_plain(part) for entry in value.items() for part in entry)
    if isinstance(value, (list, tuple)):
        return all(is_plain(part) for part in value)
    return value is None or isinstance(value, _PLAIN) or (isinstance(value, np.ndarray) and value.dtype != object)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # the variable has no value yet
        return False
