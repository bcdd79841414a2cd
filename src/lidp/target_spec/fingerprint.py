"""Fingerprints of targets: a digest of code, settings and data that tells whether a target has changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from lidp._runtime.descriptions import describe
from lidp.target import PairTarget, Target


def fingerprint(target: Target | PairTarget) -> str:
    """Return a digest of what is audited. An audit is resumed only if the digest is the one in its store.

    The digest is the same in every process. It covers the code of the mechanism, canaries, score and preparation, the constants
    of their modules that this code names, their settings, and the data set. It does not cover functions that this code calls.
    """
    return fingerprint_of(target.parts)


def fingerprint_of(parts: Iterable[Any]) -> str:
    """Return a digest of functions, settings and data."""
    return hashlib.sha256(json.dumps([describe(part) for part in parts]).encode()).hexdigest()[:16]
