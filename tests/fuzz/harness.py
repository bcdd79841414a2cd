"""Run lidp on nonsense, in this process, and check what it may never do."""

import contextlib
import io
import json
import re
import warnings

from lidp.cli.app import run

CODES = {0, 1, 2, 130}


def lidp(*words):
    """Run a command; fail if it breaks the contract of its exit codes. Return its code, stdout and stderr."""
    words = [str(word) for word in words]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("error")  # a user would see it between the lines
        warnings.simplefilter("ignore", ResourceWarning)  # a user would not
        code = run(words)
    _check(words, code, out.getvalue(), err.getvalue())
    return code, out.getvalue(), err.getvalue()


def _check(words, code, out, err):
    said = f"lidp {words}\nexit code {code}\nstdout: {out[-2000:]}\nstderr: {err[-2000:]}"
    assert code in CODES, said
    assert "Traceback" not in out + err, said
    assert "should not have happened" not in err, said
    if code == 2:
        assert err.startswith("lidp: "), said
        assert err.count("\n") == 1, said
        assert err.isprintable() or err[:-1].isprintable(), said
    if code == 1:
        assert _says_refuted(out), said


def _says_refuted(out):
    with contextlib.suppress(ValueError):
        return '"refuted": true' in out or '"verdict": "refuted"' in json.dumps(json.loads(out))
    return re.search(r"(?<!not )(?<!be )\brefuted\b", out) is not None


def mutated(content, rng):
    """Return bytes with one or several random changes."""
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 4, 30])):
        kind = rng.randrange(5)
        at = rng.randrange(len(changed)) if changed else 0
        if kind == 0 and changed:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and changed:
            changed[at] = rng.randrange(256)
        elif kind == 2:
            del changed[at : at + rng.choice([1, 3, 100])]
        elif kind == 3:
            changed[at:at] = rng.choice([b"\0", b"\xff", b"nan", b",", b"\n", b'"', b"[", b"1e999", rng.randbytes(5)])
        else:
            del changed[at:]
    return bytes(changed)
