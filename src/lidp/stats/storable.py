"""Methods and their parameter objects as plain data, for stores and witnesses, and back.

Reading plain data never imports a module. It makes objects of lidp's own classes, and of classes that derive from ``Storable`` and
are either imported already or given by the caller. Classes register themselves when they are defined, so that importing a module
is all that it takes; deriving from ``Storable`` is what permits a store to make an object of a class, which no other class allows.

A class of lidp is stored by its bare name. Any other class is stored by its module, its qualified name and a digest of its code,
and is found by all three. So it can neither replace a class of lidp, whatever its name, nor stand in for another class that
happens to have its module and name (``__main__`` is a different module in every program), nor for an older version of itself: a
method that was changed after the scores were seen is not the method that was chosen before.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from abc import ABC
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum, StrEnum
from types import CodeType
from typing import Any
from weakref import WeakValueDictionary

from lidp._runtime.descriptions import describe, describe_function, is_plain
from lidp.curves import PrivacyCurve, curve_from_json
from lidp.errors import ClassNotImported, InvalidArgument

ADDED_LATER = {"added_later": True}
"""Metadata of fields that were added after stores had been written: as long as they are None, plain data do not mention them."""
_IMPORTED: WeakValueDictionary[int, type[Storable]] = WeakValueDictionary()
_NUMBERS = itertools.count()
_LIDPS_OWN: dict[str, type[Storable]] = {}
_WORDING = {"works", "summary", "counts", "describe_rates", "describe_thresholds"}


class Storable:
    """The base of classes that stores can name: methods, threshold strategies and other parameter objects of methods.

    Subclasses are frozen dataclasses. Their fields hold None, booleans, finite numbers, texts, tuples of these, privacy curves of
    lidp, or other storable objects; a field for an enumeration must accept the member's text.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _IMPORTED[next(_NUMBERS)] = cls


def declare_lidps_own(classes: Iterable[type[Storable]]) -> None:
    """Store these classes of lidp by their bare names.

    Raises:
        InvalidArgument: if another class has the name already.
    """
    for cls in classes:
        if _LIDPS_OWN.setdefault(cls.__name__, cls) is not cls:
            raise InvalidArgument(f"two classes of lidp have the name {cls.__name__}")


def is_lidps_own(cls: type) -> bool:
    """Return whether a class is one of lidp's, by identity: a name proves nothing."""
    return _LIDPS_OWN.get(cls.__name__) is cls


def full_name(cls: type) -> str:
    """Return ``module:qualified.name``, which no class of lidp is stored by."""
    return f"{cls.__module__}:{cls.__qualname__}"


def to_plain(value: Any) -> Any:
    """Return a storable object, or the value of one of its fields, as plain data for JSON.

    Raises:
        InvalidArgument: if the data could not be turned back into an equal object.
    """
    if isinstance(value, Storable):
        return _plain_object(value)
    if isinstance(value, PrivacyCurve):
        return {"curve": value.to_json()}
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, StrEnum):
        return str(value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, Enum) and math.isfinite(value)
    if value is None or isinstance(value, (bool, str)) or is_number:
        return value
    raise InvalidArgument(
        f"a store cannot keep {value!r}: parameters must be None, booleans, finite numbers, texts, tuples of these, or dataclasses "
        "that derive from lidp.stats.storable.Storable"
    )


def _plain_object(value: Any) -> dict[str, Any]:
    cls = type(value)
    if not is_dataclass(value):
        raise InvalidArgument(f"{full_name(cls)} must be a frozen dataclass, so that its parameters can be stored")
    values = {item: getattr(value, item.name) for item in fields(value) if item.init}
    parameters = {
        item.name: to_plain(content)
        for item, content in values.items()
        if content is not None or not item.metadata.get("added_later")
    }
    if is_lidps_own(cls):
        return {"kind": cls.__name__, **parameters}
    plain = {"class": full_name(cls), "code": code_digest(cls), "parameters": parameters}
    restored = from_plain(plain, classes=[cls, *_classes_within(value)])
    if restored != value:
        raise InvalidArgument(
            f"{value!r} becomes {restored!r} when it is stored and read; convert its fields in __post_init__, and let == "
            "compare them"
        )
    return plain


def _classes_within(value: Any) -> list[type[Storable]]:
    """Return the classes of the storable objects in the fields of a value, at any depth."""
    if isinstance(value, tuple):
        return [cls for item in value for cls in _classes_within(item)]
    if not isinstance(value, Storable):
        return []
    inner = tuple(getattr(value, item.name) for item in fields(value))  # type: ignore[arg-type]  # a dataclass
    return [type(value), *_classes_within(inner)]


def from_plain(plain: Any, *, classes: Iterable[type[Storable]] = ()) -> Any:
    """Return the object that :func:`to_plain` described. No module is imported.

    ``classes`` are used for the names that they have, whatever module and code they had when the data was written.

    Raises:
        ClassNotImported: if the data names a class that is neither imported nor among ``classes``.
        InvalidArgument: if the data describes no storable object.
    """
    return _restore(plain, _by_full_name(classes))


def _by_full_name(classes: Iterable[type[Storable]]) -> dict[str, type[Storable]]:
    given: dict[str, type[Storable]] = {}
    for cls in classes:
        if not (isinstance(cls, type) and issubclass(cls, Storable)):
            raise InvalidArgument(f"methods must be classes of methods or of their parameters, got {cls!r}")
        if given.setdefault(full_name(cls), cls) is not cls:
            raise InvalidArgument(f"two different classes are both called {full_name(cls)}; give one of them")
    return given


def _restore(plain: Any, given: Mapping[str, type[Storable]]) -> Any:
    if isinstance(plain, list):
        return tuple(_restore(item, given) for item in plain)
    if not isinstance(plain, dict):
        return plain
    if set(plain) == {"curve"}:
        return curve_from_json(plain["curve"])
    if "class" in plain:
        if set(plain) != {"class", "code", "parameters"} or not isinstance(plain["parameters"], dict):
            raise InvalidArgument(f"a stored object has class, code and parameters, got {', '.join(map(str, plain))}")
        cls, parameters = _users_class(str(plain["class"]), str(plain["code"]), given), plain["parameters"]
    else:
        name = str(plain.get("kind"))
        if name not in _LIDPS_OWN:
            raise InvalidArgument(f"unknown method {plain.get('kind')!r}; was it written by a newer version of lidp?")
        cls, parameters = _LIDPS_OWN[name], {key: value for key, value in plain.items() if key != "kind"}
    return cls(**{key: _restore(value, given) for key, value in parameters.items()})


def _users_class(name: str, code: str, given: Mapping[str, type[Storable]]) -> type[Storable]:
    module, _, class_name = name.partition(":")
    moved = [cls for full, cls in given.items() if full.partition(":")[2] == class_name]
    if name in given or len(moved) == 1:  # the caller says so, also of a class that has moved to another module
        return given.get(name) or moved[0]
    same_name = [cls for _, cls in sorted(_IMPORTED.items()) if full_name(cls) == name and not is_lidps_own(cls)]
    for cls in reversed(same_name):  # the newest, if a module was imported again
        if code_digest(cls) == code:
            return cls
    remedy = f"pass methods=[{class_name.rpartition('.')[2]}], or --import {module} on the command line"
    if same_name:
        raise ClassNotImported(
            f"the class {name} that is imported is not the one that was stored: its code differs, or the version of Python does. "
            f"If you trust the imported one to be the right one, {remedy}"
        )
    raise ClassNotImported(
        f"the class {name} is not imported, and reading imports no code. Import {module} first, {remedy}"
    )


def code_digest(cls: type) -> str:
    """Return a digest of what a class and its bases outside lidp define: functions, and class attributes that are plain values.

    It covers defaults, closures, and the constants of the module (in upper case) that functions name. Comments, docstrings, line
    numbers, and the words of a method for reports do not count. Functions outside the class are not covered.
    """
    bases = [base for base in cls.__mro__ if base not in (object, ABC) and base.__module__.partition(".")[0] != "lidp"]
    described = [[base.__qualname__, _describe_namespace(base)] for base in bases]
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()[:16]


def _describe_namespace(cls: type) -> list[Any]:
    entries: list[Any] = []
    for name, value in sorted(vars(cls).items()):
        # The function inside a property, a class or static method, a cached property, or a cached function.
        inner = (getattr(value, wrapper, None) for wrapper in ("fget", "__func__", "func", "__wrapped__"))
        function = next((candidate for candidate in inner if candidate is not None), value)
        if name in _WORDING:
            continue
        if isinstance(getattr(function, "__code__", None), CodeType):
            entries.append([name, describe_function(function)])
        elif isinstance(value, type):
            entries.append([name, _describe_namespace(value)])
        elif (is_plain(value) or isinstance(value, Enum)) and not name.startswith("__"):
            entries.append([name, repr(value) if isinstance(value, Enum) else describe(value)])
    return entries
