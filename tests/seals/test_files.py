"""Files of seals: strict JSON, no links, whole folders."""

import os
import stat

import pytest

from lidp.errors import SealError
from lidp.seals.files import canonical, hash_of, new_folder, parse_json, read_bytes, replace_file, sha256, write_json


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("1" * 5000, "not the JSON"),
        ('{"a": NaN}', "NaN is not a number"),
        ('{"a": -Infinity}', "not a number"),
        ('{"a": 1e999}', "1e999 is out of range"),
        ('{"a": 1, "a": 2}', "'a' occurs twice"),
        (b"\xff\xfe\xff", "not the JSON"),
        ("", "not the JSON"),
    ],
)
def test_parse_json_refuses_hostile_text_in_one_line(text, reason):
    with pytest.raises(SealError, match=reason) as error:
        parse_json(text, "file")
    assert "\n" not in str(error.value)


def test_canonical_has_one_form_and_refuses_nan():
    assert canonical({"b": 1, "a": [1.5, None]}) == b'{"a":[1.5,null],"b":1}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(float("nan"))


def test_hash_of_a_folder_covers_names_and_content(tmp_path):
    def folder(name, files):
        (tmp_path / name / "sub").mkdir(parents=True)
        for file, content in files.items():
            (tmp_path / name / file).write_text(content)
        return hash_of(tmp_path / name)

    base = folder("a", {"x": "1", "sub/y": "2"})
    assert base == folder("b", {"x": "1", "sub/y": "2"})
    assert base != folder("c", {"x": "1", "sub/y": "3"})
    assert base != folder("d", {"x": "1", "sub/z": "2"})


def test_hash_of_a_file_is_that_of_its_bytes(tmp_path):
    (tmp_path / "x").write_bytes(b"abc")
    assert hash_of(tmp_path / "x") == sha256(b"a", b"bc")


def test_links_and_other_files_are_not_followed(tmp_path):
    (tmp_path / "real").write_text("1")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SealError, match="is a symbolic link"):
        read_bytes(tmp_path / "link")
    with pytest.raises(SealError, match="not a regular file"):
        read_bytes(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "out").symlink_to(tmp_path)
    with pytest.raises(SealError, match="is a symbolic link"):
        hash_of(tmp_path / "folder")


def test_read_bytes_has_a_limit(tmp_path):
    (tmp_path / "x").write_bytes(b"abc")
    assert read_bytes(tmp_path / "x", 3) == b"abc"
    with pytest.raises(SealError, match="at most 2 are read"):
        read_bytes(tmp_path / "x", 2)


def test_private_files_are_private_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        write_json(tmp_path / "x.json", {}, private=True)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x.json").stat().st_mode) == 0o600


def test_new_folder_leaves_nothing_after_an_error(tmp_path):
    def crash():
        with new_folder(tmp_path / "sealed") as folder:
            (folder / "half").write_text("made")
            assert not (tmp_path / "sealed").exists()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        crash()
    assert list(tmp_path.iterdir()) == []


def test_new_folder_replaces_an_empty_one_only(tmp_path):
    (tmp_path / "empty").mkdir()
    with new_folder(tmp_path / "empty") as folder:
        (folder / "x").write_text("1")
    assert (tmp_path / "empty" / "x").read_text() == "1"
    with pytest.raises(SealError, match="is not empty"), new_folder(tmp_path / "empty"):
        pass
    with pytest.raises(SealError, match="is not a folder"), new_folder(tmp_path / "empty" / "x"):
        pass
    with pytest.raises(SealError, match="there is no folder"), new_folder(tmp_path / "no" / "where"):
        pass
    assert [entry.name for entry in tmp_path.iterdir()] == ["empty"]


def test_replace_file_replaces_a_link_and_not_what_it_leads_to(tmp_path):
    (tmp_path / "precious").write_text("1")
    (tmp_path / "link").symlink_to(tmp_path / "precious")
    replace_file(tmp_path / "link", b"2")
    assert (tmp_path / "precious").read_text() == "1"
    assert (tmp_path / "link").read_text() == "2"
    with pytest.raises(SealError, match="cannot be written"):
        replace_file(tmp_path / "no" / "where", b"")


def test_new_folder_on_a_full_disk_leaves_nothing_and_names_the_folder(tmp_path):
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with (
            pytest.raises(SealError, match="sealed: cannot be created: File too large"),
            new_folder(tmp_path / "sealed") as folder,
        ):
            (folder / "train.jsonl").write_bytes(bytes(1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())


def test_folders_are_no_files(tmp_path):
    with pytest.raises(SealError, match="is not a regular file"):
        read_bytes(tmp_path)


def test_hash_of_refuses_folders_that_are_nested_too_deeply(tmp_path):
    (tmp_path / "/".join("d" * 60)).mkdir(parents=True)
    with pytest.raises(SealError, match="nested too deeply"):
        hash_of(tmp_path)
