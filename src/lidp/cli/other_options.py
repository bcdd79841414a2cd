"""Say which command has an option that this one lacks."""

from __future__ import annotations

from typing import Any

from lidp._runtime.suggestions import did_you_mean


def hint(root: Any, error: Any) -> str:
    """Return a hint for a refused option, given the whole command line: a similar one here, or the commands that have it."""
    name, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if not isinstance(name, str) or context is None:
        return ""
    name = name.partition("=")[0]
    if similar := did_you_mean(name, _options(context.command)):
        return similar
    others = [command for command, one in sorted(root.commands.items()) if name in _options(one)]
    if not others or name == "--help":
        return ""
    return f"; {name} is an option of lidp {', '.join(others)}"


def _options(command: Any) -> list[str]:
    return [name for parameter in command.params for name in parameter.opts if name.startswith("--")]
