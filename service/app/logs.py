"""The log of the service, by its settings."""

import logging

from proofbox.service.app.settings import Settings
from proofbox.service.errors import ServiceError
from proofbox.service.observability.audit_file import AUDIT_LOGGER, AuditFile
from proofbox.service.observability.log_format import configure

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class AuditFileError(ServiceError):
    """The file of audit lines cannot be opened."""


def configure_logs(settings: Settings) -> None:
    """Send the log to standard error, and audit lines to their file, if one is set.

    Raises:
        AuditFileError: that file cannot be opened.
    """
    configure(settings.log_format, _LEVELS[settings.log_level])
    if settings.audit_file is None:
        return
    try:
        handler = AuditFile(settings.audit_file)
    except OSError as exc:
        raise AuditFileError(
            f"PROOFBOX_AUDIT_FILE: {settings.audit_file} cannot be opened: {exc.strerror}; correct the path, or "
            "give the service's user the right to write there"
        ) from exc
    logger = logging.getLogger(AUDIT_LOGGER)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)  # for the file, whatever the level of the log
