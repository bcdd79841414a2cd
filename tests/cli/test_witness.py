"""``lidp witness`` on files that are no witnesses."""

from lidp.store import Store
from tests.cli.invoke import lidp


def test_a_file_that_is_no_witness_is_refused_in_one_line(capsys, tmp_path):
    assert lidp(capsys, "witness", tmp_path / "none.json")[0] == 2
    path = tmp_path / "w.json"
    for text in ("{", "[]", "{}", '{"claim": 3}'):
        path.write_text(text)
        code, _, err = lidp(capsys, "witness", path)
        assert code == 2
        assert err.startswith("lidp: ")
        assert err.count("\n") == 1


def test_a_file_that_is_no_witness_is_called_what_it_is(capsys, tmp_path):
    store = tmp_path / "mine.db"
    with Store.create(store, {}):
        pass
    (tmp_path / "noise").write_bytes(bytes(range(256)))
    for name, message in (("mine.db", "is the store of an audit, not a witness"), ("noise", "but a binary file")):
        code, _, err = lidp(capsys, "witness", tmp_path / name)
        assert (code, err.count("\n")) == (2, 1)
        assert message in err
