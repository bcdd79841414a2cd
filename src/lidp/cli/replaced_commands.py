"""Name the command that replaces a form of ``lidp audit`` that no longer exists."""

from __future__ import annotations

from collections.abc import Sequence


def replacement(arguments: Sequence[str]) -> str | None:
    """Return one sentence that names the new command; None if the arguments are not those of a replaced form.

    Call it only for arguments that were refused: an option's value may look like a replaced form.
    """
    if not arguments or arguments[0] != "audit":
        return None
    words = [argument.partition("=")[0] for argument in arguments[1:]]
    if "--command" in words:
        return 'lidp audit --command "..." is now lidp audit-program "..."'
    if "dpsgd" in words:
        return "lidp audit dpsgd is now lidp audit-dpsgd"
    if "catalogue" in words:
        return "lidp audit catalogue --all is now lidp audit-catalogue"
    if "--pair" in words:
        return "lidp audit TARGET --pair is now lidp audit-pair TARGET"
    return None
