"""Audit lines go to a file of their own, which survives rotation; the log is quiet unless it is asked."""

import contextlib
import io
import json
import logging

import pytest

from proofbox.service.app.logs import configure_logs
from proofbox.service.app.settings import Settings
from proofbox.service.observability.audit_file import AUDIT_LOGGER, AuditFile
from proofbox.service.observability.log_format import START_LOGGER, configure


@contextlib.contextmanager
def clean_logging():
    """Loggers without pytest's own handlers, which `configure` respects; as before at the end."""
    root, audit, start = logging.getLogger(), logging.getLogger(AUDIT_LOGGER), logging.getLogger(START_LOGGER)
    before = [(logger, logger.handlers[:], logger.level) for logger in (root, audit, start)]
    root.handlers[:] = []
    try:
        yield
    finally:
        for logger, handlers, level in before:
            for handler in set(logger.handlers) - set(handlers):
                handler.close()
            logger.handlers[:] = handlers
            logger.setLevel(level)
        logging.captureWarnings(capture=False)


def lines_of(path):
    return path.read_text().splitlines()


def test_lines_are_appended_after_a_rotation_too(tmp_path):
    with clean_logging():
        path = tmp_path / "audit.jsonl"
        configure_logs(Settings(audit_file=path))
        audit = logging.getLogger(AUDIT_LOGGER)
        audit.info("%s", '{"n": 1}')
        path.rename(tmp_path / "audit.jsonl.1")
        audit.info("%s", '{"n": 2}')
        path.unlink()
        audit.info("%s", '{"n": 3}')
        assert (lines_of(tmp_path / "audit.jsonl.1"), lines_of(path)) == (['{"n": 1}'], ['{"n": 3}'])
        assert path.stat().st_mode & 0o777 & ~0o640 == 0


def test_only_audit_lines_are_in_the_file_and_no_audit_line_is_in_a_quiet_log(tmp_path, capsys):
    with clean_logging():
        path = tmp_path / "audit.jsonl"
        configure_logs(Settings(audit_file=path))
        logging.getLogger(AUDIT_LOGGER).info("a call")
        logging.getLogger(f"{AUDIT_LOGGER}.heads").warning("heads")
        logging.getLogger("proofbox.api").info("a request")
        assert lines_of(path) == ["a call"]
        assert "heads" in (shown := capsys.readouterr().err)
        assert "a call" not in shown
        assert "a request" not in shown


def test_a_file_that_cannot_be_written_costs_no_call_and_is_told_once(tmp_path, capsys):
    with clean_logging():
        folder = tmp_path / "logs"
        folder.mkdir()
        configure_logs(Settings(audit_file=folder / "audit.jsonl"))
        audit = logging.getLogger(AUDIT_LOGGER)
        (folder / "audit.jsonl").unlink()
        folder.rmdir()
        audit.info("lost 1")
        audit.info("lost 2")
        folder.mkdir()
        audit.info("kept")
        told = [line.split(" ", 1)[1] for line in capsys.readouterr().err.splitlines()]
        assert [line.split(f" {folder}")[0] for line in told] == [
            "ERROR proofbox audit lines cannot be written to",
            "WARNING proofbox audit lines are written to",
        ]
        assert lines_of(folder / "audit.jsonl") == ["kept"]


def test_without_a_file_nothing_is_attached():
    with clean_logging():
        configure_logs(Settings())
        assert not any(isinstance(handler, AuditFile) for handler in logging.getLogger(AUDIT_LOGGER).handlers)


@pytest.mark.parametrize(
    ("level", "messages"),
    [
        (logging.INFO, ["request", "trouble", "running"]),
        (logging.WARNING, ["trouble", "running"]),
        (logging.ERROR, ["running"]),
    ],
)
def test_the_level_decides_what_is_written_and_the_start_always_is(level, messages):
    with clean_logging():
        stream = io.StringIO()
        configure("json", level, stream)
        logging.getLogger("proofbox.api").info("request")
        logging.getLogger("proofbox.engine").warning("trouble")
        logging.getLogger(START_LOGGER).info("running")
        assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == messages
