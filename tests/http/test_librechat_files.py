"""LibreChat's API: files of sessions, their owners, names and sizes."""

import errno
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from proofbox.service.access.authenticator import Authenticator
from proofbox.service.api.app import create_app
from proofbox.service.facades.librechat.access import Access
from proofbox.service.facades.librechat.errors import RefusedError
from proofbox.service.facades.librechat.owners import parse_owner
from proofbox.service.facades.librechat.routes import LibreChat
from proofbox.service.facades.librechat.uploads import pieces_of, read_form
from tests.http.conftest import ATTACHMENT_BYTES_MAX, PRINCIPAL

URL = "/librechat/v1"
ID = "A" * 21


@pytest.fixture
def librechat(services) -> LibreChat:
    return LibreChat(services, Access(Authenticator(PRINCIPAL), None))


@pytest.fixture
async def client(services, librechat):
    transport = httpx.ASGITransport(create_app(services, facades=[librechat]), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as client:
        yield client


@pytest.fixture
def upload(client):
    """Uploads one file and returns its session and id."""

    async def upload(name: str, content: bytes = b"a,b\n1,2\n", **fields: str) -> tuple[str, str]:
        response = await client.post(f"{URL}/upload", data=fields, files={"file": (name, content)})
        assert response.status_code == 200, response.text
        answer = response.json()
        assert answer["message"] == "success"
        [file] = answer["files"]
        assert set(file) == {"fileId", "filename"}
        return answer["storage_session_id"], file["fileId"]

    return upload


@pytest.fixture
def batch(client):
    async def upload(files: list[tuple[str, bytes]], **fields: str) -> httpx.Response:
        parts = [("file", (name, content)) for name, content in files]
        return await client.post(f"{URL}/upload/batch", data=fields, files=parts)

    return upload


def form(*parts: bytes, boundary: bytes = b"xyz") -> dict[str, Any]:
    """The body of a form, written by hand."""
    content = b"".join(b"--" + boundary + b"\r\n" + part + b"\r\n" for part in parts)
    return {
        "content": content + b"--" + boundary + b"--\r\n",
        "headers": {"Content-Type": f"multipart/form-data; boundary={boundary.decode()}"},
    }


def part(disposition: bytes, content: bytes = b"x") -> bytes:
    return b"Content-Disposition: form-data; " + disposition + b"\r\n\r\n" + content


async def test_what_was_uploaded_is_listed_described_and_downloaded(client, upload):
    session, file = await upload("report.csv", kind="user", id="u1")
    assert len(session) == len(file) == 21
    described = (await client.get(f"{URL}/sessions/{session}/objects/{file}")).json()
    assert described["lastModified"].endswith("Z")
    digest = described["etag"]
    assert described == {
        "name": f"{session}/{file}.csv",
        "originalFilename": "report.csv",
        "size": 8,
        "lastModified": described["lastModified"],
        "etag": digest,
        "contentType": "text/csv",
        "readOnly": False,
    }
    downloaded = await client.get(f"{URL}/download/{session}/{file}?kind=user&id=u1")
    assert downloaded.content == b"a,b\n1,2\n"
    assert downloaded.headers["Content-Type"].startswith("text/csv")
    assert downloaded.headers["Content-Disposition"].endswith("filename*=UTF-8''report.csv")
    assert "X-Read-Only" not in downloaded.headers
    part = await client.get(f"{URL}/download/{session}/{file}", headers={"Range": "bytes=0-2"})
    assert (part.status_code, part.content) == (206, b"a,b")


async def test_a_listing_has_as_much_of_each_file_as_is_asked_for(client, upload):
    session, file = await upload("report.csv")

    async def listed(detail: str | None) -> list[Any]:
        params = {} if detail is None else {"detail": detail}
        return (await client.get(f"{URL}/files/{session}", params=params)).json()

    name = f"{session}/{file}.csv"
    assert await listed(None) == await listed("simple") == [name]
    [summary] = await listed("summary")
    assert set(summary) == {"name", "size", "lastModified", "etag"}
    [full] = await listed("full")
    assert full["metadata"] == {"content-type": "text/csv", "original-filename": "report.csv"}
    assert full["contentType"] == "text/csv"
    [normalized] = await listed("normalized")
    del normalized["lastModified"]
    assert normalized == {
        "id": file,
        "name": "report.csv",
        "storage_session_id": session,
        "size": 8,
        "contentType": "text/csv",
    }
    assert (await client.get(f"{URL}/files/{session}?detail=all")).status_code == 400


@pytest.mark.parametrize(
    "name",
    [
        "a b.csv",
        "größe 🎉.txt",
        "pptx/editing.md",
        "a/b/c/d.txt",
        "no extension",
        ".hidden",
        "x" * 251 + ".txt",
        "%41.txt",
    ],
)
async def test_names_stay_as_they_are(client, upload, name):
    session, file = await upload(name)
    described = (await client.get(f"{URL}/sessions/{session}/objects/{file}")).json()
    assert described["originalFilename"] == name
    assert (await client.get(f"{URL}/download/{session}/{file}")).content == b"a,b\n1,2\n"


@pytest.mark.parametrize(
    "name",
    [
        b"../etc/passwd",
        b"/etc/passwd",
        b"a/../b",
        b"a//b",
        b"./",
        b"..",
        b"a\x00b",
        b"a\\\\b",
        b"folder/",
        b"a\tb",
        b"x" * 256,
        b"/".join([b"x" * 200] * 6),
    ],
)
@pytest.mark.shares_fixtures
async def test_a_name_that_leads_elsewhere_is_refused(client, name):
    body = form(part(b'name="file"; filename="' + name + b'"'))
    response = await client.post(f"{URL}/upload", **body)
    assert response.status_code == 400
    assert response.json()["error"].startswith(("filename:", "body:")), response.text


async def test_an_empty_file_is_a_file(client, upload):
    session, file = await upload("empty.txt", b"")
    downloaded = await client.get(f"{URL}/download/{session}/{file}")
    assert (downloaded.status_code, downloaded.content) == (200, b"")


async def test_bytes_come_back_as_they_were(client, upload):
    content = bytes(range(256)) * 8_000 + b"\r\n--xyz--\r\n"
    session, file = await upload("data.bin", content)
    assert (await client.get(f"{URL}/download/{session}/{file}")).content == content


async def test_a_file_above_the_limit_is_refused_as_too_large(client, batch):
    large = b"x" * (ATTACHMENT_BYTES_MAX + 1)
    response = await client.post(f"{URL}/upload", files={"file": ("large.bin", large)})
    assert (response.status_code, response.json()["error"]) == (413, "body_too_large")
    partly = (await batch([("large.bin", large), ("small.txt", b"x")])).json()
    assert (partly["message"], partly["succeeded"], partly["failed"]) == ("partial_success", 1, 1)
    assert response.headers["Connection"] == "close"
    endless = await client.post(f"{URL}/upload", files={"file": ("l", large + b"x" * 2 * 1024 * 1024)})
    assert endless.status_code == 413


async def test_files_of_a_batch_share_a_session_and_may_have_folders(client, batch):
    answer = (
        await batch([("s/a.md", b"1"), ("s/b.md", b"2"), ("../c", b"3")], kind="skill", id="s1", version="2")
    ).json()
    assert answer["message"] == "partial_success"
    assert (answer["succeeded"], answer["failed"]) == (2, 1)
    good, refused = answer["files"][:2], answer["files"][2]
    assert [(file["status"], file["filename"]) for file in good] == [("success", "s/a.md"), ("success", "s/b.md")]
    assert (refused["status"], refused["filename"]) == ("error", "../c")
    assert "'..'" in refused["error"]
    owner = {"kind": "skill", "id": "s1", "version": "2"}
    listed = await client.get(
        f"{URL}/files/{answer['storage_session_id']}", params={**owner, "detail": "normalized"}
    )
    assert [(file["id"], file["name"]) for file in listed.json()] == [(f["fileId"], f["filename"]) for f in good]


async def test_a_batch_of_nothing_or_of_refused_files_alone_is_a_bad_request(client, batch):
    refused = await batch([("../a", b""), ("", b"x")])
    assert refused.status_code == 400
    empty = await client.post(f"{URL}/upload/batch", **form(part(b'name="kind"', b"user")))
    assert (empty.status_code, empty.json()) == (400, {"error": "No files provided"})


async def test_two_files_of_one_name_are_not_one_file(client, batch):
    assert (await batch([("é.txt", b"1"), ("e\u0301.txt", b"2")])).json()["failed"] == 1
    both = [("file", ("a.txt", b"1")), ("file", ("./a.txt", b"2"))]
    assert (await client.post(f"{URL}/upload", files=both)).status_code == 400
    answer = (await batch([("a.txt", b"1"), ("a.txt", b"2")])).json()
    assert [file["status"] for file in answer["files"]] == ["success", "error"]
    file = answer["files"][0]["fileId"]
    assert (await client.get(f"{URL}/download/{answer['storage_session_id']}/{file}")).content == b"1"


async def test_files_beyond_two_hundred_are_left_out_and_that_is_shown(batch):
    answer = (await batch([(f"f{number}.txt", b"x") for number in range(203)])).json()
    assert answer["filesLimitReached"] is True
    assert answer["maxFiles"] == answer["succeeded"] == len(answer["files"]) == 200


async def test_an_endless_number_of_parts_ends_the_request(client, batch):
    assert (await batch([(f"f{number}", b"") for number in range(2_500)])).status_code == 400
    fields = [part(b'name="f%d"' % number) for number in range(60)]
    assert (await client.post(f"{URL}/upload", **form(*fields))).status_code == 400
    long_field = form(part(b'name="kind"', b"u" * 20_000))
    assert (await client.post(f"{URL}/upload", **long_field)).status_code == 400


async def test_files_of_a_form_are_in_the_staging_folder_and_closed(stores, client):
    """However small they are: neither in memory nor in the system's folder for temporary files."""
    files = [("file", (f"{name}.txt", b"x" * 10)) for name in ("a", "b")] + [("file", ("empty.txt", b""))]
    request = client.build_request("POST", f"{URL}/upload", files=files)
    scope = {
        "type": "http",
        "method": "POST",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
    }
    body = await request.aread()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    def open_files() -> set[str]:
        links = [link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
        return {link.name for link in links if link.name.startswith("upload-")}

    async with read_form(Request(scope, receive), stores.artifacts) as read:
        assert [file.filename for file in read.files] == ["a.txt", "b.txt", "empty.txt"]
        folders = {file._path.parent for file in read.files}
        [folder] = folders
        assert sorted(file.name for file in folder.iterdir()) == ["upload-0", "upload-1"]
        assert open_files() == set()
        assert [b"".join([piece async for piece in pieces_of(file)]) for file in read.files] == [b"x" * 10] * 2 + [
            b""
        ]
    assert not folder.exists()
    assert open_files() == set()


@pytest.mark.parametrize(("error", "status"), [(errno.ENOSPC, 507), (errno.EIO, 503)])
async def test_a_staging_folder_that_cannot_be_written_is_an_error_of_the_store(services, error, status):
    class Full:
        """The store of the service, whose staging folder is no folder."""

        def __getattr__(self, name: str) -> Any:
            return getattr(services.artifacts, name)

        @asynccontextmanager
        async def staging(self) -> AsyncIterator[Any]:
            yield FullFolder(error)

    changed = replace(services, artifacts=Full())
    facade = LibreChat(changed, Access(Authenticator(PRINCIPAL), None))
    transport = httpx.ASGITransport(create_app(changed, facades=[facade]), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as client:
        response = await client.post(f"{URL}/upload", files={"file": ("a.txt", b"x")})
    assert response.status_code == status
    assert response.json()["error"] == ("store_full" if status == 507 else "store_failed")


class FullFolder:
    """A folder in which no file can be created."""

    def __init__(self, error: int) -> None:
        self._error = error

    def __truediv__(self, _name: str) -> "FullFolder":
        return self

    def open(self, *_args: Any, **_options: Any) -> Any:
        raise OSError(self._error, os.strerror(self._error))


@pytest.mark.parametrize(
    "body",
    [
        {"json": {"file": "x"}},
        {"content": b"x", "headers": {"Content-Type": "multipart/form-data"}},
        {"content": b"garbage", "headers": {"Content-Type": "multipart/form-data; boundary=xyz"}},
        {"content": b"--xyz\r\nContent-Disp", "headers": {"Content-Type": "multipart/form-data; boundary=xyz"}},
        {"content": b"", "headers": {"Content-Type": "multipart/form-data; boundary=xyz"}},
        form(b"Content-Disposition: form-data; filename=a\r\n\r\nx"),
        form(b"X-Other: 1\r\n\r\nx"),
    ],
)
async def test_a_body_that_is_no_form_is_a_bad_request(client, body):
    response = await client.post(f"{URL}/upload", **body)
    assert response.status_code == 400
    assert response.json()["error"]


async def test_the_media_type_is_the_one_of_the_part_or_of_the_name(client):
    for given, expected in (("text/x-log; charset=utf-8", "text/x-log"), ("application/octet-stream", "text/csv")):
        answer = (await client.post(f"{URL}/upload", files={"file": ("a.csv", b"x", given)})).json()
        path = f"{answer['storage_session_id']}/objects/{answer['files'][0]['fileId']}"
        assert (await client.get(f"{URL}/sessions/{path}")).json()["contentType"] == expected


async def test_files_of_an_agent_or_skill_are_found_by_their_owner_alone(client, upload):
    owners = [
        {"kind": "user"},
        {"kind": "agent", "id": "agent_1"},
        {"kind": "agent", "id": "agent_2"},
        {"kind": "skill", "id": "agent_1", "version": "1"},
        {"kind": "skill", "id": "agent_1", "version": "2"},
    ]
    for owner in owners:
        session, file = await upload("a.txt", **owner)
        for other in owners:
            status = 200 if other == owner else 404
            for path in (f"download/{session}/{file}", f"sessions/{session}/objects/{file}"):
                assert (await client.get(f"{URL}/{path}", params=other)).status_code == status, (owner, other)
            listed = (await client.get(f"{URL}/files/{session}", params=other)).json()
            assert bool(listed) == (other == owner)


async def test_the_older_field_of_an_agent_names_it_too(client, upload):
    session, file = await upload("a.txt", entity_id="agent_1")
    for owner in ({"entity_id": "agent_1"}, {"kind": "agent", "id": "agent_1"}):
        assert (await client.get(f"{URL}/download/{session}/{file}", params=owner)).status_code == 200
    assert (await client.get(f"{URL}/download/{session}/{file}")).status_code == 404


@pytest.mark.parametrize(
    "owner",
    [
        {"kind": "group"},
        {"kind": "agent"},
        {"kind": "skill", "id": "s"},
        {"kind": "skill", "id": "s", "version": "new"},
        {"kind": "skill", "id": "s", "version": "-1"},
        {"kind": "agent", "id": "a", "version": "1"},
        {"kind": "agent", "id": "x" * 300},
        {"kind": "agent", "id": "a\0b"},
        {"kind": "skill", "id": "a\n", "version": "1"},
    ],
)
@pytest.mark.shares_fixtures
async def test_an_owner_that_is_none_is_a_bad_request(client, owner):
    assert (await client.get(f"{URL}/files/{ID}", params=owner)).status_code == 400
    response = await client.post(f"{URL}/upload", data=owner, files={"file": ("a.txt", b"x")})
    assert response.status_code == 400
    assert response.json()["error"]


@pytest.mark.parametrize("charset", ["unicode_escape", "raw_unicode_escape", "utf-7", "utf-16", "rot13", "none"])
async def test_a_form_is_utf8_whatever_charset_it_names(client, charset):
    body = form(
        part(b'name="kind"', b"agent"),
        part(b'name="id"', b"\\ud800"),
        part(b'name="file"; filename="' + "ü".encode() + b'.txt"'),
    )
    body["headers"]["Content-Type"] += f"; charset={charset}"
    response = await client.post(f"{URL}/upload", **body)
    assert response.status_code == 200, response.text
    assert response.json()["files"][0]["filename"] == "ü.txt"
    owner = {"kind": "agent", "id": "\\ud800"}
    listed = await client.get(f"{URL}/files/{response.json()['storage_session_id']}", params=owner)
    assert len(listed.json()) == 1


@pytest.mark.parametrize("wrong", ["\ud800", "a\0", "\x7f"])
def test_an_id_that_a_store_cannot_have_is_refused(wrong):
    with pytest.raises(RefusedError, match=r"^id: "):
        parse_owner("agent", wrong, None)


async def test_a_read_only_file_is_marked(client, upload):
    session, file = await upload("SKILL.md", read_only="true")
    assert (await client.get(f"{URL}/sessions/{session}/objects/{file}")).json()["readOnly"] is True
    assert (await client.get(f"{URL}/download/{session}/{file}")).headers["X-Read-Only"] == "true"
    [listed] = (await client.get(f"{URL}/files/{session}?detail=normalized")).json()
    assert listed["read_only"] is True


async def test_a_deleted_file_is_gone(client, upload, stores):
    session, file = await upload("a.txt")
    stored = await stores.artifacts.stored_bytes("acme", "sales")
    assert (await client.delete(f"{URL}/files/{session}/{file}")).status_code == 200
    assert (await client.get(f"{URL}/files/{session}")).json() == []
    assert await stores.artifacts.stored_bytes("acme", "sales") == stored - 8
    for method, path in (
        ("GET", f"download/{session}/{file}"),
        ("GET", f"sessions/{session}/objects/{file}"),
        ("DELETE", f"files/{session}/{file}"),
    ):
        response = await client.request(method, f"{URL}/{path}")
        assert response.status_code == 404
        assert response.json()["error"] == "File not found"
        assert response.json()["details"]


@pytest.mark.parametrize(
    "wrong", ["short", "A" * 20, "A" * 22, "A" * 20 + ".", "A" * 20 + "%2F", "..%2F" + "A" * 18]
)
async def test_an_id_of_another_form_is_a_bad_request(client, wrong):
    for path in (
        f"download/{wrong}/{ID}",
        f"download/{ID}/{wrong}",
        f"files/{wrong}",
        f"sessions/{ID}/objects/{wrong}",
    ):
        assert (await client.get(f"{URL}/{path}")).status_code in {400, 404}
    response = await client.delete(f"{URL}/files/{ID}/{wrong}")
    assert response.status_code in {400, 404}
    assert "error" in response.json()


async def test_what_no_route_takes_is_answered_in_the_form_of_this_api(client):
    for method, path in (
        ("GET", "/"),
        ("GET", "/exec"),
        ("POST", "/files/x/y/z"),
        ("PUT", "/upload"),
    ):
        response = await client.request(method, URL + path)
        assert response.status_code == 404
        assert response.json()["error"] == "not_found"


async def test_the_facade_is_no_part_of_the_documented_api_and_off_without_it(services, client):
    paths = json.loads((await client.get("/openapi.json")).text)["paths"]
    assert not [path for path in paths if "librechat" in path]
    transport = httpx.ASGITransport(create_app(services), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as without:
        assert (await without.get(f"{URL}/health")).status_code == 404


async def test_files_survive_a_new_process(services, upload):
    session, file = await upload("a.txt", b"kept")
    again = create_app(services, facades=[LibreChat(services, Access(Authenticator(PRINCIPAL), None))])
    transport = httpx.ASGITransport(again, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as client:
        assert (await client.get(f"{URL}/download/{session}/{file}")).content == b"kept"


@pytest.mark.parametrize("charset", ["punycode", "idna", "utf-7", "utf-16", "rot13", "no-such", "\\x00"])
async def test_a_form_is_utf_8_whatever_its_charset(client, charset):
    sent = form(part('name="file"; filename="ä€.csv"'.encode()), part(b'name="kind"', b"user"))
    sent["headers"]["Content-Type"] += f"; charset={charset}"
    response = await client.post(f"{URL}/upload", **sent)
    assert response.status_code == 200, response.text
    assert response.json()["files"][0]["filename"] == "ä€.csv"
