"""Files of clients: downloads that resume, hashes, versions, saving, lists."""

import hashlib
import os
from pathlib import Path

import pytest

from proofbox.client import Client, DamagedDownloadError, NotFoundError, UnreachableError
from proofbox.contracts.artifact_lists import ArtifactPage, ListedArtifact
from proofbox.contracts.blocks import Block
from proofbox.contracts.conversations import ConversationPage, ListedConversation
from proofbox.contracts.timeline import TimelinePage
from tests.support.client_answers import SHA, answer, refusal, with_files
from tests.support.scripted_service import Scripted

CONTENT = bytes(range(256)) * 2_000
TARGET = "/v1/conversations/c1/artifacts/fi:turn_1.files/a.bin"


def tags(content: bytes = CONTENT, version: int = 3) -> dict[str, str]:
    return {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "Artifact-Version": str(version)}


def test_a_cut_download_is_resumed_where_it_ended(use, service) -> None:
    service.answers(
        Scripted(200, CONTENT, tags(), cut_at=100_000),
        refusal("store_failed", 503, retryable=True),
        Scripted(206, CONTENT[100_000:], tags(), cut_at=50_000),
        Scripted(206, CONTENT[150_000:], tags()),
    )
    assert use.read(service, "c1", "turn_1/files/a.bin") == CONTENT
    assert service.lines == [f"GET {TARGET}"] + [f"GET {TARGET}?version=3"] * 3
    ranges = [request.headers.get("range") for request in service.requests]
    assert ranges == [None, "bytes=100000-", "bytes=100000-", "bytes=150000-"]
    assert service.requests[1].headers["if-range"] == tags()["ETag"]


def test_what_has_no_ranges_is_read_again_without_repeating_bytes(use, service) -> None:
    service.answers(Scripted(200, CONTENT, tags(), cut_at=70_000), Scripted(200, CONTENT, tags()))
    assert use.read(service, "c1", "fi:turn_1.files/a.bin") == CONTENT


def test_a_download_that_is_cut_at_the_same_byte_each_time_ends_in_an_error(use, service) -> None:
    service.answers(*[Scripted(200, CONTENT, tags(), cut_at=70_000)] * 9, refusal("unknown_artifact", 404))
    with pytest.raises(UnreachableError, match="the connection was lost"):
        use.read(service, "c1", "fi:turn_1.files/a.bin", retries=2)
    assert len(service.requests) == 3


def test_another_version_meanwhile_is_an_error(use, service) -> None:
    service.answers(Scripted(200, CONTENT, tags(), cut_at=9_000), Scripted(200, b"other", tags(b"other")))
    with pytest.raises(DamagedDownloadError, match="another version replaced the file"):
        use.read(service, "c1", "fi:turn_1.files/a.bin")


def test_bytes_that_do_not_have_the_hash_are_an_error(use, service) -> None:
    service.answers(Scripted(200, b"X" + CONTENT[1:], tags()))
    with pytest.raises(DamagedDownloadError, match="512,000 bytes with another SHA-256 arrived"):
        use.read(service, "c1", "fi:turn_1.files/a.bin")


def test_a_missing_file_is_not_found(use, service) -> None:
    service.answers(refusal("unknown_artifact", 404))
    with pytest.raises(NotFoundError):
        use.read(service, "c1", "ar:turn_1.user.prompt")
    assert service.lines == ["GET /v1/conversations/c1/artifacts/ar:turn_1.user.prompt"]


def result_file(service, client, **fields):
    service.answers(answer(with_files("a.bin", **fields)))
    return client.run("1", conversation="c1").files[0]


def test_the_file_of_a_run_stays_the_one_of_the_run(service) -> None:
    """A later call has stored two more versions under the same name."""
    with Client(service.url) as client:
        file = result_file(service, client, sha256=hashlib.sha256(CONTENT).hexdigest())
        service.answers(
            Scripted(200, b"newer", tags(b"newer", 5)),
            Scripted(200, b"", tags(b"new", 4)),
            Scripted(200, b"", tags(CONTENT, 3)),
            Scripted(200, CONTENT, tags(CONTENT, 3)),
        )
        assert file.read() == CONTENT
    assert service.lines[1:] == [
        f"GET {TARGET}",
        f"HEAD {TARGET}?version=4",
        f"HEAD {TARGET}?version=3",
        f"GET {TARGET}?version=3",
    ]


def test_a_file_whose_version_is_gone_is_an_error(service) -> None:
    with Client(service.url) as client:
        file = result_file(service, client)
        service.answers(Scripted(200, b"newer", tags(b"newer", 1)))
        with pytest.raises(DamagedDownloadError, match=f"no stored version has the SHA-256 {SHA}"):
            file.read()


def test_saving_replaces_the_target_only_with_the_whole_file(service, tmp_path: Path) -> None:
    target = tmp_path / "new" / "a.bin"
    service.answers(Scripted(200, CONTENT, tags()), Scripted(200, CONTENT[1:], tags()))
    previous = os.umask(0o027)
    try:
        with Client(service.url, retries=0) as client:
            download = client.download("c1", "turn_1/files/sub/a.bin")
            assert (download.name, download.save(target)) == ("sub/a.bin", target)
            with pytest.raises(DamagedDownloadError):
                download.save(target)
            service.answers(Scripted(200, CONTENT, tags()))
            assert download.save(tmp_path) == tmp_path / "a.bin"
    finally:
        os.umask(previous)
    assert target.read_bytes() == CONTENT
    assert oct(target.stat().st_mode & 0o777) == "0o640"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.bin", "a.bin", "new"]


def listed(name: str) -> ListedArtifact:
    return ListedArtifact(
        logical_path=f"fi:turn_1.files/{name}",
        physical_path=f"turn_1/files/{name}",
        turn_id="turn_1",
        version=2,
        mime="text/plain",
        size_bytes=3,
        sha256=SHA,
        visibility="external",
        description="",
        created="2026-07-04T13:18:00.000Z",
    )


def test_all_pages_of_a_list_are_read(use, service) -> None:
    service.answers(
        answer(ArtifactPage(artifacts=[listed("a"), listed("b")], last=7, more=True)),
        answer(ArtifactPage(artifacts=[listed("c")], last=9, more=False)),
    )
    files = use(service, "files", "c1")
    assert [(file.name, file.version, file.size_bytes) for file in files] == [("a", 2, 3), ("b", 2, 3), ("c", 2, 3)]
    assert [line.partition("after=")[2] for line in service.lines] == ["0&limit=1000", "7&limit=1000"]


def test_all_pages_of_conversations_are_read(use, service) -> None:
    rows = [
        ListedConversation(
            conversation_id=f"c{number}", created_at="now", last_used_at="now", turns=1, files=2, size_bytes=3
        )
        for number in range(3)
    ]
    service.answers(
        answer(ConversationPage(conversations=rows[:2], next="a b&c")),
        answer(ConversationPage(conversations=rows[2:], next=None)),
    )
    assert use(service, "conversations") == rows
    assert service.lines == ["GET /v1/conversations?limit=200", "GET /v1/conversations?after=a+b%26c&limit=200"]


def test_blocks_and_text_of_a_timeline_are_read(use, service) -> None:
    block = Block(type="user.prompt", author="user", turn_id="turn_1", ts="", mime="text/plain", path="", text="a")
    service.answers(
        answer(TimelinePage(blocks=[block], last=1, more=True)),
        answer(TimelinePage(blocks=[block], last=2, more=False)),
        Scripted(200, "ä".encode()),
    )
    assert [each.text for each in use(service, "timeline", "c1")] == ["a", "a"]
    assert use(service, "timeline_text", "c1", after=4) == "ä"
    assert service.lines[2] == "GET /v1/conversations/c1/timeline?view=rendered&after=4"


def test_a_link_is_the_location_of_the_answer(use, service) -> None:
    service.answers(Scripted(303, b"", {"Location": "http://h/v1/links/1?signature=x"}))
    assert use(service, "link", "c1", "turn_1/files/a.bin") == "http://h/v1/links/1?signature=x"
    assert service.lines == [f"GET {TARGET}?link=1"]


def test_files_and_conversations_are_deleted(use, service) -> None:
    service.answers(Scripted(204))
    use(service, "delete_file", "c1", "turn_1/files/a.bin")
    use(service, "delete_conversation", "c1")
    assert service.lines == [f"DELETE {TARGET}", "DELETE /v1/conversations/c1"]


DELETIONS = [
    ("delete_file", ("c1", "turn_1/files/a.bin"), "unknown_artifact"),
    ("delete_conversation", ("c1",), "unknown_conversation"),
]


@pytest.mark.parametrize(("method", "args", "code"), DELETIONS)
@pytest.mark.parametrize(
    "lost",
    [Scripted(request_cut_at=0), Scripted(504), refusal("store_failed", 503, retryable=True)],
    ids=["lost", "gateway", "store"],
)
def test_a_deletion_whose_answer_was_lost_is_repeated_and_is_done(use, service, method, args, code, lost) -> None:
    service.answers(lost, refusal(code, 404))
    assert use(service, method, *args) is None
    assert len(service.requests) == 2


@pytest.mark.parametrize(("method", "args", "code"), DELETIONS)
def test_a_deletion_of_what_does_not_exist_is_an_error(use, service, method, args, code) -> None:
    service.answers(refusal("rate_limited", 429, retryable=True, retry_after="0"), refusal(code, 404))
    with pytest.raises(NotFoundError, match=code):
        use(service, method, *args)
    service.answers(Scripted(504), refusal("not_found", 404))
    with pytest.raises(NotFoundError, match="not_found"):
        use(service, method, *args)
    assert len(service.requests) == 4
