"""``proofbox doctor`` and ``proofbox image`` against a real engine."""

import argparse
import json
import os
import subprocess
import sys

import pytest

from proofbox.cli import doctor, image
from proofbox.service.app.settings import Settings

pytestmark = pytest.mark.docker


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Runs a command on the engine docker, with a data folder of its own and a free port."""
    monkeypatch.setenv("PROOFBOX_ENGINE", "docker")
    monkeypatch.delenv("PROOFBOX_RUNTIME", raising=False)
    monkeypatch.setenv("PROOFBOX_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PROOFBOX_PORT", "0")

    def run(*arguments):
        parser = argparse.ArgumentParser()
        subparsers = parser.add_subparsers()
        doctor.add_parser(subparsers)
        image.add_parser(subparsers)
        args = parser.parse_args([*arguments, "--json"])
        status = args.run(args)
        return status, json.loads(capsys.readouterr().out)

    return run


def by_name(answer):
    return {check["name"]: check for check in answer["checks"]}


def test_a_machine_that_works_has_no_failed_check_and_a_program_ran(run, tmp_path):
    status, answer = run("doctor")
    found = by_name(answer)
    assert (status, answer["ok"]) == (0, True), answer
    assert found["image"]["detail"].startswith(f"{Settings().sandbox_image}: ")
    assert "'print(6 * 7)' printed 42 in a new container" in found["sandbox"]["detail"]
    assert "shared kernel" in found["isolation"]["detail"]
    assert not (tmp_path / "data").exists()


def test_an_image_that_the_engine_does_not_have_fails_with_the_command_that_builds_it(run, monkeypatch):
    monkeypatch.setenv("PROOFBOX_IMAGE", "proofbox-sandbox:never-built")
    status, answer = run("doctor")
    assert status == 1
    assert by_name(answer)["image"]["remedy"] == "run 'proofbox image build'"
    assert "sandbox" not in by_name(answer)
    status, shown = run("image", "show")
    assert (status, shown["is_present"], shown["reference"]) == (1, False, "proofbox-sandbox:never-built")


def test_a_runtime_that_the_engine_does_not_have_fails_before_a_sandbox_is_tried(run, monkeypatch):
    monkeypatch.setenv("PROOFBOX_RUNTIME", "none-of-these")
    status, answer = run("doctor")
    assert status == 1
    assert by_name(answer)["runtime"]["detail"] == "the engine has no runtime none-of-these"
    assert "sandbox" not in by_name(answer)


def test_a_sandbox_that_cannot_start_fails_with_the_words_of_the_engine(run, monkeypatch, tmp_path):
    profile = tmp_path / "profile.json"
    profile.write_text('{"defaultAction": "SCMP_ACT_NO_SUCH_ACTION", "syscalls": []}')
    monkeypatch.setenv("PROOFBOX_SECCOMP_PROFILE", str(profile))
    monkeypatch.setenv("PROOFBOX_IMPORT_ONCE", "off")
    status, answer = run("doctor")
    assert status == 1
    details = " ".join(check["detail"] for check in answer["checks"] if check["status"] != "ok")
    assert "SCMP_ACT_NO_SUCH_ACTION" in details, answer


def test_the_image_in_use_is_shown_with_its_id_and_size(run):
    status, shown = run("image", "show")
    assert (status, shown["is_present"]) == (0, True)
    assert shown["id"].startswith("sha256:")
    assert shown["size_bytes"] > 100_000_000


def test_an_image_that_is_there_is_built_in_a_moment_and_named_as_json(tmp_path):
    environment = {**os.environ, "PROOFBOX_DATA_DIR": str(tmp_path / "data")}
    command = [sys.executable, "-m", "proofbox.cli", "image", "build", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"image": Settings().sandbox_image}
    assert "up to date" in done.stderr
