"""The settings of logs, traces and the file of audit lines."""

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from proofbox.service.app.config.local_use import FOR_OTHERS


class LogSettings(BaseSettings):
    """The operator's decisions about what is seen from outside."""

    model_config = SettingsConfigDict(use_attribute_docstrings=True)

    log_format: Literal["json", "text"] = "text"
    """json: one object per line; text: for people."""
    log_level: Literal["debug", "info", "warning", "error"] = "warning"
    """Least level of logged lines; info has a line for each request and call. The start is always logged."""
    audit_file: Annotated[Path | None, FOR_OTHERS] = None
    """File to which audit lines and signed heads are appended, as JSON lines; opened again after a rotation."""
    otlp_endpoint: Annotated[str, FOR_OTHERS] = Field(default="", pattern=r"^(https?://[^/?#@\s]+(/[^?#\s]*)?)?$")
    """Receiver of traces by OTLP over HTTP, such as http://127.0.0.1:4318; empty: the OTEL_ variables."""

    @property
    def is_traced(self) -> bool:
        """Whether a receiver of traces is named, here or by OpenTelemetry's own variables."""
        if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            return False
        names = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
        return bool(self.otlp_endpoint) or any(os.environ.get(name) for name in names)
