"""A sandbox for LangChain's deepagents: ``create_deep_agent(model, backend=ProofboxSandbox())``."""

import base64
import json
import shlex
import uuid
from typing import Any

from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox
from typing_extensions import override

from proofbox.client import CallEvent, Client

_DOWNLOADS = "turn_downloads"  # a turn beside that of the workspace
_OUT = ".proofbox-download"
_STAGE = "turn_1/attachments/upload"
_AT_ONCE = 100
_COPY = """
import json, os, shutil, sys
codes = {2: "file_not_found", 13: "permission_denied", 21: "is_directory"}
for source, target in json.load(sys.stdin):
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(source, target)
        print()
    except OSError as error:
        print(codes.get(error.errno, "invalid_path"))
"""


class ProofboxSandbox(BaseSandbox):
    """Commands run in fresh sandboxes that share ``/mnt/data``, where they start; all other folders are lost.

    Args:
        url: the service; None for PROOFBOX_URL, else http://127.0.0.1:8080.
        api_key: the API key; None for PROOFBOX_API_KEY.
        conversation: the conversation whose folder it is; None for a new one.
    """

    def __init__(self, url: str | None = None, api_key: str | None = None, conversation: str | None = None) -> None:
        self._client = Client(url, api_key)
        self._id = conversation or f"deepagents-{uuid.uuid4().hex}"
        self._scratch: list[tuple[str, bytes]] = []  # uploads to /tmp, for the next command

    @property
    @override
    def id(self) -> str:
        return self._id

    @override
    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        scratch = list(self._scratch)
        copies = [f"cp {_staged(at)} {shlex.quote(path)}\n" for at, (path, _) in enumerate(scratch)]
        events: list[CallEvent] = []
        options = {"language": "bash", "timeout_s": timeout or None, "on_event": events.append}
        result = self._run("".join(copies) + command, scratch, **options)
        del self._scratch[: len(scratch)]  # only now: after an error the next command needs them
        output = "".join(event.text for event in events) or result.output
        truncated = any(getattr(event.data, "truncated", False) for event in events)
        if result.exit_code is None:  # refused, or ended by a limit
            return ExecuteResponse(f"{output}\n{result.text}", 1, truncated)
        return ExecuteResponse(output, result.exit_code, truncated)

    @override
    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        scratch = [file for file in files if file[0].startswith("/tmp/")]  # noqa: S108 - the sandbox's own
        self._scratch += scratch
        placed = [file for file in files if file[0].startswith("/") and file not in scratch]
        pairs = [(_staged(at), path) for at, (path, _) in enumerate(placed)]
        lines = self._run(_COPY, placed, stdin=json.dumps(pairs)).require_ok().stdout.split("\n")
        errors = dict(zip((path for path, _ in placed), lines, strict=False)) | {path: "" for path, _ in scratch}
        return [FileUploadResponse(path, errors.get(path, "invalid_path") or None) for path, _ in files]

    @override
    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        if len(paths) > _AT_ONCE:
            return self.download_files(paths[:_AT_ONCE]) + self.download_files(paths[_AT_ONCE:])
        pairs = [(path, f"/mnt/data/{_OUT}/{at}") for at, path in enumerate(paths) if path.startswith("/")]
        options = {"turn": _DOWNLOADS, "promises": [{"glob": f"{_OUT}/*", "description": "-", "min_count": 0}]}
        result = self._run(_COPY, (), "read", stdin=json.dumps(pairs), **options).require_ok()
        errors = dict(zip((path for path, _ in pairs), result.stdout.split("\n"), strict=False))
        found = {file.name: file for file in result.files}
        answers = []
        for at, path in enumerate(paths):
            error = errors.get(path, "invalid_path")
            answers.append(
                FileDownloadResponse(path, None if error else found[f"{_OUT}/{at}"].read(), error or None)
            )
        for file in result.files:  # a copy of a file would come into the workspace of later commands
            self._client.delete_file(self._id, file.path)
        return answers

    def _run(self, code: str, files: Any, workspace: str = "full", **options: Any) -> Any:
        contents = [base64.b64encode(data).decode() for _, data in files]
        assets = [{"physical_path": f"{_STAGE}/{at}", "base64": data} for at, data in enumerate(contents)]
        options = {"turn": "turn_1", "conversation": self._id, "assets": assets, **options}
        return self._client.run(code, params={"workspace": workspace}, **options)


def _staged(at: int) -> str:
    return f"/out/{_STAGE}/{at}"
