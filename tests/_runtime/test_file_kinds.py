"""Kinds of files, by their first bytes."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from lidp._runtime.file_kinds import describe_file, is_zip_file

CONTENTS = [
    (b"", "an empty file"),
    (b"hello, world\n", "a text file"),
    ("ε ≥ 2\n".encode() * 2000, "a text file"),
    (b"x" * 4095 + "ε".encode(), "a text file"),
    (b"\xff\xfe\x00\x01" * 50, "a binary file of another kind"),
    (b"a\0b", "a binary file of another kind"),
]


@pytest.mark.parametrize(("content", "kind"), CONTENTS, ids=range(len(CONTENTS)))
def test_describe_file_by_content(tmp_path, content, kind):
    file = tmp_path / "x"
    file.write_bytes(content)
    assert describe_file(file) == kind
    assert not is_zip_file(file)


def test_describe_file_by_known_beginnings(tmp_path):
    np.savez(tmp_path / "a.npz", x=[1])
    np.save(tmp_path / "a.npy", [1])
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.commit()
    assert is_zip_file(tmp_path / "a.npz")
    assert describe_file(tmp_path / "a.npz").startswith("a zip file")
    assert describe_file(tmp_path / "a.npy").startswith("a single array")
    assert describe_file(tmp_path / "a.db").startswith("an SQLite file")
