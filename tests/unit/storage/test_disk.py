"""The hash of a file."""

import hashlib
import os

import pytest

from proofbox.service.storage.artifacts.durable_files import sha256_of


@pytest.mark.parametrize("size", [0, 65_535, 65_536, 65_537, 300_000])
def test_the_hash_of_a_file_is_that_of_all_its_bytes(tmp_path, size):
    content = os.urandom(size)
    (tmp_path / "file").write_bytes(content)
    assert sha256_of(tmp_path / "file") == hashlib.sha256(content).hexdigest()
