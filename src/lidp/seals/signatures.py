"""Sign receipts and check signatures: Ed25519, by the package ``cryptography`` (the extra ``signing``)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lidp.errors import SealError
from lidp.seals.files import read_bytes, sha256

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ALGORITHM = "Ed25519"
_PREFIX = b"lidp receipt "
_MAX_KEY = 2**20
_MISSING = "signatures need the package cryptography; pip install 'lidp[signing]'"


def sign(digest: str, key_file: Path) -> dict[str, str]:
    """Return the signature of a receipt's digest by the private key in a PEM file."""
    key = _private_key(key_file)
    return {
        "algorithm": ALGORITHM,
        "public_key": base64.b64encode(key.public_key().public_bytes_raw()).decode("ascii"),
        "signature": base64.b64encode(key.sign(_PREFIX + digest.encode())).decode("ascii"),
    }


def check_signature(digest: str, signature: Mapping[str, Any], key_file: Path | None) -> str:
    """Return who signed a digest, in words; with a file of a public key, it must be that key.

    Raises:
        SealError: if the signature is not valid, or is by another key.
    """
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise SealError(_MISSING) from None
    if signature.get("algorithm") != ALGORITHM:
        raise SealError(f"the signature must be by {ALGORITHM}, got {signature.get('algorithm')!r:.40}")
    try:
        raw = base64.b64decode(signature["public_key"], validate=True)
        signed = base64.b64decode(signature["signature"], validate=True)
        Ed25519PublicKey.from_public_bytes(raw).verify(signed, _PREFIX + digest.encode())
    except InvalidSignature:
        raise SealError("the signature does not match the receipt") from None
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise SealError(f"the signature is damaged ({error})") from None
    if key_file is None:
        return f"signed by an unknown key: {sha256(raw)}; give --public-key to check whose it is"
    if _public_key(key_file).public_bytes_raw() != raw:
        raise SealError(f"the receipt is signed by another key than that of {key_file}: {sha256(raw)}")
    return f"signed by the key of {key_file}"


def _private_key(path: Path) -> Ed25519PrivateKey:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        raise SealError(_MISSING) from None
    try:
        key = load_pem_private_key(read_bytes(path.resolve(), _MAX_KEY), password=None)
    except TypeError:
        raise SealError(f"{path} is protected by a password; give a key without one") from None
    except Exception as error:  # the package raises many kinds
        if isinstance(error, SealError):
            raise
        raise SealError(f"{path}: not a private key in PEM format ({str(error)[:100]})") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise SealError(f"{path}: expected an {ALGORITHM} key; make one by openssl genpkey -algorithm ed25519 -out key.pem")
    return key


def _public_key(path: Path) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(read_bytes(path.resolve(), _MAX_KEY))
    except Exception as error:  # the package raises many kinds
        if isinstance(error, SealError):
            raise
        raise SealError(f"{path}: not a public key in PEM format ({str(error)[:100]})") from None
    if not isinstance(key, Ed25519PublicKey):
        raise SealError(f"{path}: expected the public part of an {ALGORITHM} key")
    return key
