"""Audit one expensive training: seal canaries and coins before it, open them with scores after it, hand out a receipt."""

from __future__ import annotations

from lidp.seals.opening import OpenedSeal, SealedResult, open_seal
from lidp.seals.receipt import Receipt, make_receipt, read_receipt
from lidp.seals.sealing import Seal, seal, seal_next
from lidp.seals.verification import Check, Verification, verify_receipt

__all__ = [
    "Check",
    "OpenedSeal",
    "Receipt",
    "Seal",
    "SealedResult",
    "Verification",
    "make_receipt",
    "open_seal",
    "read_receipt",
    "seal",
    "seal_next",
    "verify_receipt",
]
