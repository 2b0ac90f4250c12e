"""Lines of the log: one for each record, whatever a value is made of, and what each is about."""

import asyncio
import contextvars
import io
import json
import logging
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.service.concurrency import run_in_thread
from proofbox.service.observability.log_context import about
from proofbox.service.observability.log_format import START_LOGGER, JsonLines, TextLines, configure

FORGED = "2026-11-22T00:00:00.000Z INFO proofbox.audit forged"
# Every way that some reader of logs takes for the end of a line, and what moves a terminal's cursor.
BREAKS = [
    "\n",
    "\r",
    "\r\n",
    "\v",
    "\f",
    "\x1c",
    "\x1d",
    "\x1e",
    "\x85",
    "\u2028",
    "\u2029",
    "\x1b[2K\x1b[1G",
    "\x00",
]
NASTY = st.text(st.characters() | st.sampled_from([*"\n\r\x1b\x85\u2028\u202e\ud800"]))


def fail(text):
    raise ValueError(text)


class Shown:
    """A log of its own, in one of the formats."""

    def __init__(self, formatter):
        self.stream = io.StringIO()
        handler = logging.StreamHandler(self.stream)
        handler.setFormatter(formatter)
        self.logger = logging.getLogger("proofbox.test").getChild(type(formatter).__name__)
        self.logger.propagate = False
        self.logger.setLevel(logging.INFO)
        self.logger.handlers = [handler]

    @property
    def text(self):
        return self.stream.getvalue()

    @property
    def objects(self):
        return [json.loads(line) for line in self.text.splitlines()]


@pytest.fixture
def as_json():
    return Shown(JsonLines())


@pytest.fixture
def as_text():
    return Shown(TextLines())


@contextmanager
def configured():
    """The log of the process, as the service sets it up; all is as it was afterwards."""
    root = logging.getLogger()
    before = root.handlers[:], root.level, threading.excepthook
    levels = {name: logging.getLogger(name).level for name in (START_LOGGER, "alembic")}
    root.handlers.clear()
    stream = io.StringIO()
    configure("json", stream=stream)
    try:
        yield stream
    finally:
        logging.captureWarnings(capture=False)
        root.handlers[:], root.level, threading.excepthook = before
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


@given(message=NASTY, value=NASTY, name=NASTY)
def test_any_text_makes_one_json_line_that_says_it_again(message, value, name):
    shown = Shown(JsonLines())
    with about(call_id=value):
        shown.logger.info("%s", message, extra={"fields": {name: value}})
    assert shown.text.isascii()
    [line] = shown.objects
    assert (line["message"], line["logger"], line["level"]) == (message, "proofbox.test.JsonLines", "INFO")
    assert line.get("call_id", "") == value


@given(message=NASTY, value=NASTY)
def test_any_text_makes_one_line_of_text(message, value):
    shown = Shown(TextLines())
    with about(call_id=value):
        shown.logger.info("%s", message, extra={"fields": {"file": value}})
    assert len(shown.text.splitlines()) == 1


@pytest.mark.parametrize("end", BREAKS)
@pytest.mark.parametrize("formatter", [JsonLines(), TextLines()], ids=["json", "text"])
def test_no_value_passes_for_a_line_of_its_own(end, formatter):
    shown = Shown(formatter)
    nasty = f"a{end}{FORGED}"
    with about(request_id=nasty, call_id=nasty, conversation_id=nasty):
        shown.logger.info("file %s", nasty, extra={"fields": {"header": nasty}})
    try:
        fail(nasty)
    except ValueError:
        shown.logger.exception("it failed: %s", nasty)
    starts = [line for line in shown.text.splitlines() if line.startswith(FORGED[:10])]
    assert [line for line in starts if line.endswith("forged") and "proofbox.test" not in line] == []
    assert "\x1b" not in shown.text


def test_a_traceback_is_a_field_of_json_and_indented_lines_of_text(as_json, as_text):
    for shown in (as_json, as_text):
        try:
            fail(f"x\n{FORGED}")
        except ValueError:
            shown.logger.exception("it failed")
    assert as_json.objects[0]["exception"].endswith(f"ValueError: x\n{FORGED}")
    first, *rest = as_text.text.splitlines()
    assert first.endswith("ERROR proofbox.test.TextLines it failed")
    assert [line for line in rest if not line.startswith("    | ")] == []
    assert rest[-1] == f"    | {FORGED}"


def test_what_a_record_tells_cannot_take_the_place_of_what_the_line_says(as_json):
    as_json.logger.info("real", extra={"fields": {"message": "forged", "level": "DEBUG", "status": 200}})
    [line] = as_json.objects
    assert (line["message"], line["level"], line["status"]) == ("real", "INFO", 200)


def test_a_message_whose_arguments_do_not_fit_is_written_all_the_same():
    record = logging.LogRecord("x", logging.INFO, "", 1, "%d files", ("many",), None)
    assert json.loads(JsonLines().format(record))["message"] == "%d files"


def test_what_is_not_known_is_not_said(as_json):
    as_json.logger.info("x")
    assert set(as_json.objects[0]) == {"timestamp", "level", "logger", "message"}


async def test_what_a_line_is_about_follows_tasks_and_threads(as_json):
    async def inner():
        as_json.logger.info("task")
        await asyncio.to_thread(as_json.logger.info, "to_thread")
        with about(phase="run"), ThreadPoolExecutor(1) as threads:
            await run_in_thread(threads, lambda: as_json.logger.info("run_in_thread"))

    with about(request_id="r1", call_id="c1", conversation_id="v1"):
        task = asyncio.create_task(inner())
    await task
    as_json.logger.info("outside")
    told = [(line["message"], line.get("call_id"), line.get("phase")) for line in as_json.objects]
    assert told == [
        ("task", "c1", None),
        ("to_thread", "c1", None),
        ("run_in_thread", "c1", "run"),
        ("outside", None, None),
    ]


async def test_calls_beside_each_other_do_not_take_each_others_names(as_json):
    async def call(name):
        with about(call_id=name):
            for _ in range(20):
                await asyncio.sleep(0)
                as_json.logger.info(name)

    await asyncio.gather(*(call(f"call-{number}") for number in range(10)))
    assert [line for line in as_json.objects if line["call_id"] != line["message"]] == []
    assert len(as_json.objects) == 200


def test_a_generator_that_another_context_closes_does_no_harm(as_json):
    def generator():
        with about(call_id="c1"):
            yield

    held = generator()
    contextvars.copy_context().run(next, held)
    held.close()
    as_json.logger.info("after")
    assert as_json.objects[-1]["message"] == "after"


def test_warnings_and_what_threads_raise_go_the_same_way():
    def failing():
        raise RuntimeError(f"x\n{FORGED}")

    with configured() as stream:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn(f"old\n{FORGED}", DeprecationWarning, stacklevel=1)
        thread = threading.Thread(target=failing, name="worker")
        thread.start()
        thread.join()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["logger"], line["level"]) for line in lines] == [
        ("py.warnings", "WARNING"),
        ("proofbox", "ERROR"),
    ]
    assert lines[1]["exception"].endswith(f"RuntimeError: x\n{FORGED}")


def test_the_servers_own_lines_go_the_same_way():
    with configured() as stream:
        logging.getLogger("uvicorn.error").info("Uvicorn running on %s", "http://127.0.0.1:1")
    [line] = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert (line["logger"], line["message"]) == ("uvicorn.error", "Uvicorn running on http://127.0.0.1:1")


def test_a_process_that_has_set_up_its_own_log_keeps_it():
    root = logging.getLogger()
    before = root.handlers[:]
    configure("json", stream=io.StringIO())
    assert root.handlers == before != []
