"""The result of one check of ``proofbox doctor``."""

from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        name: what was checked.
        status: ok; warn, it works but for something; fail, calls will fail.
        detail: what was found.
        remedy: what to do; empty if nothing.
    """

    name: str
    status: Status
    detail: str
    remedy: str = ""

    def as_json(self) -> dict[str, Any]:
        """The finding as JSON."""
        return {"name": self.name, "status": self.status, "detail": self.detail, "remedy": self.remedy or None}
