"""``lidp witness`` on files that are no witnesses."""

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
