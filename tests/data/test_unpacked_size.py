"""Data sets whose files unpack to more than they should are refused before they fill the memory."""

import gzip
import io
import tarfile

import pytest

from lidp.data import load_purchases
from lidp.data.fashion_mnist import FILES, load_fashion_mnist
from lidp.errors import InvalidData


def test_a_purchases_archive_above_the_size_limit_is_refused(tmp_path):
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as stream,
        tarfile.open(fileobj=stream, mode="w") as archive,
    ):
        member = tarfile.TarInfo("dataset_purchase")
        member.size = 600_000_000
        archive.addfile(member, _Zeros(member.size))
    path = tmp_path / "dataset_purchase.tgz"
    path.write_bytes(packed.getvalue())
    with pytest.raises(InvalidData, match="unpacks to more than 536,870,912 bytes"):
        load_purchases(path)


def test_a_fashion_mnist_file_above_the_size_limit_is_refused(tmp_path):
    for name in FILES:
        with gzip.open(tmp_path / f"{name}.gz", "wb", compresslevel=1) as stream:
            for _ in range(10):
                stream.write(bytes(8_000_000))
    with pytest.raises(InvalidData, match="unpacks to more than 67,108,864 bytes"):
        load_fashion_mnist(tmp_path)


class _Zeros(io.RawIOBase):
    """A file of ``size`` zero bytes."""

    def __init__(self, size):
        self.left = size

    def read(self, size=-1):
        size = self.left if size < 0 else min(size, self.left)
        self.left -= size
        return bytes(size)
