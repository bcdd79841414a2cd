"""The option ``--import``: import the module of a method of one's own, which a store or witness names."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lidp._runtime.interrupts import Interrupts
from lidp.errors import InvalidArgument
from lidp.stats.method import Method
from lidp.stats.registry import METHODS, method_named
from lidp.stats.storable import Storable, full_name
from lidp.target_spec.python_path import load_module

Import = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        help="Module (or file.py) to run, with a method of your own.",
        metavar="MODULE",
        show_default=False,
    ),
]


def import_methods(modules: list[str] | None) -> list[type[Storable]]:
    """Import modules and return the classes of methods, threshold strategies and other parameters that they define.

    Raises:
        InvalidArgument: if there is no such module, or it defines no such class.
        AuditFailed: if importing it fails.
    """
    classes: list[type[Storable]] = []
    for name in modules or ():
        with Interrupts():  # tells a real interrupt from what the module raises
            module: Any = load_module(name)
        defined = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Storable)]
        defined = [cls for cls in dict.fromkeys(defined) if cls.__module__ == module.__name__]
        if not defined:
            raise InvalidArgument(f"--import {name}: the module defines no lidp.Method and no threshold strategy")
        classes += defined
    return classes


def find_method(name: str, classes: list[type[Storable]]) -> type[Method]:
    """Return the method of this name: one of lidp's, or one that a module given as ``--import`` defines.

    Raises:
        InvalidArgument: if there is none, or several of them.
    """
    imported = [cls for cls in classes if issubclass(cls, Method) and getattr(cls, "name", None) == name]
    if name in METHODS or not imported:
        return method_named(name)
    if len(imported) > 1:
        raise InvalidArgument(f"several imported methods have the name {name!r}: {', '.join(map(full_name, imported))}")
    return imported[0]
