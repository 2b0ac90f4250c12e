"""Writes the JSON Schemas and checks the examples: ``python -m proofbox.contracts [--check]``."""

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from proofbox.contracts.artifact_lists import ArtifactPage
from proofbox.contracts.artifacts import ArtifactSpec
from proofbox.contracts.blocks import Block, Digest
from proofbox.contracts.conversations import ConversationPage, FilePage
from proofbox.contracts.deletions import DeletionLine
from proofbox.contracts.events import OutputEvent, QueuedEvent, StartedEvent
from proofbox.contracts.exec_params import ExecParams
from proofbox.contracts.gateway.published import GATEWAY_MODELS
from proofbox.contracts.operations import CallerInfo, CallPage, KeyList, ServiceStatus
from proofbox.contracts.previews import FileDifference, TablePreview, VersionPage
from proofbox.contracts.problems import Problem
from proofbox.contracts.provenance import AuditLine, RerunReport
from proofbox.contracts.timeline import AlignedTimeline, Sources, TimelineAppend, TimelineAppended, TimelinePage
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import Attachment, CallStatus, ToolCallResponse
from proofbox.contracts.tools import Tool, exec_params_schema

HERE = Path(__file__).parent
MODELS: dict[str, type[BaseModel]] = {
    "tool_call_request": ToolCallRequest,
    "tool_call_response": ToolCallResponse,
    "aligned_timeline": AlignedTimeline,
    "artifact_page": ArtifactPage,
    "artifact_spec": ArtifactSpec,
    "exec_params": ExecParams,
    "attachment": Attachment,
    "audit_line": AuditLine,
    "block": Block,
    "call_page": CallPage,
    "call_status": CallStatus,
    "caller_info": CallerInfo,
    "conversation_page": ConversationPage,
    "deletion_line": DeletionLine,
    "digest": Digest,
    "event_output": OutputEvent,
    "event_queued": QueuedEvent,
    "event_started": StartedEvent,
    "file_difference": FileDifference,
    "file_page": FilePage,
    "key_list": KeyList,
    "problem": Problem,
    "rerun_report": RerunReport,
    "service_status": ServiceStatus,
    "sources": Sources,
    "table_preview": TablePreview,
    "timeline_append": TimelineAppend,
    "timeline_appended": TimelineAppended,
    "timeline_page": TimelinePage,
    "tool": Tool,
    "version_page": VersionPage,
    **GATEWAY_MODELS,
}


def schema_text(name: str) -> str:
    """The JSON Schema of one model, as it is committed."""
    schema: dict[str, Any] = (
        exec_params_schema() if name == "exec_params" else MODELS[name].model_json_schema(mode="validation")
    )
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def drifted_schemas() -> list[str]:
    """The names of models whose committed schema differs from the model."""
    return [
        name
        for name in MODELS
        if not (path := HERE / "schemas" / f"{name}.schema.json").is_file()
        or path.read_text(encoding="utf-8") != schema_text(name)
    ]


def misjudged_examples() -> list[str]:
    """Examples that should be accepted and are not, or ``*.invalid.*`` ones that are accepted."""
    wrong = []
    for path in sorted((HERE / "examples").glob("*.json")):
        model = MODELS[path.name.split(".", 1)[0]]
        expected = ".invalid." not in path.name
        try:
            model.model_validate_json(path.read_bytes())
            accepted = True
        except ValidationError:
            accepted = False
        if accepted != expected:
            wrong.append(path.name)
    return wrong


def main(argv: list[str]) -> int:
    """Writes the schemas, or with ``--check`` only compares; both check the examples. 1 on any difference."""
    if "--check" not in argv:
        (HERE / "schemas").mkdir(exist_ok=True)
        for name in MODELS:
            (HERE / "schemas" / f"{name}.schema.json").write_text(schema_text(name), encoding="utf-8")
    drifted, wrong = drifted_schemas(), misjudged_examples()
    for name in drifted:
        sys.stdout.write(
            f"contracts: schemas/{name}.schema.json is out of date; run python -m proofbox.contracts\n"
        )
    for name in wrong:
        sys.stdout.write(f"contracts: examples/{name} is not judged as its name says\n")
    if not drifted and not wrong:
        count = len(list((HERE / "examples").glob("*.json")))
        sys.stdout.write(f"contracts: {len(MODELS)} schemas, {count} examples, all in step\n")
    return 1 if drifted or wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
