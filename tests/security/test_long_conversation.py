"""A conversation of twenty turns, the service restarted in each of them: the same bytes as without a restart."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import docker
import pytest
from service_process import PYTHON_TOOL, ServiceProcess, serving

pytestmark = pytest.mark.docker

TURNS = 20
CONVERSATION = "twenty-turns"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_FOLDER = re.compile(r"file://[^\"\\]*?/hosted/")

Step = tuple[str, dict[str, Any]]


def prompt(turn: int, text: str, kind: str = "user.prompt") -> dict[str, Any]:
    return {
        "type": kind,
        "author": "user" if kind == "user.prompt" else "react",
        "turn_id": f"turn_{turn}",
        "ts": f"2026-11-22T10:00:{turn:02}.000Z",
        "mime": "text/markdown",
        "path": f"ar:turn_{turn}.{kind}",
        "text": text,
    }


def summary(turn: int, covered: range) -> dict[str, Any]:
    return {
        **prompt(turn, f"{len(covered)} turns about a table that grew", "conv.range.summary"),
        "path": f"su:turn_{turn}.conv.range.summary",
        "meta": {"covered_turn_ids": [f"turn_{number}" for number in covered]},
    }


def call(turn: int, name: str, tool: str, params: dict[str, Any], **more: Any) -> Step:
    return "call", {
        "tool_id": tool,
        "tool_call_id": f"{name}_{turn}",
        "conversation_id": CONVERSATION,
        "turn_id": f"turn_{turn}",
        "params": params,
        **more,
    }


def steps(turn: int) -> list[Step]:
    """What the loop does in a turn: it plans, writes, runs, reads, patches, hides and sums up."""
    before = turn - 1
    code = (
        f"rows = open('turn_{before}/files/table.csv').read()\n" if before else "rows = 'turn,words\\n'\n"
    ) + f"open('files/table.csv', 'w').write(rows + '{turn},number {turn}\\n')\n"
    done: list[Step] = [
        ("append", prompt(turn, f"Please add row {turn} \N{EM DASH} Gr\u00fc\u00dfe")),
        call(turn, "plan", "react.plan", {"steps": ["run", "check"], "status": {"1": "in_progress"}}),
        call(
            turn,
            "run",
            PYTHON_TOOL,
            {"contract": [{"filename": "table.csv", "description": "the table"}]},
            code=code,
            notes=f"turn {turn}",
        ),
        call(
            turn,
            "write",
            "react.write",
            {
                "path": "report.md",
                "channel": "canvas",
                "content": f"# Turn {turn}\n\nThe table [[S:10001]] has {turn} rows.\n",
                "kind": "display",
            },
        ),
        call(
            turn,
            "patch",
            "react.patch",
            {
                "path": "report.md",
                "channel": "canvas",
                "patch": f"@@ -1 +1 @@\n-# Turn {turn}\n+# Turn {turn}, checked\n",
                "kind": "file",
            },
        ),
    ]
    if before:
        paths = [
            f"fi:turn_{before}.files/table.csv",
            "so:sources_pool[10001-10002]",
            f"ar:turn_{before}.user.prompt",
        ]
        done.append(call(turn, "read", "react.read", {"paths": paths}))
        done.append(call(turn, "find", "react.search_files", {"name_regex": r"\.csv$", "content_regex": "number"}))
        done.append(
            call(
                turn, "recall", "react.memsearch", {"query": "which row was added", "targets": ["user"], "top_k": 3}
            )
        )
    if turn % 4 == 0:
        hidden = f"tc:turn_{turn}.recall_{turn}.result"
        done.append(call(turn, "hide", "react.hide", {"path": hidden, "replacement": "what was said before"}))
    done.append(("append", prompt(turn, f"Row {turn} is there.", "assistant.completion")))
    if turn == 12:
        done.append(("append", summary(turn, range(1, 11))))
    return done


def take(service: ServiceProcess, step: Step) -> bytes:
    kind, body = step
    if kind == "append":
        answer = service.client.post(f"/v1/conversations/{CONVERSATION}/timeline", json={"blocks": [body]})
        assert answer.status_code == 201, answer.text
        return b""
    answer = service.post(body)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told["ok"], answer.text[:2000]
    return answer.content


def remembered(service: ServiceProcess) -> tuple[str, str, str]:
    """All that the conversation remembers: its blocks, the text that a model reads, its sources."""
    path = f"/v1/conversations/{CONVERSATION}"
    pages, after = [], 0
    while True:
        page = service.client.get(f"{path}/timeline", params={"after": after, "limit": 200}).json()
        pages += page["blocks"]
        after = page["last"]
        if not page["more"]:
            break
    text = service.client.get(f"{path}/timeline", params={"view": "rendered"}).text
    return json.dumps(pages), text, service.client.get(f"{path}/sources").text


def masked(text: str) -> str:
    """Without what differs between two conversations: the time, and the folder of hosted files."""
    return _FOLDER.sub("file://<root>/hosted/", _TIME.sub("<time>", text))


def conversation(service: ServiceProcess, *, restarted: bool) -> tuple[str, ...]:
    for turn in range(1, TURNS + 1):
        answers = [(step, take(service, step)) for step in steps(turn)]
        if not restarted:
            continue
        before = remembered(service)
        service.signal(signal.SIGKILL if turn % 3 == 0 else signal.SIGTERM)
        service.wait()
        service.start()
        assert remembered(service) == before, f"turn {turn}"
        for (kind, body), answer in answers:
            if kind == "call":
                again = service.post(body)
                assert (again.headers.get("Idempotent-Replayed"), again.content) == ("true", answer)
        assert remembered(service) == before, f"turn {turn}"
    return tuple(masked(part) for part in remembered(service))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_turns_with_a_restart_in_each_leave_the_same_bytes_as_without(
    tmp_path: Path, engine: docker.DockerClient
) -> None:
    told = []
    for restarted in (True, False):
        with serving(tmp_path / f"data-{restarted}", engine, pool_size=1) as service:
            told.append(conversation(service, restarted=restarted))
    assert told[0] == told[1]
    blocks, text, sources = told[0]
    assert len(json.loads(blocks)) > TURNS * 15
    assert text.count("10 turns about a table that grew") == 1
    assert text.count("HIDDEN \N{EM DASH} what was said before") == 3
    assert len(json.loads(sources)["sources"]) == TURNS * 2
