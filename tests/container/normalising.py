"""Makes a response comparable with a committed one: what differs from run to run gets a name in its place."""

import base64
import hashlib
import json
import re
from typing import Any

from proofbox.contracts.media_types import is_text
from proofbox.contracts.tool_call_response import ToolCallResponse

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_HOSTED_ROOT = re.compile(r"file://[^\"]*?/cb/tenants/")


def normalised(response: ToolCallResponse) -> dict[str, Any]:
    """Envelope, report, blocks and verdicts of a response as JSON values.

    Times, the folder of hosted files, and size and hash of documents (their writers put times into them) are
    replaced; a base64 is replaced only if it is the very file that its digest describes.
    """
    whole = response.model_dump(
        mode="json", exclude_none=True, include={"ok", "error", "ret", "report", "blocks", "artifacts"}
    )
    hashes = {artifact.sha256 for artifact in response.artifacts if artifact.sha256}
    for block in whole["blocks"]:
        if "base64" in block:
            content = base64.b64decode(block["base64"], validate=True)
            assert hashlib.sha256(content).hexdigest() in hashes
            block["base64"] = "<base64 of the file>"
    text = json.dumps(whole, ensure_ascii=False)
    text = _TIME.sub("<time>", text)
    text = _HOSTED_ROOT.sub("file://<root>/cb/tenants/", text)
    for artifact in response.artifacts:
        if artifact.sha256 and not is_text(artifact.mime):
            text = text.replace(artifact.sha256, "<sha256>")
            text = re.sub(rf'size_bytes(\\*)": {artifact.size_bytes}\b', r'size_bytes\1": \1"<bytes>\1"', text)
    result: dict[str, Any] = json.loads(text)
    return result


def normalised_view(view: str, response: ToolCallResponse) -> str:
    """The rendered view of the blocks of a response, with the same replacements."""
    view = _TIME.sub("<time>", view)
    view = re.sub(r"b64_len=\d+", "b64_len=<bytes>", view)
    for artifact in response.artifacts:
        if artifact.sha256 and not is_text(artifact.mime):
            view = view.replace(artifact.sha256, "<sha256>")
            view = view.replace(f'"size_bytes": {artifact.size_bytes}', '"size_bytes": "<bytes>"')
    return view
