"""``lidp open``: open sealed runs with the scores of their candidates."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

import typer

from lidp._runtime.terminal_text import printable
from lidp.cli import options
from lidp.cli.report_files import check_format, check_report, write_result
from lidp.errors import InvalidArgument, SealError
from lidp.result import Verdict
from lidp.seals import OpenedSeal, Receipt, make_receipt, open_seal
from lidp.seals.files import replace_file
from lidp.seals.receipt import model_card, read_receipt
from lidp.seals.sealed_run import RECEIPT, read_commitment

HELP = f"""Open sealed runs with the scores of their candidates.

Checks the commitment, bounds ε, judges the claim and writes a receipt.

FOLDER is what lidp seal wrote; name the folders of all runs of the plan from the first on. Scores are .csv with the columns id and
score, .jsonl with objects of id and score, or .npz with the arrays id and score, in any order. A higher score means that the
candidate looks more inserted.

Different scores for the same seal are refused, unless lidp seal --looks reserved looks for them.

{options.EXIT_CODES}
"""


def command(
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="Sealed folders, run 1 first.", show_default=False)
    ],
    scores: Annotated[
        list[Path] | None,
        typer.Option(help="File of scores; once per folder, in the same order.", show_default=False),
    ] = None,
    failed: Annotated[
        list[str] | None,
        typer.Option(
            help="Instead of scores: why the training failed. With several folders, NUMBER: REASON.",
            metavar="REASON",
            show_default=False,
        ),
    ] = None,
    last: Annotated[bool, typer.Option("--last", help="Tell the bound and give up the looks that are left.")] = False,
    receipt: Annotated[
        Path | None, typer.Option(help="File for the receipt.", show_default="receipt.json in the last folder")
    ] = None,
    without_evidence: Annotated[
        bool, typer.Option("--without-evidence", help="Leave scores and coins out of the receipt.")
    ] = False,
    sign: Annotated[
        Path | None, typer.Option(help="Ed25519 private key (PEM) to sign the receipt with.", show_default=False)
    ] = None,
    card: Annotated[
        Path | None, typer.Option("--model-card", help="File for a Markdown block about the audit.", show_default=False)
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="File for the result: .html, .md, .json, .xml or .svg.", show_default=False)
    ] = None,
    as_json: options.Json = False,
) -> int:
    for folder in folders:
        read_commitment(folder)  # a folder that is not a sealed one is named before anything else
    if report is not None:
        check_format(report)
    receipt = folders[-1] / RECEIPT if receipt is None else receipt
    outputs = [file for file in (report, card, receipt) if file is not None]
    _check_outputs(outputs, [*(scores or []), *([] if sign is None else [sign])], folders)
    if sign is not None:
        Receipt({}).signed(sign)  # a key that cannot be used is found before a look is spent
    elif _is_signed(receipt):
        raise InvalidArgument(f"{receipt} is signed; add --sign KEY, or write to another file with --receipt")
    opened = open_seal(folders, scores or [], failed=_reasons(failed or [], len(folders)), last=last)
    if opened.result is None:
        _print_sealed(opened, as_json=as_json)
        return 0
    made = make_receipt(opened, with_evidence=not without_evidence)
    made = made if sign is None else made.signed(sign)
    # Print before writing files: the verdict must not be lost if one of them fails.
    if as_json:
        typer.echo(json.dumps({name: value for name, value in made.plain.items() if name != "evidence"}, indent=2))
    else:
        typer.echo(printable(f"{opened}\n  receipt    {receipt}: {made.digest}"))
    made.write(receipt)
    if card is not None:
        replace_file(card, model_card(opened.result, made).encode())
    if report is not None:
        write_result(opened.result, report)
    return 1 if opened.verdict is Verdict.REFUTED else 0


def _check_outputs(outputs: list[Path], inputs: list[Path], folders: list[Path]) -> None:
    """Refuse to replace scores, which nobody may be able to compute again, or a file of a seal, or one output by another."""
    for at, file in enumerate(outputs):
        _check_output(file, folders)
        if any(_is_same(file, other) for other in inputs):
            raise InvalidArgument(f"{file} is read, and would be replaced; choose another name for what is written")
        if any(_is_same(file, other) for other in outputs[:at]):
            raise InvalidArgument(f"{file} is to be written twice; choose different names")


def _is_same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))


def _check_output(file: Path, folders: list[Path]) -> None:
    check_report(file)
    inside = [folder for folder in folders if file.resolve().is_relative_to(folder.resolve())]
    is_receipt = file.name == RECEIPT and file.parent.resolve() in [folder.resolve() for folder in inside]
    if inside and not is_receipt and file.exists():
        raise InvalidArgument(f"{file} belongs to a seal, which must not be changed; choose another name")
    if file.is_symlink():
        raise SealError(f"{file} is a symbolic link; choose another name")


def _is_signed(receipt: Path) -> bool:
    try:
        return "signature" in read_receipt(receipt).plain
    except (OSError, SealError):  # there is none yet, or it is no receipt
        return False


def _reasons(texts: list[str], folders: int) -> dict[int, str]:
    """Return the reasons of failed trainings by run number."""
    reasons: dict[int, str] = {}
    for text in texts:
        numbered = re.fullmatch(r"\s*(\d{1,9})\s*:\s*(.*)", text, flags=re.DOTALL)
        if numbered is None and folders > 1:
            raise InvalidArgument(f"several runs are opened; say which one failed, as in --failed '2: {text}'")
        number, reason = (int(numbered[1]), numbered[2]) if numbered else (1, text)
        if number in reasons:
            raise InvalidArgument(f"run {number} is said to have failed twice; give one reason")
        reasons[number] = reason.strip() or "no reason given"
    return reasons


def _print_sealed(opened: OpenedSeal, *, as_json: bool) -> None:
    """Print the verdict of a look after which others are left."""
    if not as_json:
        typer.echo(printable(str(opened)))
        return
    look = {"number": opened.look.number, "of": opened.plan.looks, "left": opened.look.left}
    plain = {"verdict": str(opened.verdict), "claim": opened.plan.claim.to_dict(), "look": look}
    typer.echo(json.dumps({**plain, "evidence_hash": opened.evidence_hash}, indent=2))
