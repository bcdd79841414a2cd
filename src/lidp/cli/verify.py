"""``lidp verify``: check a receipt offline."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lidp._runtime.terminal_text import printable
from lidp.cli import options
from lidp.seals import verify_receipt

HELP = """Check the receipt of a sealed audit, offline.

Checks digest, signature, commitments and coins, and computes bound and verdict again.

Exit code: 0 if everything holds, 2 otherwise. Whether the claim was refuted does not matter here.
"""


def command(
    receipt: Annotated[Path, typer.Argument(metavar="RECEIPT", help="File that lidp open wrote.", show_default=False)],
    public_key: Annotated[
        Path | None, typer.Option(help="Public key (PEM) that must have signed it.", show_default=False)
    ] = None,
    seals: Annotated[
        list[Path] | None,
        typer.Option("--seal", help="Sealed folder, run 1 first; checks candidates too.", show_default=False),
    ] = None,
    scores: Annotated[
        list[Path] | None,
        typer.Option(help="File of scores, in the same order; for receipts without evidence.", show_default=False),
    ] = None,
    as_json: options.Json = False,
) -> int:
    verification = verify_receipt(receipt, public_key=public_key, seals=seals or [], scores=scores or [])
    if as_json:
        checks = [asdict(check) for check in verification.checks]
        plain = {"holds": verification.holds, "stated_verdict": verification.verdict, "checks": checks}
        typer.echo(json.dumps(plain, indent=2))
    else:
        typer.echo(printable(str(verification)))
    return 0 if verification.holds else 2
