"""What KDCube's ReAct runtime does around a call of ``execute_tool``, for the tests of its adapter.

It has the order and the shapes of the runtime: of its contracts, rewritten programs, rows of sources, files that it
hosts and brings back, and blocks. Models, streams and databases are left out.
"""

import json
import mimetypes
import re
from pathlib import Path
from types import SimpleNamespace

_RELATIVE = re.compile(r"(?<![\w/])(?:files|outputs)/[^\s'\"]+")


class Runtime:
    """A runtime with one conversation.

    Args:
        folder: its working folders.
        execute_tool: what it calls for a tool.
        user: whose conversation it is.
        home: the folder of a turn where the runtime of that time puts files without one.
        prefix: what its logical paths begin with: ``conv:`` today.
        below: where in ``outdir`` it has the folders of its turns.
    """

    def __init__(self, folder, execute_tool, *, user="ann", home="files", prefix="", below=""):
        self._folder, self._execute_tool = folder, execute_tool
        self._user, self._home, self._prefix, self._below = user, home, prefix, below
        self.hosted = {}
        self.blocks = []
        self.pool = []
        self.log = []
        self.statuses = []
        self.answer = None
        self.begin("turn_1")

    def begin(self, turn):
        """Begins a turn; its ``outdir`` is empty, as on another machine."""
        self.turn = turn
        self.outdir = self._folder / f"out-{len(self.blocks)}-{turn}"
        self.outdir.mkdir(parents=True, exist_ok=True)

    def add(self, kind, path, mime, **more):
        self.blocks.append({"turn": self.turn, "type": kind, "path": path, "mime": mime, **more})

    def notice(self, call_id, code, **extra):
        text = json.dumps({"code": code, **extra})
        self.add("react.notice", f"tc:{self.turn}.{call_id}.notice", "application/json", text=text)

    def host(self, path, data):
        """Stores a file as the user's or an earlier turn's, outside of the service."""
        self.hosted[path] = data
        row = {
            "sid": len(self.pool) + 1,
            "source_type": "file",
            "title": Path(path).name,
            "text": "",
            "author": None,
        }
        places = {
            "url": f"s3://bucket/{path}",
            "hosted_uri": f"s3://bucket/{path}",
            "key": f"cb/{path}",
            "rn": "ef:x",
        }
        turn, _, rest = path.partition("/")
        logical = f"{self._prefix}fi:{turn}.{rest.replace('attachments', 'user.attachments')}"
        known = {"physical_path": path, "artifact_path": logical, "turn_id": turn, "mime": "", "filename": "x"}
        self.pool.append(row | places | known)

    def put(self, path):
        """Puts a file that it hosts into the folder of its turn."""
        target = self.outdir / self._below / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(self.hosted[path])

    async def call(self, call_id, tool_id, params, code=None, notes=""):
        """A call as the model decided it; what the runtime adds to its blocks."""
        began, is_exec = len(self.blocks), tool_id.startswith("exec_tools.")
        result, params = f"tc:{self.turn}.{call_id}.result", dict(params)
        if notes:
            self.add("react.notes", f"ar:{self.turn}.react.notes.{call_id}", "text/markdown", text=notes)
        if is_exec:
            params["contract"] = self._contract(call_id, params["contract"])
            code = params["code"] = self._rewritten(call_id, code)
            self.add("react.tool.code", f"fi:{self.turn}.code.{call_id}", "text/x-python", text=code)
            if missing := self._bring_back(code):
                self.notice(call_id, "tool_call_error.pre_exec_missing_paths", missing=missing)
                self.add("react.tool.result", result, "application/json", text="{}")
                return self.blocks[began:]
        self.add("react.tool.call", f"tc:{self.turn}.{call_id}.call", "application/json", text=json.dumps(params))
        if not is_exec:
            self._prepare_rendering(call_id, params)
        (self.outdir / "timeline.json").write_text(json.dumps({"blocks": self.blocks, "sources_pool": self.pool}))
        self.answer = await self._execute(call_id, tool_id, params, code, notes)
        if is_exec:
            self.add("react.tool.result", result, "text/markdown", text=self.answer["report_text"])
        self._take(call_id, is_exec, params)
        return self.blocks[began:]

    def _contract(self, call_id, entries):
        normalized = []
        for entry in entries:
            path = entry["filename"]
            if not path.startswith(f"{self.turn}/"):
                path = f"{self.turn}/{path if path.startswith(('files/', 'outputs/')) else f'{self._home}/{path}'}"
                self.notice(call_id, "protocol_violation.exec_contract_rewritten", rewritten=path)
            mime = mimetypes.MimeTypes().guess_type(path)[0] or "application/octet-stream"
            field = "filename" if self._home == "files" else "filepath"
            normalized.append(
                {"name": Path(path).stem, field: path, "mime": mime, "description": entry["description"]}
            )
        return normalized

    def _rewritten(self, call_id, code):
        rewritten = _RELATIVE.sub(lambda found: f"{self.turn}/{found[0]}", code)
        if rewritten != code:
            self.notice(call_id, "protocol_violation.exec_code_rewritten")
        return rewritten

    def _bring_back(self, text):
        """Puts files of other turns that a text names into ``outdir``; the paths of those that it does not have."""
        missing = []
        for path in re.findall(r"\w*turn_\w+/(?:files|outputs|attachments)/[^\s'\")\]]+", text):
            if path in self.hosted:
                self.put(path)
            elif not path.startswith(f"{self.turn}/"):
                missing.append(path)
        return missing

    def _prepare_rendering(self, call_id, params):
        if not params["path"].startswith(f"{self.turn}/"):
            params["path"] = f"{self.turn}/{self._home}/{params['path']}"
            self.notice(call_id, "protocol_violation.path_rewritten")
        sids = {int(sid) for sid in re.findall(r"\[\[S:(\d+)", params["content"])}
        if unknown := sids - {row["sid"] for row in self.pool}:
            self.notice(call_id, "tool_call_warning.missing_sources", missing_sids=sorted(unknown))
        if missing := self._bring_back(params["content"]):
            self.notice(call_id, "tool_call_error.missing_assets", missing=missing)

    async def _execute(self, call_id, tool_id, params, code, notes):
        async def emit_status(status, error):
            self.statuses.append((status, error and error["code"]))

        ctx = SimpleNamespace(
            tenant="t", project="p", user_id=self._user, conversation_id="chat", turn_id=self.turn, bundle_id=None
        )
        streamer = SimpleNamespace(get_code=lambda: code, execution_id="exec_1", emit_status=emit_status)
        return await self._execute_tool(
            runtime_ctx=ctx,
            tool_execution_context={"tool_id": tool_id, "params": params, "reasoning": notes},
            workdir=self.outdir,
            outdir=self.outdir,
            tool_manager=None,
            logger=SimpleNamespace(log=lambda text, level: self.log.append((level, text))),
            tool_call_id=call_id,
            exec_streamer=streamer if code is not None else None,
        )

    def _take(self, call_id, is_exec, params):
        """Hosts what the answer has, and adds its blocks."""
        files = [item["output"] for item in self.answer["items"]] if is_exec else [{"path": params["path"]}]
        for file in files:
            if self.answer["error"] and not is_exec:
                self.notice(call_id, "tool_result_error", error=self.answer["error"])
                break
            path = file["path"]
            data = (self.outdir / self._below / path).read_bytes()
            self.hosted[path] = data
            mime = file.get("mime") or mimetypes.guess_type(path)[0]
            turn, _, rest = path.partition("/")
            logical = f"{self._prefix}fi:{turn}.{rest}"
            digest = {"artifact_path": logical, "physical_path": path, "mime": mime, "size_bytes": len(data)}
            result = f"tc:{self.turn}.{call_id}.result"
            self.add("react.tool.result", result, "application/json", text=json.dumps(digest))
            if mime.startswith(("image/", "application/pdf")):
                self.add("react.tool.result", logical, mime, base64="")
            elif file.get("text"):
                self.add("react.tool.result", logical, mime, text=file["text"])
