"""Decoding the PNG files of the npm package: sizes are checked first, then the content."""

import hashlib
import json

import numpy as np
import pytest

from lidp.data import cifar10, cifar10_package
from lidp.data.cifar10_package import decode_package, main
from lidp.errors import InvalidData


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Write a package of seven images per file; return its folder and its arrays."""
    images = pytest.importorskip("PIL.Image")
    monkeypatch.setattr(cifar10_package, "BATCH", 7)
    rng, arrays = np.random.default_rng(0), {}
    for name, files in cifar10_package.BATCHES.items():
        arrays[name] = rng.integers(0, 256, (7 * len(files), 3072), dtype=np.uint8)
        for part, file in zip(np.split(arrays[name], len(files)), files, strict=True):
            images.fromarray(part.reshape(7, 1024, 3)).save(tmp_path / file)
    for name, file in cifar10_package.LABELS.items():
        arrays[name] = rng.integers(0, 10, len(arrays[name.replace("y", "x")]), dtype=np.uint8)
        (tmp_path / file).write_text(json.dumps(arrays[name].tolist()))
    monkeypatch.setattr(cifar10, "DIGESTS", {name: hashlib.sha256(a.tobytes()).hexdigest() for name, a in arrays.items()})
    return tmp_path, arrays


def test_decode_package_returns_images_and_labels(package):
    folder, arrays = package
    decoded = decode_package(folder)
    assert set(decoded) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(decoded[name], array)


def test_main_writes_a_file_that_load_cifar10_reads(package, capsys):
    folder, arrays = package
    assert main([str(folder), str(folder / "cifar10.npz")]) == 0
    np.testing.assert_array_equal(cifar10.load_cifar10(folder).x, arrays["x"])


@pytest.mark.parametrize("arguments", [[], ["a", "b", "c"]])
def test_main_shows_its_usage(arguments, capsys):
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("usage: python -m lidp.data.cifar10_package FOLDER")


def test_main_prints_one_line_where_a_file_is_missing(tmp_path, capsys):
    assert main([str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("content", [b"", b"GIF89a" + bytes(20), b"\x89PNG\r\n\x1a\n" + bytes(40)])
def test_decode_package_refuses_what_is_no_png(package, content):
    folder, _ = package
    (folder / "test_batch.png").write_bytes(content)
    with pytest.raises(InvalidData, match="test_batch.png: cannot be decoded"):
        decode_package(folder)


def test_decode_package_refuses_an_image_of_another_size_before_unpacking_it(package):
    folder, _ = package
    from PIL import Image

    Image.new("RGB", (3000, 2000)).save(folder / "data_batch_2.png")
    with pytest.raises(InvalidData, match=r"data_batch_2.png: RGB of \(3000, 2000\), expected RGB of \(1024, 7\)"):
        decode_package(folder)


@pytest.mark.parametrize("text", ["{}", "[1, 2]", "[" * 100_000, "[10" + ", 1" * 6 + "]", "x"])
def test_decode_package_refuses_other_labels(package, text):
    folder, _ = package
    (folder / "test_lables.json").write_text(text)
    with pytest.raises(InvalidData, match="test_lables.json: "):
        decode_package(folder)


def test_decode_package_refuses_other_images(package):
    folder, arrays = package
    labels = np.roll(arrays["y"], 1)
    (folder / "train_lables.json").write_text(json.dumps(labels.tolist()))
    with pytest.raises(InvalidData, match="the SHA-256 of y differs"):
        decode_package(folder)
