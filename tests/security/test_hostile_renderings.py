"""Hostile documents through the service's door: every call ends with a typed answer, and other calls go on."""

import io
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest
from service_process import request

pytestmark = pytest.mark.docker

SLOW = "<p>" + "word <b>bold</b> <i>x</i> " * 40_000
"""Some minutes of layout."""
LARGE = "<table>" + f"<tr>{'<td>cell' * 20}</tr>" * 8_000 + "</table>"
"""More memory than the calls of this module have."""
SMALL = {"memory_bytes": 160 << 20, "out_dir_bytes": 1 << 20, "file_bytes": 1 << 20}
GOOD = "# Report\n\nAll is well."


def rendering(output: str, content: str, turn: str = "turn_1", **extra: Any) -> dict[str, Any]:
    """The body of a rendering call; a conversation of its own unless ``extra`` names one."""
    params = {"path": f"out.{output}", "content": content, "format": "html", **extra.pop("params", {})}
    body = request("", **extra)
    return {**body, "tool_id": f"rendering_tools.write_{output}", "params": params, "code": None, "turn_id": turn}


def answered(service, body: dict[str, Any]) -> dict[str, Any]:
    response = service.post(body)
    assert response.status_code == 200, response.text
    return response.json()


def code_of(answer: dict[str, Any]) -> str:
    return "ok" if answer["ok"] else answer["error"]["code"]


def file_of(service, body: dict[str, Any]) -> bytes:
    """The file of a call that went well; the parts of a package one behind the other."""
    name = quote(f"fi:{body['turn_id']}.files/{body['params']['path']}", safe="")
    got = service.client.get(f"/v1/conversations/{body['conversation_id']}/artifacts/{name}")
    assert got.status_code == 200, got.text
    if not zipfile.is_zipfile(io.BytesIO(got.content)):
        return got.content
    with zipfile.ZipFile(io.BytesIO(got.content)) as package:
        return b"".join(package.read(name) for name in package.namelist())


def test_links_and_pipes_that_an_earlier_turn_left_are_no_pictures(service, canary):
    secret = service.data_dir / "canary.txt"
    left = service.post(
        request(
            "import os\nos.makedirs('files', exist_ok=True)\nos.chdir('files')\n"
            f"os.symlink({str(secret)!r}, 'p.png')\nos.symlink('/proc/1/environ', 'q.png')\n"
            "os.symlink('/', 'root')\nos.mkfifo('pipe.png')\nopen('good.txt', 'w').write('x')",
            "good.txt",
            conversation_id="siege_linked",
        )
    ).json()
    assert left["ok"], left["report"]
    names = ("p.png", "q.png", f"root{secret}", "pipe.png", "../../../../etc/passwd")
    pictures = "".join(f'<img src="turn_1/files/{name}">' for name in names)
    for output in ("pdf", "png", "docx", "pptx"):
        body = rendering(output, f"<h1>Links</h1>{pictures}", "turn_2", conversation_id="siege_linked")
        answer = answered(service, body)
        assert code_of(answer) == "ok", answer["report"]
        assert answer["artifacts"][0]["verdict"] == "produced"
        assert canary.encode() not in file_of(service, body)


def test_a_layout_that_takes_too_long_is_ended(service):
    answer = answered(service, rendering("pdf", SLOW, limits={"wall_s": 2}))
    assert code_of(answer) == "timeout"


@pytest.mark.slow
def test_a_layout_that_takes_too_much_memory_is_ended(service):
    answer = answered(
        service,
        rendering(
            "pdf", LARGE, limits={"memory_bytes": 160 << 20, "out_dir_bytes": 1 << 20, "file_bytes": 1 << 20}
        ),
    )
    assert code_of(answer) == "out_of_memory"


def test_a_content_that_is_too_large_is_refused_by_name(service):
    response = service.post(rendering("docx", "<p>w" * 5_500_000))
    answer = response.json()
    assert (response.status_code, code_of(answer)) == (200, "invalid_params")
    assert "params.content: it has 22,000,000 bytes" in answer["report"]


@pytest.mark.parametrize(
    "path", ["../../etc/cron.pdf", "/etc/cron.pdf", "a/../../../b.pdf", "x\x00.pdf", "C:\\x.pdf"]
)
def test_a_target_outside_the_turn_is_refused_or_brought_into_it(service, path):
    response = service.post(rendering("pdf", "<h1>x</h1>", params={"path": path}))
    answer = response.json()
    places = [artifact["physical_path"] for artifact in answer.get("artifacts", [])]
    assert all(place.startswith("turn_1/files/") and ".." not in place for place in places)
    assert response.status_code == 200


@pytest.mark.slow
def test_ten_hostile_renderings_leave_room_for_a_good_one(service):
    bombs = [
        rendering("pdf", SLOW, limits={"wall_s": 3}),
        rendering("png", f"<style>:root {{ --a: {'x' * 50}; }}</style>" + "<div>" * 5_000, limits={"wall_s": 10}),
        rendering("docx", LARGE, limits={**SMALL, "wall_s": 5}),
        rendering("pptx", "<p style='break-before:page'>x" * 30_000, limits={"wall_s": 3}),
        rendering("png", '<img src="file:///etc/passwd"><iframe src="http://127.0.0.1:1/"></iframe>'),
    ] * 2  # fmt: skip
    bombs = [
        {**bomb, "tool_call_id": f"bomb_{number}", "conversation_id": f"siege_bomb_{number}"}
        for number, bomb in enumerate(bombs)
    ]
    with ThreadPoolExecutor(len(bombs) + 1) as threads:
        answers = [threads.submit(answered, service, bomb) for bomb in bombs]
        body = rendering("pdf", GOOD, params={"format": "markdown"})
        good = threads.submit(answered, service, body)
        assert (code_of(good.result()), file_of(service, body)[:5]) == ("ok", b"%PDF-")
        codes = {code_of(answer.result()) for answer in answers}
    assert codes <= {"ok", "timeout", "out_of_memory", "too_many_slides"}
    assert service.staged() == []
