"""What clients send, byte for byte, and what they make of the answers."""

import io
import json
import logging
from pathlib import Path

import pytest

from proofbox.client import ArgumentError, CallFailedError, Client, UnexpectedResponseError, UnreachableError
from proofbox.contracts.tool_call_request import Limits
from tests.support.client_answers import answer, attachment, response, with_files
from tests.support.scripted_service import Scripted


def test_a_run_stores_its_files_and_sends_its_code_unchanged(use, service, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"\0\xff" * 1000)
    service.answers(attachment(), attachment(), attachment(), answer(with_files("a.txt", "sub/b.txt")))
    code = "\tprint('ünï')\r\n  # end  "
    files = {"data.bin": tmp_path / "data.bin", "text.csv": "ä,b\n", "open.txt": io.BytesIO(b"abc")}
    result = use(service, "run", code, files=files, promises=["a.txt", "*.png"], conversation="c1")
    base = "/v1/conversations/c1/turns/turn_1/attachments"
    assert service.lines == [
        f"PUT {base}/data.bin",
        f"PUT {base}/text.csv",
        f"PUT {base}/open.txt",
        "POST /v1/tool-calls",
    ]
    assert [request.body for request in service.requests[:3]] == [b"\0\xff" * 1000, "ä,b\n".encode(), b"abc"]
    assert [request.headers["content-length"] for request in service.requests[:3]] == ["2000", "5", "3"]
    sent = service.requests[3].json
    assert sent.pop("tool_call_id") == result.call_id
    assert sent == {
        "tool_id": "exec_tools.execute_code_python",
        "conversation_id": "c1",
        "turn_id": "turn_1",
        "params": {
            "contract": [
                {"description": "a.txt", "filename": "a.txt"},
                {"description": "*.png", "glob": "*.png"},
            ]
        },
        "code": code,
    }
    assert (result.ok, result.stdout, result.stderr, result.output) == (True, "out", "err", "outerr")
    assert [file.name for file in result.files] == ["a.txt", "sub/b.txt"]
    assert result.file("sub/b.txt").path == "fi:turn_1.files/sub/b.txt"
    with pytest.raises(KeyError, match=r"no file 'c\.txt'; the call has: a\.txt, sub/b\.txt"):
        result.file("c.txt")


def test_options_of_a_run_are_parameters_of_its_tool(use, service) -> None:
    service.answers(answer())
    options = {
        "stdin": "1\n",
        "args": ("--a",),
        "env": {"A": "b"},
        "cwd": "work",
        "timeout_s": 5,
        "prog_name": None,
    }
    use(
        service, "run", "ls", language="bash", params={"workspace": "full"}, limits=Limits(pids=9), call_id="t1",
        turn="turn_7", notes="a note", **options,
    )  # fmt: skip
    sent = service.requests[0].json
    assert sent["tool_id"] == "exec_tools.execute_code_bash"
    assert sent["params"] == {
        "explore": True, "timeout_s": 5, "stdin": "1\n", "args": ["--a"], "env": {"A": "b"}, "cwd": "work",
        "workspace": "full",
    }  # fmt: skip
    assert (sent["limits"], sent["tool_call_id"], sent["turn_id"]) == ({"pids": 9}, "t1", "turn_7")
    assert (sent["notes"], sent["conversation_id"][:5]) == ("a note", "conv_")


@pytest.mark.parametrize("workspace", ["full", "read", None])
def test_a_run_can_share_the_workspace_of_its_conversation(use, service, workspace) -> None:
    service.answers(answer())
    use(service, "run", "1", conversation="c1", workspace=workspace)
    shared = {} if workspace is None else {"workspace": workspace}
    assert service.requests[0].json["params"] == {"explore": True, **shared}


def test_a_call_id_alone_is_the_same_call_in_every_process(use, service) -> None:
    service.answers(answer())
    for call_id in ("t1", "t1", "t2", None, None):
        use(service, "run", "1", call_id=call_id)
    bodies = [request.body for request in service.requests]
    conversations = [request.json["conversation_id"] for request in service.requests]
    assert (bodies[0], len(set(conversations))) == (bodies[1], 4)
    assert conversations[0] == "conv_628b49d96dcde97a430dd4f597705899"


def test_code_of_a_file_has_its_language_name_and_line_ends(use, service, tmp_path: Path) -> None:
    service.answers(answer())
    (tmp_path / "job.js").write_bytes(b"a\r\nb\n")
    use(service, "run", tmp_path / "job.js")
    sent = service.requests[0].json
    assert (sent["tool_id"], sent["code"]) == ("exec_tools.execute_code_node", "a\r\nb\n")
    assert sent["params"] == {"explore": True, "prog_name": "job"}


def test_a_document_is_rendered_by_the_extension_of_its_output(use, service, tmp_path: Path) -> None:
    service.answers(answer(with_files("out.pdf")))
    (tmp_path / "page.html").write_text("<h1>A</h1>")
    result = use(service, "render", tmp_path / "page.html", "out.pdf", toc=True, turn="turn_2", title=None)
    use(service, "render", "# A", "deck.pptx", format="markdown", files={"img/a.png": b"abc"}, turn="turn_3")
    first, second = (request.json for request in service.requests)
    assert first["params"] == {"path": "out.pdf", "content": "<h1>A</h1>", "format": "html", "toc": True}
    assert (first["tool_id"], first["turn_id"]) == ("rendering_tools.write_pdf", "turn_2")
    assert second["params"] == {"path": "deck.pptx", "content": "# A", "format": "markdown"}
    assert second["assets"] == [{"physical_path": "turn_3/files/img/a.png", "base64": "YWJj"}]
    assert result.files[0].name == "out.pdf"


def test_any_tool_is_called_with_its_parameters(use, service) -> None:
    service.answers(answer(response(ret={"a": 1})))
    found = use(service, "call", "react.read", {"paths": ["fi:turn_1.files/a"]}, conversation="c1")
    assert found.ret == {"a": 1}
    assert service.requests[0].json["params"] == {"paths": ["fi:turn_1.files/a"]}


def test_names_are_percent_encoded_below_the_prefix_of_the_url(use, service) -> None:
    service.answers(attachment())
    use(f"{service.url}/some/prefix/", "upload", "c:1", "ü ?#%.csv", b"1", turn="turn_a.b", media_type="text/csv")
    request = service.requests[0]
    assert request.line == (
        "PUT /some/prefix/v1/conversations/c:1/turns/turn_a.b/attachments/%C3%BC%20%3F%23%25.csv"
    )
    assert request.headers["content-type"] == "text/csv"


def test_a_stream_without_a_size_is_sent_in_chunks(use, service) -> None:
    service.answers(attachment())

    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.left = 3

        def readable(self) -> bool:
            return True

        def readinto(self, buffer) -> int:
            self.left -= 1
            count = 5 if self.left >= 0 else 0
            buffer[:count] = b"12345"[:count]
            return count

    use(service, "upload", "c1", "a.bin", Pipe())
    request = service.requests[0]
    assert request.headers["transfer-encoding"] == "chunked"
    assert request.body == b"5\r\n12345\r\n" * 3 + b"0\r\n\r\n"


def test_a_large_file_is_read_while_it_is_sent(use, service) -> None:
    """The connection is cut after the first bytes: by then only what is on its way has been read."""
    service.answers(Scripted(request_cut_at=1))
    size = 50_000_000

    class Counted(io.RawIOBase):
        """A file of zeros that counts what is read of it."""

        place = 0
        farthest = 0

        def seekable(self) -> bool:
            return True

        def seek(self, offset: int, whence: int = 0) -> int:
            self.place = (0, self.place, size)[whence] + offset
            return self.place

        def read(self, count: int = -1) -> bytes:
            assert 0 < count <= 1024 * 1024
            piece = bytes(min(count, size - self.place))
            self.place += len(piece)
            self.farthest = max(self.farthest, self.place)
            return piece

    file = Counted()
    with pytest.raises(UnreachableError):
        use(service, "upload", "c1", "a.bin", file, settings={"retries": 0})
    assert service.requests[0].headers["content-length"] == str(size)
    assert 0 < file.farthest < size / 2


def test_the_key_is_sent_and_shown_nowhere(use, service, caplog, capfd) -> None:
    caplog.set_level(logging.DEBUG)
    service.answers(answer(with_files("a.txt")))
    result = use(service, "run", "1", settings={"api_key": "pbx_secret"})
    assert service.requests[0].headers["authorization"] == "Bearer pbx_secret"
    with Client("http://h", "pbx_secret") as client:
        shown = f"{client!r} {client._api!r} {result!r} {result.files[0]!r}"
    captured = "".join(capfd.readouterr())
    assert "pbx_secret" not in f"{shown}{caplog.text}{captured}"


def test_key_and_url_come_from_the_environment(use, service, monkeypatch) -> None:
    monkeypatch.setenv("PROOFBOX_URL", service.url)
    monkeypatch.setenv("PROOFBOX_API_KEY", "pbx_env")
    service.answers(answer())
    use("", "run", "1", settings={"api_key": None})
    assert service.requests[0].headers["authorization"] == "Bearer pbx_env"


def test_redirects_are_not_followed_with_the_key(use, service) -> None:
    service.answers(Scripted(302, b"", {"Location": f"{service.url}/elsewhere"}))
    with pytest.raises(UnexpectedResponseError):
        use(service, "run", "1", settings={"retries": 0})
    assert len(service.requests) == 1


def test_fields_of_a_newer_service_are_skipped(use, service) -> None:
    fields = json.loads(with_files("a.txt").model_dump_json())
    fields["new"] = fields["usage"]["new"] = fields["timings_ms"]["new"] = fields["artifacts"][0]["new"] = 1
    service.answers(Scripted(200, json.dumps(fields).encode()))
    assert use(service, "run", "1").files[0].name == "a.txt"


def test_a_failed_run_is_a_result_until_it_is_required(use, service) -> None:
    failed = response(
        ok=False,
        report="Runtime error: nonzero_exit",
        error={"code": "nonzero_exit", "message": "status 3", "where": "run", "managed": True},
    )
    service.answers(answer(failed))
    result = use(service, "run", "exit(3)")
    assert (result.ok, result.error.code) == (False, "nonzero_exit")
    with pytest.raises(CallFailedError, match="nonzero_exit: status 3\nRuntime error") as caught:
        result.require_ok()
    assert caught.value.code == "nonzero_exit"


@pytest.mark.parametrize(
    ("method", "args", "options", "message"),
    [
        ("run", ["1"], {"promise": ["a"]}, "promise: unknown option; the options are args, assets, call_id"),
        ("run", ["1"], {"language": "ruby"}, "language: 'ruby' is not one of python, bash, node"),
        ("run", ["1"], {"files": {"a/b": b""}}, "files: 'a/b' is not a plain file name"),
        ("run", ["1"], {"files": ["x/a", "y/a"]}, "files: two files have the name 'a'"),
        ("run", ["1"], {"files": "a.csv"}, "files: this is one text"),
        ("run", ["1"], {"files": ["/nonexistent/a"]}, r"files\['a'\]: '/nonexistent/a' is not a file"),
        ("run", ["1"], {"files": {"a": io.StringIO("a")}}, r"files\['a'\]: a StringIO cannot be uploaded"),
        ("run", ["1"], {"promises": [3]}, "promises: 3 is neither a name nor an entry"),
        ("run", ["1"], {"conversation": "a b"}, "conversation: String should match pattern"),
        ("run", ["1"], {"turn": "x"}, "turn: a turn id is turn_"),
        ("run", ["1"], {"call_id": "a.b"}, "call_id: a tool call id is"),
        ("run", ["1"], {"limits": {"pids": 1}}, r"limits\.pids: Input should be greater"),
        ("run", ["\ud800"], {}, "code: "),
        ("run", [Path("a.rb")], {}, "code: 'a.rb' cannot be read: No such file"),
        ("call", ["t", {"a": {1, 2}.__iter__}], {}, "params: "),
        ("render", ["# A", "a.txt"], {}, r"output_name: 'a\.txt' has no extension that can"),
        ("download", ["c1", "a.txt"], {}, r"path: 'a\.txt' is neither a logical nor a physical path"),
        ("upload", ["c1", "a", 3], {}, "source: a int cannot be uploaded"),
        ("upload", ["c1", "a", b""], {"media_type": "text/csv\r\nX: y"}, "media_type: 'text/csv"),
        ("upload", ["c1", "..", b""], {}, r"path: '\.\.' is not a name"),
        ("upload", ["c1", "a\udcff", b""], {}, r"path: 'a.udcff' is not a name"),
        ("delete_conversation", [""], {}, "path: '' is not a name"),
    ],
)  # fmt: skip
@pytest.mark.shares_fixtures
def test_a_wrong_argument_is_named_and_nothing_is_sent(use, service, method, args, options, message) -> None:
    before = len(service.requests)
    with pytest.raises(ArgumentError, match=message) as caught:
        use(service, method, *args, **options)
    assert (service.requests[before:], isinstance(caught.value, ValueError)) == ([], True)


def test_a_closed_client_is_named(service) -> None:
    service.answers(answer(with_files("a.txt")))
    with Client(service.url) as client:
        file = client.run("1").files[0]
    with pytest.raises(ArgumentError, match="client: the client is closed; read files"):
        file.read()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"url": "localhost:8080"}, "url: 'localhost:8080' is not an address such as http://127"),
        ({"url": "ftp://h"}, "url: "),
        ({"url": "http://h:port"}, "url: "),
        ({"url": "http://h?a=1"}, "url: "),
        ({"url": "http://[::1"}, r"url: 'http://\[::1' is not an address"),
        ({"url": "http://h\r"}, r"url: 'http://h\\r' is not an address"),
        ({"url": "http://h/a\tb"}, "url: "),
        ({"url": "http://h/a b"}, "url: "),
        ({"url": "http://xn--a\u0378.h"}, "url: "),
        ({"url": "http://1.2.3.400"}, "url: "),
        ({"url": "http://" + "a" * 70_000}, "url: "),
        ({"url": "pbx_secret@h"}, "url: the address has a user name"),
        ({"url": "http://pbx_secret@[::1"}, "url: the address has a user name"),
        ({"url": "http://pbx_secret@h"}, "url: the address has a user name"),
        ({"api_key": "a\nb"}, "api_key: the key has characters"),
        ({"timeout_s": 0}, "timeout_s: 0 is not more than 0"),
        ({"retries": -1}, "retries: -1 is negative"),
    ],
)
def test_wrong_settings_of_a_client_are_named_without_the_key(settings, message) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        Client(**settings)
    assert "pbx_secret" not in str(caught.value)
