"""The program that lists what an image has, run beside the service's own libraries."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[3] / "sandbox_images"


@pytest.fixture
def listed(tmp_path):
    """Runs the program over folders of commands and libraries; what it lists."""

    def run(*commands, libraries=()):
        folder = tmp_path / "bin"
        folder.mkdir()
        for name in commands:
            (folder / name).write_text("#!/bin/sh\n")
            (folder / name).chmod(0o755)
        (folder / "notes.txt").write_text("no program")
        (folder / "below").mkdir()
        for number, (name, version) in enumerate(libraries):
            info = tmp_path / "libraries" / f"x{number}-{version}.dist-info"
            info.mkdir(parents=True)
            facts = f"Name: {name}\nVersion: {version}\n" if name else ""
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\n{facts}")
        done = subprocess.run(
            [sys.executable, "-m", "inventory", "request.json"],
            cwd=PROGRAMS,
            env={
                "PATH": f"{tmp_path / 'nowhere'}{os.pathsep}{folder}",
                "PYTHONPATH": str(tmp_path / "libraries"),
            },
            capture_output=True,
            check=True,
        )
        return json.loads(done.stdout)

    return run


def test_commands_are_the_programs_on_the_path_and_languages_those_with_their_command(listed):
    found = listed("jq", "bash", "python3")
    assert found["commands"] == ["bash", "jq", "python3"]
    assert found["languages"] == ["bash", "python"]
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))


def test_a_language_is_listed_as_soon_as_its_command_is_there(listed):
    assert listed("node", "python3")["languages"] == ["node", "python"]


def test_libraries_have_the_names_of_package_indexes_and_the_version_that_is_imported(listed):
    found = listed(libraries=[("Zzz_Odd.Name", "1.0"), ("", "3"), ("pydantic", "0.0.1")])["libraries"]
    assert (found["zzz-odd-name"], found["pydantic"]) == ("1.0", "0.0.1")
    assert "" not in found
    assert list(found) == sorted(found)
