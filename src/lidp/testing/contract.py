"""The base of the contract suites: named checks that raise ``ContractViolated``, for pytest or without it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class ContractViolated(AssertionError):
    """An object does not do what its protocol asks for."""


def require(condition: object, message: str) -> None:
    """Raise ``ContractViolated`` with this message unless the condition holds."""
    if not condition:
        raise ContractViolated(message)


class Contract(ABC):
    """A suite of checks, each a method whose name begins with ``test_``.

    With pytest, derive a class whose name begins with ``Test`` and define ``make``. Without it, call :meth:`run`.
    """

    @abstractmethod
    def make(self) -> Any:
        """Return the object to check. It is called for every check, and may return the same object each time."""

    @classmethod
    def checks(cls) -> list[str]:
        """Return the names of all checks."""
        return sorted(name for name in dir(cls) if name.startswith("test_"))

    def run(self) -> None:
        """Run all checks; the first that fails raises."""
        for name in self.checks():
            getattr(self, name)()


def raises(errors: type[BaseException] | tuple[type[BaseException], ...], call: Any, message: str) -> BaseException:
    """Return the error that a call raises, and raise ``ContractViolated`` if it raises none or another one."""
    try:
        call()
    except errors as error:
        return error
    except Exception as error:  # any other is a violation, which is reported with its cause
        raise ContractViolated(f"{message}; it raised {type(error).__name__}: {error}") from error
    raise ContractViolated(f"{message}; it raised nothing")
