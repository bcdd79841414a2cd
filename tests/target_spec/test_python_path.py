"""Loading objects from modules and files."""

import sys

import pytest

from lidp import AuditFailed, Claim, InvalidArgument, TargetSpec
from lidp.target_spec.python_path import find_object
from tests import sample_targets


@pytest.fixture
def file(tmp_path):
    (tmp_path / "neighbour_module.py").write_text("VALUE = 7\n")
    path = tmp_path / "loaded_file.py"
    path.write_text("from neighbour_module import VALUE\nclass Holder:\n    inner = VALUE\n")
    yield path
    for name in ("loaded_file", "neighbour_module"):
        sys.modules.pop(name, None)


def test_an_object_of_a_module():
    assert find_object("tests.sample_targets:LEAKY") is sample_targets.LEAKY


def test_an_attribute_in_a_file_that_imports_its_neighbour(file):
    before = list(sys.path)
    assert find_object(f"{file}:Holder.inner") == 7
    assert sys.path == before


@pytest.mark.parametrize("path", ["", "mine.py", "mine.py:", ":target"])
def test_a_path_without_a_file_or_an_object_is_refused(path):
    with pytest.raises(InvalidArgument, match="the target must be package.module:object or path/file.py:object"):
        find_object(path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no_such_module:x", "there is no module 'no_such_module'"),
        ("no_such_file.py:x", "there is no such file"),
        ("tests.sample_targets:NOTHING", "has no 'NOTHING'"),
    ],
)
def test_an_object_that_does_not_exist_is_refused(path, message):
    with pytest.raises(InvalidArgument, match=message):
        find_object(path)


@pytest.mark.parametrize("raised", ["RuntimeError('odd')", "SystemExit(1)", "KeyboardInterrupt"])
def test_a_file_that_raises_ends_the_audit(tmp_path, raised):
    (tmp_path / "raising_file.py").write_text(f"raise {raised}")
    with pytest.raises(AuditFailed, match=r"running .*raising_file.py failed"):
        find_object(f"{tmp_path / 'raising_file.py'}:x")


@pytest.mark.parametrize(
    ("kind", "path", "message"),
    [
        ("python", "tests.sample_targets:NOT_A_TARGET", "is a int, not a lidp.Target"),
        ("python", "sys:version_info", "use lidp audit-pair"),  # a tuple
        ("pair", "tests.sample_targets:LEAKY", "is a Target, not a lidp.PairTarget"),
    ],
)
def test_an_object_of_the_wrong_type_is_refused(kind, path, message):
    with pytest.raises(InvalidArgument, match=message):
        TargetSpec(kind, {"path": path}).load(Claim(1))
