"""What the check finds: one thing that is not as it should be, where it is, and what to do."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from proofbox.service.identity import ConversationKey


class FindingKind(StrEnum):
    """What is wrong; the name is stable."""

    DATABASE_DAMAGED = "database_damaged"
    BLOCK_INVALID = "block_invalid"
    ANSWER_INVALID = "answer_invalid"
    ANSWER_CHANGED = "answer_changed"
    ANSWER_RETRYABLE = "answer_retryable"
    FILE_OF_FAILED_CALL = "file_of_failed_call"
    FILE_NOT_AUDITED = "file_not_audited"
    FILE_LOST = "file_lost"
    BYTES_LOST = "bytes_lost"
    BYTES_CHANGED = "bytes_changed"
    BYTES_OF_NOTHING = "bytes_of_nothing"
    NOT_HOSTED = "not_hosted"
    HOSTED_CHANGED = "hosted_changed"
    HOSTED_OF_NOTHING = "hosted_of_nothing"
    UNFINISHED = "unfinished"
    OTHER_RECORDS = "other_records"


_RESTORE = "restore the database from a backup"
_HOST_AGAIN = "run 'proofbox check --repair'; if its bytes are damaged too, delete the file or upload it again"
_REMEDIES = {
    FindingKind.DATABASE_DAMAGED: f"{_RESTORE}; keep the damaged one",
    FindingKind.BLOCK_INVALID: f"{_RESTORE}, or delete the conversation",
    FindingKind.ANSWER_INVALID: f"{_RESTORE}, or make the call again under a new id",
    FindingKind.ANSWER_CHANGED: f"{_RESTORE}: the answer is not the one that was given; 'proofbox audit verify'",
    FindingKind.ANSWER_RETRYABLE: "make the call again under a new id: this one brings the same answer for ever",
    FindingKind.FILE_OF_FAILED_CALL: "delete the file, or keep it and do not rely on it",
    FindingKind.FILE_NOT_AUDITED: "delete the file, or keep it: nothing tells how it was made",
    FindingKind.FILE_LOST: "make the file again, or restore the database from a backup",
    FindingKind.BYTES_LOST: "delete the file, upload it again, or restore its bytes from a backup",
    FindingKind.BYTES_CHANGED: "delete the file, upload it again, or restore its bytes from a backup",
    FindingKind.BYTES_OF_NOTHING: "stop the service and run 'proofbox check --repair'",
    FindingKind.NOT_HOSTED: _HOST_AGAIN,
    FindingKind.HOSTED_CHANGED: _HOST_AGAIN,
    FindingKind.HOSTED_OF_NOTHING: "stop the service and run 'proofbox check --repair'",
    FindingKind.OTHER_RECORDS: f"set the right database, or {_RESTORE}; nothing is removed",
    FindingKind.UNFINISHED: "start the service, or run 'proofbox check --repair' without it",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be.

    Attributes:
        kind: what is wrong.
        text: the same for people, without contents of files or records.
        scope: the conversation.
        tool_call_id: the call.
        path: the logical path of a file or block, or the name below the store of files.
        sha256: the hash of the bytes.
        size_bytes: their size.
        hosted_name: the name under which a file is, or should be, hosted.
        is_repaired: whether it was repaired.
    """

    kind: FindingKind
    text: str
    scope: ConversationKey | None = None
    tool_call_id: str | None = None
    path: str | None = None
    sha256: str | None = None
    size_bytes: int = 0
    hosted_name: str | None = None
    is_repaired: bool = False

    @property
    def remedy(self) -> str:
        """What to do; empty for what was repaired."""
        return "" if self.is_repaired else _REMEDIES[self.kind]

    def as_text(self) -> str:
        """One line for people."""
        places = [] if self.scope is None else [_named(self.scope)]
        places += [] if self.tool_call_id is None else [f"call {self.tool_call_id}"]
        places += [] if self.path is None else [self.path]
        where = f"{', '.join(places)}: " if places else ""
        end = "repaired" if self.is_repaired else self.remedy
        return f"{self.kind}: {where}{self.text}; {end}"

    def as_json(self) -> dict[str, Any]:
        """The same for programs; fields that do not apply are left out."""
        who = None if self.scope is None else self.scope.principal
        fields = {
            "kind": self.kind.value,
            "detail": self.text,
            "tenant": who and who.tenant,
            "project": who and who.project,
            "user_type": who and who.user_type,
            "user": who and who.user,
            "conversation_id": self.scope and self.scope.conversation_id,
            "tool_call_id": self.tool_call_id,
            "path": self.path,
            "sha256": self.sha256,
            "repaired": self.is_repaired,
            "remedy": self.remedy or None,
        }
        return {name: value for name, value in fields.items() if value is not None}


def _named(scope: ConversationKey) -> str:
    who = scope.principal
    return f"conversation {scope.conversation_id} ({who.tenant}/{who.project}, {who.user_type} {who.user})"
