"""Stores with random changes to tables and bytes: lidp prints at most one line of error, never a traceback."""

import random
import shutil
import sqlite3

import pytest

from tests.fuzz.harness import lidp, mutated

EXAMPLES = 12
SLOW_BLOCKS = 12
BLOCKS = [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, SLOW_BLOCKS))]
VALUES = [
    None,
    0,
    -1,
    1,
    2**62,
    1.5,
    float("inf"),
    "",
    "x",
    "null",
    "[]",
    "{}",
    '{"scores": 3}',
    "[1, 2]",
    "nan",
    b"",
    b"\0",
    b"\xff" * 24,
]
DESIGNS = {"coin-flip": [], "leave-one-out": ["--design", "leave-one-out"], "one-run": ["--method", "one-run"]}


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Create valid stores of several designs; return their folder."""
    folder = tmp_path_factory.mktemp("stores")
    for name, options in DESIGNS.items():
        words = [
            "audit",
            "tests.sample_targets:LEAKY",
            "--epsilon",
            "1",
            "--delta",
            "1e-5",
            "--trials",
            "20",
            "--canaries",
            "3",
            "--quiet",
        ]
        assert lidp(*words, "--store", folder / f"{name}.db", *options)[0] in (0, 1)
    return folder


def _tables(connection):
    return [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]


def _columns(connection, table):
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def _statement(connection, rng):
    """Return a random statement that changes rows, tables or the header, and its values."""
    table = rng.choice(_tables(connection))
    column = rng.choice(_columns(connection, table))
    where = f"WHERE abs(random() % {rng.choice([1, 2, 10])}) = 0"
    return rng.choice(
        [
            (f"UPDATE OR IGNORE {table} SET {column} = ? {where}", [rng.choice(VALUES)]),  # noqa: S608
            (f"UPDATE OR IGNORE {table} SET {column} = ? {where}", [rng.choice(VALUES)]),  # noqa: S608
            (f"UPDATE OR IGNORE {table} SET {column} = substr({column}, 2)", []),  # noqa: S608
            (f"UPDATE OR IGNORE {table} SET {column} = {column} || 'x' {where}", []),  # noqa: S608
            (f"UPDATE OR IGNORE {table} SET {column} = replace({column}, '1', '0')", []),  # noqa: S608
            (f"DELETE FROM {table} {where}", []),  # noqa: S608
            (f"DROP TABLE {table}", []),
            (f"ALTER TABLE {table} RENAME COLUMN {column} TO other", []),
            (f"ALTER TABLE {table} ADD COLUMN other TEXT", []),
            (f"CREATE VIEW other AS SELECT * FROM {table}", []),  # noqa: S608
            (f"CREATE TRIGGER other AFTER INSERT ON {table} BEGIN DELETE FROM {table}; END", []),  # noqa: S608
            ("CREATE TABLE other (a)", []),
            (f"PRAGMA user_version = {rng.choice([0, 1, 2, 3, -1])}", []),
            (f"PRAGMA application_id = {rng.randrange(9)}", []),
        ]
    )


def _change_tables(path, rng):
    connection = sqlite3.connect(path)
    for _ in range(rng.choice([1, 1, 1, 3])):
        if not _tables(connection):
            break
        try:
            with connection:
                connection.execute(*_statement(connection, rng))
        except sqlite3.Error:
            continue  # not valid for this table
    connection.close()


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("name", DESIGNS)
def test_randomly_changed_stores(name, block, stores, tmp_path):
    rng = random.Random(f"{name} {block}")  # noqa: S311
    path = tmp_path / "a.db"
    for _ in range(EXAMPLES):
        for old in tmp_path.iterdir():
            old.unlink()
        shutil.copyfile(stores / f"{name}.db", path)
        if rng.random() < 0.6:
            _change_tables(path, rng)
        else:
            path.write_bytes(mutated(path.read_bytes(), rng))
        lidp("report", path)
        lidp("bound", path, *rng.choice([[], ["--json"], ["--claim", "1"], ["--method", "all"], ["--delta", "0.1"]]))
        lidp("compare", path, stores / f"{name}.db")
        lidp("cite", path)
        lidp("diagnose", path)
        lidp("resume", path, "--quiet")
