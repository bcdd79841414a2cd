"""For a damaged store, every command prints the same as before or reports damage, and nothing else."""

import random
import re
import shutil
import sqlite3

import pytest

from tests.faults.auditing import MOMENTS, audit_words, lidp_here, without_time

pytestmark = pytest.mark.slow
DAMAGED = re.compile(r"damaged|not a store|schema version|cannot be (opened|read)")


def _flip(content, rng):
    at = rng.randrange(len(content))
    content[at] ^= 1 << rng.randrange(8)


def _flip_many(content, rng):
    for _ in range(50):
        _flip(content, rng)


def _zero(content, rng):
    at, size = rng.randrange(len(content)), rng.choice([8, 64, 512, 4096])
    content[at : at + size] = bytes(len(content[at : at + size]))


def _truncate(content, rng):
    del content[rng.randrange(len(content)) :]


def _repeat(content, rng):
    """Overwrite one page with another, as a faulty disk may."""
    pages = len(content) // 4096
    source, target = (4096 * rng.randrange(pages) for _ in range(2))
    content[target : target + 4096] = content[source : source + 4096]


def _bytes(damage):
    def apply(path, rng):
        content = bytearray(path.read_bytes())
        damage(content, rng)
        path.write_bytes(content)

    return apply


def _columns(connection, table):
    return [(row[1], row[2]) for row in connection.execute(f"PRAGMA table_info({table})")]


def _change_a_row(path, rng):
    """Change one value of one row by valid SQL: a number by little, a text or blob at one position, or all of a blob to zero."""
    connection = sqlite3.connect(path)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    cells = [
        (table, column, number)
        for table in tables
        for column, _ in _columns(connection, table)
        for number in range(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608
    ]
    table, column, number = rng.choice(cells)
    keys = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5]] or ["rowid"]
    row = connection.execute(f"SELECT {', '.join([column, *keys])} FROM {table} LIMIT 1 OFFSET {number}").fetchone()  # noqa: S608
    value, where = row[0], " AND ".join(f"{key} = ?" for key in keys)
    with connection:
        connection.execute(
            f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {where}",  # noqa: S608
            [_changed(value, rng), *row[1:]],
        )
    connection.close()


def _changed(value, rng):
    if isinstance(value, bytes):
        if rng.random() < 0.5:
            return bytes(len(value))
        changed = bytearray(value or b"\0")
        _flip(changed, rng)
        return bytes(changed)
    if isinstance(value, str):
        at = rng.randrange(len(value)) if value else 0
        return value[:at] + rng.choice("0123456789aZ") + value[at + 1 :]
    return (value or 0) + rng.choice([1, -1, 2])


DAMAGES = {
    "flip": _bytes(_flip),
    "flip many": _bytes(_flip_many),
    "zero": _bytes(_zero),
    "truncate": _bytes(_truncate),
    "repeat a page": _bytes(_repeat),
    "change a row": _change_a_row,
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Create a finished store and one that was stopped half-way; return their folder."""
    from lidp.cli.app import run

    folder = tmp_path_factory.mktemp("stores")
    assert run(audit_words(folder / "finished.db", "LEAKY", 60)) == 0
    half = folder / "half.db"
    shutil.copyfile(folder / "finished.db", half)
    connection = sqlite3.connect(half)
    with connection:
        for table, column in (("trials", "number"), ("scores", "trial")):
            if column in dict(_columns(connection, table)):
                connection.execute(f"DELETE FROM {table} WHERE {column} >= 30")  # noqa: S608
    connection.close()
    return folder


def _outputs(capsys, store, other):
    """Return the exit code, stdout and stderr of every command on a store."""
    page = store.with_suffix(".html")
    outputs = {}
    for words in (
        ("report", store, "-o", page),
        ("bound", store, "--json"),
        ("compare", store, other),
        ("cite", store),
        ("resume", store, "--json", "--quiet"),  # last, as it may write
    ):
        code, out, err = lidp_here(capsys, *words)
        outputs[words[0]] = code, without_time(out) if "--json" in words and code < 2 else out, err
    return outputs


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["finished", "half"])
def test_commands_on_a_damaged_store(name, damage, stores, tmp_path, capsys):
    store = tmp_path / "a.db"
    shutil.copyfile(stores / f"{name}.db", store)
    expected = _outputs(capsys, store, stores / "finished.db")
    assert {code for code, _, _ in expected.values()} == {0}, [err for _, _, err in expected.values()]
    rng = random.Random(f"{name} {damage}")  # noqa: S311
    for _ in range(MOMENTS):
        for path in tmp_path.iterdir():
            path.unlink()
        shutil.copyfile(stores / f"{name}.db", store)
        DAMAGES[damage](store, rng)
        damaged = store.read_bytes()
        for command, (code, out, err) in _outputs(capsys, store, stores / "finished.db").items():
            where = f"{command} after {damage!r}, {len(damaged)} bytes: {code} {err or out[:500]}"
            if code == 2:
                assert err.startswith("lidp: "), where
                assert err.count("\n") == 1, where
                assert DAMAGED.search(err), where
            else:
                assert (code, out) == expected[command][:2], where
