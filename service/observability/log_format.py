"""The service's log: one line for each record, as JSON or as text, whatever a name or an exception is made of.

A line has the fields of `service.observability.log_context`. Characters that end a line, move a cursor or turn the
direction of text are escaped, so that no value can pass for a line of its own.
"""

import json
import logging
import re
import sys
import threading
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

from proofbox.service.observability.log_context import log_context
from proofbox.service.visible_text import visible_text

LogFormat = Literal["json", "text"]
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")  # NEL and CSI among them
_INDENT = "\n    | "
START_LOGGER = "proofbox.start"
"""Logger of the lines that are written at every level but error."""


def escaped(text: str) -> str:
    """Escapes a text for one line of a terminal."""
    return visible_text(_CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text))


class _Lines(logging.Formatter):
    def facts(self, record: logging.LogRecord) -> dict[str, Any]:
        """The fields of a record and of its context, without those that are not known."""
        fields = getattr(record, "fields", None)
        return {
            **(fields if isinstance(fields, dict) else {}),
            **{name: value for name, value in asdict(log_context()).items() if value},
        }

    def message(self, record: logging.LogRecord) -> str:
        """The message; with arguments that do not fit it, the message alone."""
        try:
            return record.getMessage()
        except Exception:  # noqa: BLE001 - whatever an argument's own text raises, the line is written
            return str(record.msg)

    def trouble(self, record: logging.LogRecord) -> str:
        """The traceback, and the stack if it was asked for; empty without."""
        parts = [self.formatException(record.exc_info)] if record.exc_info and record.exc_info[0] else []
        return "\n".join([*parts, *([record.stack_info] if record.stack_info else [])])


class JsonLines(_Lines):
    """A JSON object in ASCII for each record."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line = {
            "timestamp": _time_of(record),
            "level": record.levelname,
            "logger": record.name,
            "message": self.message(record),
        }
        line = {**line, **{name: value for name, value in self.facts(record).items() if name not in line}}
        if trouble := self.trouble(record):
            line["exception"] = trouble
        return json.dumps(line, ensure_ascii=True, default=str)


class TextLines(_Lines):
    """A line for each record; a traceback follows on lines that begin with four spaces and a bar."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and those of the traceback."""
        facts = " ".join(f"{name}={escaped(str(value))}" for name, value in self.facts(record).items())
        line = f"{_time_of(record)} {record.levelname} {escaped(record.name)} {escaped(self.message(record))}"
        lines = [f"{line} {facts}" if facts else line]
        if trouble := self.trouble(record):
            lines += [escaped(part) for part in trouble.split("\n")]
        return _INDENT.join(lines)


def configure(form: LogFormat, level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Sends all records of the process, warnings and what threads raise included, to one stream.

    A process that has handlers of its own keeps them, and nothing is changed.

    Args:
        form: how lines look.
        level: the least that is written.
        stream: where to; standard error if none is given.
    """
    root = logging.getLogger()
    if any(not isinstance(handler.formatter, _Lines) for handler in root.handlers):
        return
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    # Loggers may have levels of their own, for other handlers.
    handler.addFilter(lambda record: record.levelno >= level or record.name == START_LOGGER)
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.getLogger(START_LOGGER).setLevel(logging.INFO)
    # Its lines about itself; the store logs the state of the schema.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)
    threading.excepthook = _thread_failed


def _thread_failed(args: threading.ExceptHookArgs) -> None:
    name = args.thread.name if args.thread is not None else "?"
    exc = args.exc_value or args.exc_type()
    logging.getLogger("proofbox").error("thread %s failed", name, exc_info=exc)


def _time_of(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
