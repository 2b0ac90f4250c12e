"""Spaces for the page of a space: persons, an agent with tools of all kinds, its runs and calls, over the API."""

import itertools
import json
from collections.abc import Sequence
from typing import Any, Self

import httpx
from playwright.sync_api import expect

HOSTILE = "<img src=x onerror=window.hit=1><script>window.hit=1</script>"
RTL = "bill\u202egpj.exe"
FORM_SCHEMA = {
    "type": "object",
    "required": ["city", "nights", "meals", "guests"],
    "properties": {
        "city": {"type": "string", "title": "City", "minLength": 2, "maxLength": 40, "pattern": "^[A-Z]"},
        "nights": {"type": "integer", "title": "Nights", "minimum": 1, "maximum": 14},
        "price": {"type": "number", "title": "Price a night", "exclusiveMinimum": 0},
        "meals": {"enum": ["none", "breakfast", "all"], "title": "Meals"},
        "quiet": {"type": "boolean", "title": "Quiet room"},
        "guests": {"type": "array", "title": "Guests", "minItems": 1, "maxItems": 3, "items": {"type": "string"}},
        "contact": {
            "type": "object",
            "title": "Contact",
            "required": ["mail"],
            "properties": {"mail": {"type": "string", "title": "Mail"}, "phone": {"type": "string"}},
        },
    },
}
ELICITED_SCHEMA = {
    "type": "object",
    "description": "The server asks for your table",
    "required": ["action"],
    "additionalProperties": False,
    "if": {"properties": {"action": {"const": "accept"}}},
    "then": {"required": ["content"]},
    "properties": {
        "action": {"enum": ["accept", "decline", "cancel"]},
        "content": {
            "type": "object",
            "properties": {"table": {"type": "integer", "title": "Table"}},
            "required": ["table"],
        },
    },
}
_SHOW = {"executionType": "gateway", "execution": {"output": "{{input}}"}}
_ASK = {"executionType": "space", "execution": {"timeout": 3_600_000}}
_PYTHON = "exec_tools.execute_code_python"
_DRAW = {"tool": _PYTHON, "params": {"contract": "{{input.contract}}"}, "code": "{{input.code}}"}
_DRAWN = {
    "type": "object",
    "properties": {"code": {"type": "string"}, "contract": {"type": "array"}},
    "required": ["code", "contract"],
}
_PICTURE_CARD = {"customUI": "image", "showInput": False}
TOOLS = [
    {"name": "show", **_SHOW},
    {"name": "chart", **_SHOW, "display": {"customUI": "chart"}},
    {"name": "guarded", **_SHOW, "requiresApproval": True},
    {"name": "ask", **_ASK, "display": {"customUI": "form"}, "resultSchema": FORM_SCHEMA},
    {"name": "ask_anything", **_ASK},
    {"name": "ask_shortly", **_ASK, "execution": {"timeout": 1_500}},
    {"name": "elicit", **_ASK, "display": {"customUI": "elicitation"}, "resultSchema": ELICITED_SCHEMA},
    {"name": "draw", "executionType": "gateway", "execution": _DRAW,
     "inputSchema": _DRAWN, "display": _PICTURE_CARD},
]  # fmt: skip
PICTURE = (
    "import struct, zlib\n"
    "def part(name, data):\n"
    "    return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))\n"
    "rows = (b'\\x00' + bytes([36, 86, 196] * WIDTH)) * HEIGHT\n"
    "png = b'\\x89PNG\\r\\n\\x1a\\n' + part(b'IHDR', struct.pack('>IIBBBBB', WIDTH, HEIGHT, 8, 2, 0, 0, 0))\n"
    "png += part(b'IDAT', zlib.compress(rows)) + part(b'IEND', b'')\n"
    "open('files/blue.png', 'wb').write(png)\n"
)
_numbers = itertools.count(1)


class Stage:
    """A space with the persons ann and ben and an agent that has a run in it.

    Args:
        url: the service.
        key: a key, if it needs one; with all scopes that this takes.
        name: the name of the space.
        tools: the tools of its agent.
        servers: the MCP servers of its agent.
    """

    def __init__(
        self,
        url: str,
        key: str = "",
        name: str = "Kitchen",
        tools: Sequence[dict[str, Any]] = TOOLS,
        servers: Sequence[dict[str, Any]] = (),
    ) -> None:
        self.url = url
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._web = httpx.Client(base_url=url, headers=headers, timeout=120, trust_env=False, verify=False)
        self._calls = 0
        for person in ("ann", "ben"):
            body = {"type": "human", "handle": person, "display_name": person.title()}
            self.sent("PUT", f"/v1/entities/{person}", json=body)
        self.agent = f"helper{next(_numbers)}"
        document = {
            "version": "2", "agent": {"name": self.agent}, "tools": [*tools], "mcp": {"servers": [*servers]},
        }  # fmt: skip
        self.sent("PUT", f"/v1/agents/{self.agent}", json=document)
        members = ["ann", "ben", f"agent:{self.agent}"]
        self.space = self.sent("POST", "/v1/spaces", json={"name": name, "members": members})["space_id"]
        self.where = f"/v1/spaces/{self.space}"
        self.page = f"{url}/spaces/{self.space}"
        self.run = self.sent("POST", "/v1/runs", json={"agent_id": self.agent, "space_id": self.space})
        self.lease = {"Run-Lease": str(self.run["lease"]["number"])}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._web.close()

    def sent(self, method: str, path: str, **options: Any) -> Any:
        """Send a request that has to succeed; the body of its answer."""
        answer = self._web.request(method, path, **options)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def link(self, person: str = "ann", expires_s: int = 3_600) -> str:
        """Return a shared link of a person."""
        body = {"entity_id": person, "expires_s": expires_s}
        return f"{self.page}#token={self.sent('POST', f'{self.where}/tokens', json=body)['token']}"

    def say(self, text: str, person: str = "ben", **more: Any) -> str:
        """Post a text; the id of the message."""
        body = {"text": text, "entity_id": person, **more}
        return str(self.sent("POST", f"{self.where}/messages", json=body)["message"]["message_id"])

    def new_call_id(self) -> str:
        """Return the id of another call."""
        self._calls += 1
        return f"call_{self._calls}"

    def call(self, tool: str, params: dict[str, Any], call_id: str = "") -> Any:
        """Call a tool: its answer, or its status while it waits."""
        body = {
            "run_id": self.run["run_id"], "conversation_id": self.run["conversation_id"], "tool_id": tool,
            "tool_call_id": call_id or self.new_call_id(), "params": params,
        }  # fmt: skip
        return self.sent("POST", "/v1/tool-calls", json=body, headers=self.lease)

    def draw(self, width: int = 60, height: int = 40) -> Any:
        """Call the tool that makes a picture of so many pixels."""
        contract = [{"filename": "blue.png", "description": "blue"}]
        return self.call("draw", {"code": f"WIDTH, HEIGHT = {width}, {height}\n{PICTURE}", "contract": contract})

    def write(self, call_id: str, tool: str, text: str, offset: int = 0) -> int:
        """Pass on a part of the arguments that a model writes; the length so far."""
        path = f"/v1/runs/{self.run['run_id']}/tool-inputs/{call_id}"
        part = {"tool": tool, "offset": offset, "delta": text}
        return int(self.sent("POST", path, json=part, headers=self.lease)["length"])

    def result(self, call_id: str) -> Any:
        """Return the answer of a call that has ended."""
        query = {"conversation_id": self.run["conversation_id"]}
        return self.sent("GET", f"/v1/tool-calls/{call_id}", params=query)["response"]

    def wait(self, call_id: str) -> Any:
        """Return what a call waits for."""
        query = {"conversation_id": self.run["conversation_id"]}
        return self.sent("GET", f"/v1/tool-calls/{call_id}", params=query)["wait"]


def as_json(value: Any) -> str:
    """Return JSON text as a model writes it."""
    return json.dumps(value, ensure_ascii=False)


def opened(open_page: Any, stage: Stage, person: str = "ann", **options: Any) -> Any:
    """Open the page of a space by a shared link, and wait until it is connected."""
    page = open_page(stage.link(person), **options)
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    return page


def card(page: Any, name: str) -> Any:
    """Return the newest card of a tool."""
    return page.locator("article", has=page.locator(".call-card", has_text=name)).last
