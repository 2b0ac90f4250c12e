"""The name of the sandbox image follows from its files, for the service and for the script that builds it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from proofbox.service.app.own_image import FOLDER, content_hash, own_image
from proofbox.service.app.settings import Settings

REPOSITORY_FOLDER = Path(__file__).parents[3] / "sandbox_images"


@pytest.fixture
def copied(tmp_path):
    """The folder of the image, with what a working checkout has beside the files of the repository."""
    folder = tmp_path / "sandbox_images"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__", ".*_cache"))
    for cache in ("runner/__pycache__/frames.cpython-311.pyc", "render/.mypy_cache/a.json", "inspector/left.pyc"):
        (folder / cache).parent.mkdir(exist_ok=True)
        (folder / cache).write_text("cache")
    return folder


def printed(folder):
    command = [folder / "build.sh", "--print-reference"]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"}
    ).stdout.strip()


def test_the_script_and_the_service_name_the_same_image():
    assert printed(REPOSITORY_FOLDER) == own_image()


def test_a_copy_has_the_same_image_whatever_caches_lie_in_it(copied):
    assert printed(copied) == own_image()
    assert content_hash(copied) == content_hash(FOLDER)


@pytest.mark.parametrize(
    "changed",
    [
        "Dockerfile",
        "requirements.txt",
        "skel/.config/matplotlib/matplotlibrc",
        "runner/frames.py",
        "fonts/new.conf",
    ],
)
def test_a_change_of_any_file_of_the_image_is_another_image(copied, changed):
    with (copied / changed).open("a") as file:
        file.write("# changed\n")
    assert printed(copied) != own_image()
    assert content_hash(copied)[:12] == printed(copied).split(":")[1]


def test_what_only_builds_the_image_changes_nothing(copied):
    with (copied / "engine.sh").open("a") as file:
        file.write("# changed\n")
    assert printed(copied) == own_image()


def test_a_named_image_is_used_in_place_of_the_own_one():
    assert Settings(image="registry.example.com/proofbox-sandbox:1").sandbox_image.startswith(
        "registry.example.com/"
    )
    assert Settings(image="").sandbox_image == own_image()
