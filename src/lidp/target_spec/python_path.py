"""Load targets from Python: ``package.module:object`` or ``path/file.py:object``."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lidp._runtime.interrupts import Interrupts
from lidp._runtime.suggestions import did_you_mean
from lidp._runtime.user_code import must_propagate, user_code
from lidp.claim import Claim
from lidp.errors import AuditFailed, InvalidArgument
from lidp.target import PairTarget, Target


def load_target(options: Mapping[str, Any], _claim: Claim) -> Target:
    """Load a :class:`Target` from the option ``path``.

    Raises:
        InvalidArgument: if there is no such object, or it is not a Target.
        AuditFailed: if the file or module raises.
    """
    path = options["path"]
    target = find_object(path)
    if isinstance(target, (PairTarget, tuple)):
        raise InvalidArgument(
            f"{path} is a {type(target).__name__}; to audit a mechanism and two data sets, use lidp audit-pair"
        )
    if not isinstance(target, Target):
        raise InvalidArgument(
            f"{path} is a {type(target).__name__}, not a lidp.Target; bundle mechanism, canaries and score"
        )
    return target


def load_pair(options: Mapping[str, Any], _claim: Claim) -> PairTarget:
    """Load a :class:`PairTarget` from the option ``path``; a tuple (mechanism, d0, d1) is made into one.

    Raises:
        InvalidArgument: if there is no such object, or it is neither of the two.
        AuditFailed: if the file or module raises.
    """
    path = options["path"]
    target = find_object(path)
    if isinstance(target, PairTarget):
        return target
    if isinstance(target, tuple) and len(target) == 3:
        return PairTarget(*target, name=path)
    raise InvalidArgument(f"{path} is a {type(target).__name__}, not a lidp.PairTarget or a tuple (mechanism, d0, d1)")


def find_object(path: str) -> Any:
    """Import a module or run a file, and return the object that the path names.

    Raises:
        InvalidArgument: if there is no such file, module or object.
        AuditFailed: if the file or module raises.
    """
    source, colon, name = path.rpartition(":")
    if not colon or not source or not name:
        raise InvalidArgument(f"the target must be package.module:object or path/file.py:object, got {path!r}")
    with Interrupts():  # to distinguish a real interrupt from a KeyboardInterrupt that the module raises
        value: Any = load_module(source)
    for part in name.split("."):
        if not hasattr(value, part):
            public = (known for known in dir(value) if not known.startswith("_"))
            raise InvalidArgument(f"{source} has no {name!r}{did_you_mean(part, public)}")
        value = getattr(value, part)
    return value


def load_module(source: str) -> Any:
    """Import a module, or run a file whose path ends in .py, and return the module.

    Raises:
        InvalidArgument: if there is no such file or module.
        AuditFailed: if the file or module raises.
    """
    return _run_file(Path(source)) if source.endswith(".py") else _import(source)


def _import(module: str) -> Any:
    try:
        with _import_path(Path.cwd()), user_code():
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InvalidArgument(
            f"there is no module {module!r} ({error}); a file is named by its path, ending in .py"
        ) from None
    except BaseException as error:
        if must_propagate(error):
            raise
        raise AuditFailed(f"importing {module} failed: {type(error).__name__}: {error}") from error


def _run_file(file: Path) -> Any:
    if not file.is_file():
        raise InvalidArgument(f"{file}: there is no such file")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise InvalidArgument(f"{file} cannot be read as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    try:
        with _import_path(file.parent.resolve()), user_code():
            spec.loader.exec_module(module)
    except BaseException as error:
        if must_propagate(error):
            raise
        raise AuditFailed(f"running {file} failed: {type(error).__name__}: {error}") from error
    return module


@contextmanager
def _import_path(folder: Path) -> Iterator[None]:
    """Import from a folder, too, inside the block."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with suppress(ValueError):  # the imported module may have changed the path as well
            sys.path.remove(str(folder))
