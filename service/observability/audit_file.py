"""A file of audit lines, beside those in the database: for shippers of logs."""

import contextlib
import io
import logging
import os
from logging.handlers import WatchedFileHandler
from pathlib import Path

AUDIT_LOGGER = "proofbox.audit"
_MODE = 0o640
_log = logging.getLogger("proofbox")


class AuditFile(WatchedFileHandler):
    """Appends audit lines to a file, and opens it again when it was moved or removed.

    A line that cannot be written is lost to the file alone: the database has it. The log has one line when that
    begins, and one when it is over.
    """

    def __init__(self, path: Path) -> None:
        """Open the file.

        Raises:
            OSError: it cannot be opened.
        """
        self._is_failing = False
        super().__init__(path, encoding="utf-8", errors="backslashreplace")
        self.setFormatter(logging.Formatter("%(message)s"))
        self.addFilter(lambda record: record.name == AUDIT_LOGGER)

    def _open(self) -> io.TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _MODE)
        return open(descriptor, "a", encoding=self.encoding, errors=self.errors)  # noqa: PTH123 - a descriptor

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        try:
            self.reopenIfNeeded()
            if self.stream is None:
                self.stream = self._open()
                self._statstream()
            self.stream.write(f"{self.format(record)}\n")
            self.stream.flush()
        except (OSError, ValueError) as exc:
            self._note_failure(exc)
            return
        if self._is_failing:
            self._is_failing = False
            _log.warning(
                "audit lines are written to %s again; the database has those in between", self.baseFilename
            )

    def _note_failure(self, exc: Exception) -> None:
        # A stream that failed is opened again with the next line.
        with contextlib.suppress(OSError, ValueError):
            if self.stream is not None:
                self.stream.close()
        self.stream = None  # as the base class does before it opens again
        if not self._is_failing:
            self._is_failing = True
            reason = getattr(exc, "strerror", None) or exc
            _log.error("audit lines cannot be written to %s: %s; the database has them", self.baseFilename, reason)
