"""``proofbox files`` against a service that answers from a script."""

import hashlib
from pathlib import Path

import pytest

from proofbox.cli import main
from proofbox.contracts.artifact_lists import ArtifactPage, ListedArtifact
from tests.support.client_answers import answer
from tests.support.scripted_service import Scripted, ScriptedService

CONTENT = b"1"
SHA = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def service(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    with ScriptedService(Scripted(body=CONTENT, headers={"ETag": f'"{SHA}"'})) as service:
        yield service


def get(service, *paths):
    return main(["files", "get", "c1", *paths, "--url", service.url, "--quiet"])


def test_two_files_of_one_name_are_refused_before_one_is_downloaded(service, capsys):
    assert get(service, "turn_1/files/a.csv", "turn_2/files/a.csv") == 2
    message = "fi:turn_1.files/a.csv and fi:turn_2.files/a.csv would both be saved as a.csv"
    assert message in capsys.readouterr().err
    assert service.requests == []


def test_a_file_that_is_named_twice_is_saved_once(service):
    assert get(service, "turn_1/files/a.csv", "fi:turn_1.files/a.csv") == 0
    assert (Path("a.csv").read_bytes(), len(service.requests)) == (CONTENT, 1)


def test_a_bare_name_may_begin_like_a_turn(service):
    listed = ListedArtifact(
        logical_path="fi:turn_1.files/turn_notes.csv",
        physical_path="turn_1/files/turn_notes.csv",
        turn_id="turn_1",
        version=1,
        mime="text/csv",
        size_bytes=1,
        sha256=SHA,
        visibility="external",
        description="",
        created="2026-07-04T00:00:00.000Z",
    )
    page = answer(ArtifactPage(artifacts=[listed], last=1, more=False))
    service.answers(page, Scripted(body=CONTENT, headers={"ETag": f'"{SHA}"'}))
    assert get(service, "turn_notes.csv") == 0
    assert Path("turn_notes.csv").read_bytes() == CONTENT
