"""``proofbox doctor`` finds what keeps the service from working, and names what to do about it."""

import argparse
import asyncio
import fcntl
import json
import os
import socket

import pytest

from proofbox.cli import doctor, image
from proofbox.service.app.own_image import own_image
from tests.support.package_index import package_index

NOBODY = "tcp://127.0.0.1:9"
pytestmark = pytest.mark.usefixtures("clean")


@pytest.fixture
def clean(monkeypatch, tmp_path):
    """An environment without settings, and with an engine that does not answer."""
    for name in [name for name in os.environ if name.upper().startswith("PROOFBOX_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DOCKER_HOST", NOBODY)
    monkeypatch.setenv("PROOFBOX_DATA_DIR", str(tmp_path / "data"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    monkeypatch.setenv("PROOFBOX_PORT", str(port))
    return monkeypatch


def parsed(*arguments):
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    doctor.add_parser(subparsers)
    image.add_parser(subparsers)
    return parser.parse_args(arguments)


def diagnosed(capsys):
    args = parsed("doctor", "--json")
    status = args.run(args)
    answer = json.loads(capsys.readouterr().out)
    assert status == (0 if answer["ok"] else 1)
    found = {}
    for check in answer["checks"]:
        found.setdefault(check["name"], check)
    return found


def test_an_engine_that_does_not_answer_fails_with_its_address_and_the_reason(capsys):
    found = diagnosed(capsys)
    assert found["engine"]["status"] == "fail"
    assert found["engine"]["detail"] == f"no engine answers at {NOBODY}: Connection refused"
    assert found["engine"]["remedy"].startswith(("one answers elsewhere: export DOCKER_HOST=", "start Docker"))
    assert {found[name]["status"] for name in ("python", "settings", "extras", "data", "port")} == {"ok"}
    assert "sandbox" not in found


def test_a_mistyped_setting_fails_with_the_nearest_one(clean, capsys):
    clean.setenv("PROOFBOX_POOLSIZE", "3")
    found = diagnosed(capsys)
    assert found["settings"] == {
        "name": "settings",
        "status": "fail",
        "detail": "environment: PROOFBOX_POOLSIZE: not a setting",
        "remedy": "did you mean PROOFBOX_POOL_SIZE?",
    }


def test_a_wrong_value_fails_with_its_name(clean, capsys):
    clean.setenv("PROOFBOX_WALL_S", "long")
    found = diagnosed(capsys)
    assert found["settings"]["status"] == "fail"
    assert found["settings"]["detail"].startswith("environment: PROOFBOX_WALL_S: must be a number")


def test_a_secret_is_not_printed(clean, capsys):
    clean.setenv("PROOFBOX_DATABASE_URL", "postgresql://proofbox:Hochwasser@db.example.org/proofbox")
    assert "Hochwasser" not in json.dumps(diagnosed(capsys))


def test_a_used_port_fails_unless_the_service_of_this_data_folder_uses_it(clean, capsys, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        clean.setenv("PROOFBOX_PORT", str(listener.getsockname()[1]))
        assert diagnosed(capsys)["port"]["status"] == "fail"
        (tmp_path / "data").mkdir()
        with (tmp_path / "data" / "lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            found = diagnosed(capsys)
    assert found["port"]["status"] == "ok"
    assert "in use by a service" in found["data"]["detail"]


def test_a_data_folder_below_a_file_fails(clean, capsys, tmp_path):
    (tmp_path / "file").write_text("")
    clean.setenv("PROOFBOX_DATA_DIR", str(tmp_path / "file" / "data"))
    assert diagnosed(capsys)["data"]["status"] == "fail"


def test_lines_for_people_have_the_status_first_and_the_remedy_below(capsys):
    args = parsed("doctor", "--no-trial")
    assert args.run(args) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok    python      CPython 3.")
    engine = next(number for number, line in enumerate(lines) if line.startswith("fail  engine      no engine"))
    assert lines[engine + 1].startswith("                  → ")


def test_the_name_of_the_image_is_printed_without_an_engine(clean, capsys):
    args = parsed("image", "name")
    assert (args.run(args), capsys.readouterr().out) == (0, f"{own_image()}\n")
    clean.setenv("PROOFBOX_IMAGE", "proofbox-sandbox:mine")
    assert (args.run(args), capsys.readouterr().out) == (0, "proofbox-sandbox:mine\n")


def test_a_setting_without_effect_is_a_warning(clean, capsys):
    clean.setenv("PROOFBOX_OCI_RUNTIME", "crun")
    found = diagnosed(capsys)["settings"]
    assert found["status"] == "warn"
    assert found["detail"].startswith("PROOFBOX_OCI_RUNTIME is for the engine oci")


async def test_a_package_index_is_asked_for_what_calls_may_have(clean, capsys):
    async with package_index() as index:
        clean.setenv("PROOFBOX_PACKAGE_INDEX", index.url)
        found = await asyncio.to_thread(diagnosed, capsys)
        assert (found["packages"]["status"], found["packages"]["detail"]) == ("ok", f"{index.url} answers")
        clean.setenv("PROOFBOX_PACKAGE_NAMES", '["scikit-image"]')
        found = await asyncio.to_thread(diagnosed, capsys)
        assert found["packages"]["status"] == "warn"
        assert "has no scikit-image" in found["packages"]["detail"]
        clean.setenv("PROOFBOX_PACKAGE_NAMES", '["numpy"]')
        assert (await asyncio.to_thread(diagnosed, capsys))["packages"]["status"] == "ok"
    found = await asyncio.to_thread(diagnosed, capsys)
    assert found["packages"]["status"] == "warn"
    assert "PROOFBOX_PACKAGE_INDEX" in found["packages"]["remedy"]
