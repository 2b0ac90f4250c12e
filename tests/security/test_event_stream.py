"""The events of calls over a real connection: their order, their ids, and that they come while the program runs."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from service_process import eventually, request

pytestmark = pytest.mark.docker

Event = tuple[int, str, dict[str, Any]]


def follow(service, body, **headers: str) -> Iterator[Event]:
    """The events of a call as they come over the wire: id, name, data."""
    path = f"/v1/tool-calls/{body['tool_call_id']}/events"
    query = {"conversation_id": body["conversation_id"]}
    with service.client.stream("GET", path, params=query, headers=headers) as stream:
        assert (stream.status_code, stream.headers["content-type"]) == (200, "text/event-stream")
        fields: dict[str, str] = {}
        for line in stream.iter_lines():
            if line:
                name, _, value = line.partition(":")
                fields[name] = fields.get(name, "") + value.removeprefix(" ")
            elif "event" in fields:
                yield int(fields["id"]), fields["event"], json.loads(fields["data"])
                fields = {}


# What it says is a piece for each line: it goes on once the line before was read.
TALKS = (
    "import fcntl, os, sys, termios, time\n"
    "def wait(stream):\n"
    "    while any(fcntl.ioctl(stream, termios.FIONREAD, bytes(4))): time.sleep(0.1)\n"
    "    time.sleep(0.3)\n"
    "print('one', flush=True)\nwait(sys.stdout)\n"
    "print('two', file=sys.stderr, flush=True)\nwait(sys.stderr)\n"
    "open('out.txt', 'w').write('x')\nprint('three')"
)


def test_the_events_of_a_call_come_in_order_with_ids_and_one_end(service):
    body = request(TALKS)
    assert service.post(body, Prefer="respond-async").status_code == 202
    events = list(follow(service, body))
    assert [event_id for event_id, _, _ in events] == list(range(1, len(events) + 1))
    assert [name for _, name, _ in events] == ["queued", "started", "stdout", "stderr", "stdout", "result"]
    assert [data["text"] for _, name, data in events if name in {"stdout", "stderr"}] == [
        "one\n",
        "two\n",
        "three\n",
    ]
    assert events[-1][2] == service.status(body)["response"]


def test_output_comes_while_the_program_runs(service):
    # It waits for ever: what comes before its end came while it ran.
    body = request("import time\nprint('begun', flush=True)\ntime.sleep(987)")
    assert service.post(body, Prefer="respond-async").status_code == 202
    events = follow(service, body)
    seen = [next(events) for _ in range(3)]
    assert [(name, data.get("text")) for _, name, data in seen][-1] == ("stdout", "begun\n")
    assert service.status(body)["status"] == "running"
    assert service.cancel(body).json()["status"] == "cancelled"
    assert [(name, data["code"]) for _, name, data in events] == [("error", "cancelled")]


@pytest.mark.parametrize("after", [0, 1, 3, 5])
def test_a_stream_goes_on_where_its_client_was_cut_off(service, after):
    body = request(TALKS)
    service.post(body)
    whole = list(follow(service, body))
    assert list(follow(service, body, **{"Last-Event-ID": str(after)})) == whole[after:]


def test_a_client_that_comes_again_in_the_middle_misses_nothing_and_sees_nothing_twice(service):
    body = request(TALKS)
    assert service.post(body, Prefer="respond-async").status_code == 202
    first = follow(service, body)
    seen = [next(first) for _ in range(3)]
    first.close()
    rest = list(follow(service, body, **{"Last-Event-ID": str(seen[-1][0])}))
    assert seen + rest == list(follow(service, body))


@pytest.mark.parametrize(
    ("code", "last"),
    [
        ("open('out.txt', 'w').write('x')", "result"),
        ("raise SystemExit(1)", "result"),
        ("```python\n1\n```", "result"),
    ],
)
def test_there_is_exactly_one_last_event_however_a_call_ends(service, code, last):
    body = request(code)
    service.post(body)
    names = [name for _, name, _ in follow(service, body)]
    assert [name for name in names if name in {"result", "error"}] == [last]
    assert names[-1] == last


def test_many_who_watch_one_call_see_the_same(service):
    body = request(TALKS)
    assert service.post(body, Prefer="respond-async").status_code == 202
    with ThreadPoolExecutor(8) as watchers:
        seen = list(watchers.map(lambda _: list(follow(service, body)), range(8)))
    assert seen == [seen[0]] * 8


def test_output_that_is_no_text_is_still_json_and_its_lines_stay_one_event(service):
    body = request(
        "import os\n"
        "os.write(1, b'\\xff\\xfe\\x00 \\x1b[31m\\r\\n\\ndata: forged\\n\\nevent: result\\ndata: {}\\n\\n')\n"
        "open('out.txt', 'w').write('x')"
    )
    service.post(body)
    events = list(follow(service, body))
    assert [name for _, name, _ in events] == ["queued", "started", "stdout", "result"]
    assert events[2][2]["text"].endswith("data: forged\n\nevent: result\ndata: {}\n\n")


def test_output_written_byte_by_byte_comes_in_few_pieces_and_whole(service):
    body = request(
        "import os\n"
        "for n in range(30_000):\n    os.write(1 + n % 2, b'x')\n    os.sched_yield()\n"
        "open('out.txt', 'w').write('x')"
    )
    service.post(body)
    events = [event for event in follow(service, body) if event[1] in {"stdout", "stderr"}]
    assert sum(len(data["text"]) for _, _, data in events) == 30_000
    assert len(events) < 1_500


def test_a_watcher_that_goes_away_does_not_touch_the_call(service):
    body = request("import time\nprint('begun', flush=True)\ntime.sleep(1)\nopen('out.txt', 'w').write('x')")
    assert service.post(body, Prefer="respond-async").status_code == 202
    events = follow(service, body)
    next(events)
    events.close()
    ended = eventually(lambda: service.status(body), lambda status: status["status"] == "done")
    assert ended["response"]["ok"] is True


def test_nobody_watches_a_call_that_does_not_exist(service):
    gone = service.client.get("/v1/tool-calls/call_of_nobody/events")
    assert (gone.status_code, gone.json()["code"]) == (404, "unknown_call")
