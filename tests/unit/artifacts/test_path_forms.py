"""What a path that a model gives to read or to hide something may mean."""

import pytest

from proofbox.contracts.paths import FilePath, UnsafePathError
from proofbox.service.artifacts.path_forms import possible_paths
from proofbox.service.react.hide import parse_hidden_paths

PLACES = ["", "./", "/out/", "/mnt/data/", "sandbox:/mnt/data/", "/mnt/user-data/outputs/", "$OUT_DIR/", "OUT_DIR/"]


@pytest.mark.parametrize("place", [*PLACES, "/mnt/user-data/uploads/"])
@pytest.mark.parametrize("physical", ["turn_1/files/x/a.txt", "turn_1/attachments/a.txt"])
def test_a_file_of_another_turn_is_that_file_behind_any_place(place, physical):
    path = FilePath.from_physical(physical)
    assert possible_paths(place + physical, "turn_2") == [path]
    assert parse_hidden_paths(place + physical, "turn_2") == [path.logical]


@pytest.mark.parametrize("place", PLACES)
def test_a_bare_path_is_the_file_of_the_turn_and_then_its_attachment(place):
    found = [path.physical for path in possible_paths(f"{place}a.txt", "turn_2")]
    assert found == ["turn_2/files/a.txt", "turn_2/attachments/a.txt"]


@pytest.mark.parametrize("place", ["/mnt/user-data/uploads/", "sandbox:/mnt/user-data/uploads/"])
def test_an_upload_is_the_attachment_and_then_the_file_of_the_turn(place):
    found = [path.physical for path in possible_paths(f"{place}a.txt", "turn_2")]
    assert found == ["turn_2/attachments/a.txt", "turn_2/files/a.txt"]


@pytest.mark.parametrize("text", ["/etc/passwd", "/out/turn_1/files/../a", "/mnt/user-data/uploads/../a", ""])
def test_what_is_no_path_is_refused(text):
    with pytest.raises(UnsafePathError):
        possible_paths(text, "turn_2")
