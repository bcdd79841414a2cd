"""``TargetSpec``: how a target is loaded, as a plain value that a store can keep and a command can repeat."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from lidp.claim import Claim
from lidp.errors import InvalidArgument
from lidp.target import PairTarget, Target
from lidp.target_spec.kinds import KINDS, Kind

Option: TypeAlias = str | int | float | bool

_TYPE_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
_SHOWN_CHARACTERS = 60  # of a value, in a message


@dataclass(frozen=True)
class TargetSpec:
    """How a target is loaded: its kind, and the options of that kind (:mod:`lidp.target_spec.kinds`).

    Creating, reading, comparing and printing a spec run no code of the target. :meth:`load` does.

    >>> spec = TargetSpec("python", {"path": "mine.py:target"})
    >>> spec.to_command({"epsilon": 2.0})
    'lidp audit --epsilon 2.0 mine.py:target'
    >>> TargetSpec.from_json(spec.to_json()) == spec
    True

    Raises:
        InvalidArgument: if the kind is unknown, or an option is unknown, missing, empty or of the wrong type.
    """

    kind: str
    options: Mapping[str, Option] = field(hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise InvalidArgument(f"the kind of a target must be one of {', '.join(KINDS)}, got {_short(self.kind)}")
        if not isinstance(self.options, Mapping):
            raise InvalidArgument(f"the options of {self.kind} must be a mapping, got {_short(self.options)}")
        for name, value in self.options.items():
            self._check_option(name, value)
        for name in self._kind.required:
            if name not in self.options:
                raise InvalidArgument(f"{self.kind} needs the option {name}, which is missing")
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))

    def __reduce__(self) -> tuple[type[TargetSpec], tuple[str, dict[str, Option]]]:
        return TargetSpec, (self.kind, dict(self.options))  # a read-only mapping cannot be pickled

    @property
    def _kind(self) -> Kind:
        return KINDS[self.kind]

    def _check_option(self, name: str, value: object) -> None:
        known = self._kind.options
        if name not in known:
            raise InvalidArgument(f"{self.kind} has no option {_short(name)}; it has {', '.join(known)}")
        expected = known[name]
        accepted = (int, float) if expected is float else expected
        if not isinstance(value, accepted) or (isinstance(value, bool) and expected is not bool):
            raise InvalidArgument(f"{name} must be {_TYPE_NAMES[expected]}, got {_short(value)}")
        if value == "":
            raise InvalidArgument(f"{name} of {self.kind} is empty; give it a value, or leave it out")

    @property
    def runs_code(self) -> bool:
        """Whether loading or auditing the target runs code that the spec names, instead of code of this library."""
        return self._kind.runs_code

    @property
    def depends_on_folder(self) -> bool:
        """Whether the current folder decides which code the spec names: modules and relative paths are looked for there."""
        return not all(_is_absolute(self.options[name]) for name in self._kind.paths if name in self.options)

    def load(self, claim: Claim) -> Target | PairTarget:
        """Load the target, made for a claim where it depends on one. This runs code that the spec names.

        Raises:
            InvalidArgument: if the target does not exist, or an option has a value that it cannot have.
            AuditFailed: if the code of the target fails while it is loaded.
        """
        module, _, function = self._kind.loader.partition(":")
        target: Target | PairTarget = getattr(import_module(module), function)(self.options, claim)
        return target

    def to_dict(self) -> dict[str, Any]:
        """Return the spec as data that JSON can hold."""
        return {"kind": self.kind, "options": dict(self.options)}

    @classmethod
    def from_dict(cls, plain: object) -> TargetSpec:
        """Return the spec that :meth:`to_dict` was called on.

        Raises:
            InvalidArgument: if the data are not those of a spec.
        """
        if not isinstance(plain, Mapping) or set(plain) != {"kind", "options"}:
            raise InvalidArgument(f"a target spec must have a kind and options, got {_short(plain)}")
        return cls(plain["kind"], plain["options"])

    def to_json(self) -> str:
        """Return the spec as JSON."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> TargetSpec:
        """Return the spec that :meth:`to_json` was called on.

        Raises:
            InvalidArgument: if the text is not the JSON of a spec.
        """
        try:
            plain = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidArgument(f"a target spec must be JSON ({error}), got {_short(text)}") from None
        return cls.from_dict(plain)

    def to_command(self, audit_options: Mapping[str, Option] | None = None) -> str:
        """Return the shell command that audits this target, with further options of that command.

        Options of the spec that the command derives (:attr:`Kind.derived`) are left out.
        """
        kind = self._kind
        typed = {name: value for name, value in self.options.items() if name not in (*kind.derived, kind.argument)}
        words = ["lidp", kind.command]
        for name, value in {**(audit_options or {}), **typed}.items():
            words += _option_words(name, value)
        if kind.argument is not None:
            argument = f"{kind.prefix}{self.options[kind.argument]}"
            words += ["--", argument] if argument.startswith("-") else [argument]  # a dash would begin an option
        return shlex.join(words)

    def __str__(self) -> str:
        argument = self._kind.argument
        if argument is not None:
            return f"{self._kind.prefix}{self.options[argument]}"
        return ", ".join([self.kind, *(f"{name} {value}" for name, value in self.options.items())])


def _option_words(name: str, value: Option) -> list[str]:
    option = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [option] if value else []
    text = repr(value) if isinstance(value, float) else str(value)
    return [f"{option}={text}"] if text.startswith("-") else [option, text]


def _is_absolute(path: Option) -> bool:
    """Return whether a path is absolute; of ``path:object``, whether the path is."""
    return Path(str(path)).is_absolute()


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
