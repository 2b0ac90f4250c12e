"""Files that processes make together: one of them does, and all have the same content."""

import shutil
import threading

import pytest

from proofbox.service.app.sandbox_engine import service_name
from proofbox.service.app.settings import Settings
from proofbox.service.errors import StoreFailedError
from proofbox.service.storage.gateway.signing import MasterKeyFile
from proofbox.service.storage.link_keys import LinkKeyFile
from proofbox.service.storage.private_files import create_private_file, read_folder_id, replace_private_file


def make_together(work, count=8):
    """What a function returns in threads that begin at the same moment."""
    begin, results = threading.Barrier(count), []

    def run():
        begin.wait()
        results.append(work())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == count
    return results


def test_a_file_that_exists_stays_as_it_is_and_is_its_owners(tmp_path):
    path = tmp_path / "new" / "file"
    create_private_file(path, b"one")
    create_private_file(path, b"two")
    assert path.read_bytes() == b"one"
    replace_private_file(path, b"three")
    assert path.read_bytes() == b"three"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    "read", [lambda folder: MasterKeyFile(folder).read(), lambda folder: LinkKeyFile(folder).in_use()]
)
def test_processes_that_start_together_have_one_key(tmp_path, read):
    for number in range(20):
        keys = make_together(lambda folder=tmp_path / str(number): read(folder))
        assert all(key == keys[0] for key in keys)


def test_a_folder_has_an_id_of_its_own_that_stays(tmp_path):
    ids = {read_folder_id(tmp_path / name) for name in "ab"} | {read_folder_id(tmp_path / name) for name in "ab"}
    assert len(ids) == 2


def test_a_damaged_id_is_refused_with_the_remedy(tmp_path):
    (tmp_path / "service-id").write_bytes(b"\xff")
    with pytest.raises(StoreFailedError, match="remove its file service-id"):
        read_folder_id(tmp_path)


def test_services_whose_folders_have_one_path_in_containers_have_names_of_their_own_on_the_engine(tmp_path):
    """Two containers: one path, and another folder behind it each time."""
    mounted, names = tmp_path / "data", []
    for container in ("a", "b"):
        names.append(service_name(Settings(data_dir=mounted)))
        mounted.rename(tmp_path / container)
    assert len(set(names)) == 2
    (tmp_path / "a").rename(mounted)
    assert service_name(Settings(data_dir=mounted)) == names[0]
    assert service_name(Settings(data_dir=mounted, service_name="mine")) == "mine"


def test_a_copied_folder_has_another_name_on_the_engine(tmp_path):
    name = service_name(Settings(data_dir=tmp_path / "a"))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert service_name(Settings(data_dir=tmp_path / "b")) != name
    assert service_name(Settings(data_dir=tmp_path / "a")) == name
