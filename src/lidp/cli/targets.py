"""Finding the target of an audit: built in, in a module, or in a file."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lidp._runtime.interrupts import Interrupts
from lidp._runtime.user_code import must_propagate, user_code
from lidp.canaries.sphere import UniformSphere
from lidp.claim import Claim, Neighbours
from lidp.cli import command_options
from lidp.cli.training_options import NAME, training_target_of
from lidp.errors import AuditFailed, InvalidArgument
from lidp.mechanisms.gaussian import GaussianSum, InnerProduct
from lidp.pair_target import PairTarget
from lidp.stats.gaussian_curve import sigma_for
from lidp.target import Target

_DIMENSION = 1000


def _gaussian(share: float) -> Callable[[str, Claim], Target]:
    def make(_text: str, claim: Claim) -> Target:
        if not claim.epsilon or not claim.delta:
            raise InvalidArgument("the built-in Gaussian mechanism needs an epsilon and a delta above 0")
        # A vector of length 1 comes or goes; or it becomes another one, up to its opposite, at a distance of 2.
        sensitivity = 2.0 if claim.neighbours is Neighbours.REPLACE_ONE else 1.0
        mechanism = GaussianSum(share * sensitivity * sigma_for(claim.epsilon, claim.delta), _DIMENSION)
        name = "gaussian" if share == 1 else f"gaussian with {share:g} of the noise"
        return Target(mechanism, UniformSphere(_DIMENSION), InnerProduct(), name=name, neighbours=claim.neighbours)

    return make


BUILT_IN: dict[str, Callable[[str, Claim], Target]] = {
    NAME: training_target_of,
    "gaussian": _gaussian(1.0),
    "gaussian-half-noise": _gaussian(0.5),
}


def load_target(text: str, claim: Claim, *, download: bool = False) -> Target:
    """The target that a text names: a built-in name, ``package.module:object`` or ``path/file.py:object``.

    The data of a built-in one may be fetched if ``download``.

    Raises:
        InvalidArgument: if there is no such thing, or it is not a Target.
        AuditFailed: if the file or module cannot be run.
    """
    name = text.partition("?")[0]
    if text.startswith(f"{command_options.NAME}?"):
        return command_options.command_target_of(text, claim)
    if name == NAME:
        return training_target_of(text, claim, download=download)
    if name in BUILT_IN:
        return BUILT_IN[name](text, claim)
    found = find_object(text)
    if isinstance(found, (PairTarget, tuple)):
        raise InvalidArgument(f"{text} is a {type(found).__name__}; to audit a mechanism and two data sets add --pair")
    if not isinstance(found, Target):
        raise InvalidArgument(
            f"{text} is a {type(found).__name__}, not a lidp.Target; bundle mechanism, canaries and score"
        )
    return found


def find_object(text: str) -> Any:
    """What ``package.module:object`` or ``path/file.py:object`` means.

    Raises:
        InvalidArgument: if there is no such thing.
        AuditFailed: if the file or module cannot be run.
    """
    place, colon, name = text.rpartition(":")
    if not colon or not place or not name:
        built_in = f"{', '.join(BUILT_IN)}, catalogue:NAME"
        raise InvalidArgument(f"the target must be {built_in}, package.module:object or path/file.py:object, got {text!r}")
    with Interrupts():  # tells a real interrupt from what the module raises
        found: Any = load_module(place)
    for part in name.split("."):
        if not hasattr(found, part):
            raise InvalidArgument(f"{place} has no {name!r}")
        found = getattr(found, part)
    return found


def load_module(place: str) -> Any:
    """Import ``package.module``, also from the current folder, or run ``path/file.py``."""
    if not place.endswith(".py"):
        try:
            with _on_the_path(Path.cwd()), user_code():
                return importlib.import_module(place)
        except ModuleNotFoundError as error:
            raise InvalidArgument(
                f"there is no module {place!r} ({error}); a file is named by its path, ending in .py"
            ) from None
        except BaseException as error:
            if must_propagate(error):
                raise
            raise AuditFailed(f"importing {place} failed: {type(error).__name__}: {error}") from error
    path = Path(place)
    if not path.is_file():
        raise InvalidArgument(f"{path}: there is no such file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise InvalidArgument(f"{path} cannot be read as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        with _on_the_path(path.parent.resolve()), user_code():
            spec.loader.exec_module(module)
    except BaseException as error:
        if must_propagate(error):
            raise
        raise AuditFailed(f"running {path} failed: {type(error).__name__}: {error}") from error
    return module


@contextmanager
def _on_the_path(folder: Path) -> Iterator[None]:
    """Import from a folder too, for now."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with suppress(ValueError):  # what was imported may have changed the path as well
            sys.path.remove(str(folder))
