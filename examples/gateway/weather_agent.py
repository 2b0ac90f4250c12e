"""An agent with a weather tool, an approval and a chart, which a person watches in a space: `make example-gateway`.

    python examples/gateway/weather_agent.py [--yes] ['How warm does it get in Oslo?']

It runs a service with data of its own, and prints a link to the space. The tool that tells the team runs when
somebody approves it there; with `--yes` the program approves it itself and ends. Without a model of your own
(OPENAI_BASE_URL, OPENAI_MODEL, OPENAI_API_KEY), a scripted one of `local_server.py` answers.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from local_server import LocalServer

SYSTEM = "Ask for the forecast, show it as a line chart, then tell the team. Answer in one sentence."
STEPS_MAX = 10
PIECE_CHARS = 24
PIECE_PAUSE_S = 0.05  # as a model writes
READY_S = 120  # the first start may take long
Json = dict[str, Any]


def agent_configuration(server: str) -> Json:
    """The tools of the agent; `server` is the URL of what they ask."""
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    notice = {"type": "object", "properties": {"text": {"type": "string", "maxLength": 280}}, "required": ["text"]}
    numbers = {"type": "array", "items": {"type": "number"}}
    series = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "values": numbers},
        "required": ["values"],
    }
    chart = {
        "type": "object",
        "properties": {
            "type": {"enum": ["bar", "line"]},
            "title": {"type": "string"},
            "unit": {"type": "string"},
            "labels": {"type": "array", "items": {"type": "string"}},
            "series": {"type": "array", "items": series},
        },
        "required": ["type", "labels", "series"],
    }
    return {
        "version": "2",
        "agent": {"name": "forecaster", "system": SYSTEM},
        "tools": [
            {
                "name": "get_weather",
                "description": "The forecast of a city for five days",
                "inputSchema": city,
                "executionType": "gateway",
                "execution": {"url": f"{server}/forecast", "query": {"city": "{{input.city}}"}},
            },
            {
                "name": "show_chart",
                "description": "Shows a chart to the members of the space",
                "inputSchema": chart,
                "executionType": "gateway",
                "execution": {"output": "{{input}}"},
                "display": {"customUI": "chart", "showInput": False},
            },
            {
                "name": "tell_team",
                "description": "Sends a notice to the team",
                "inputSchema": notice,
                "executionType": "gateway",
                "execution": {"url": f"{server}/notices", "method": "POST"},
                "requiresApproval": True,
            },
        ],
    }


@contextlib.contextmanager
def serving(folder: Path, local_port: int) -> Iterator[str]:
    """Run a service whose tools may ask the local server; its URL."""
    address = folder / "address"
    settings = {
        "DATA_DIR": str(folder),
        "PORT": "0",  # a free one, which the service writes into its address file
        "ADDRESS_FILE": str(address),
        "POOL_SIZE": "0",
        "IMPORT_ONCE": "off",
        "GATEWAY_NETWORKS": '["127.0.0.0/8"]',
        "GATEWAY_PORTS": f"[{local_port}]",
    }
    # Settings of a service of the user's own are not for this one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PROOFBOX_")}
    environment |= {f"PROOFBOX_{name}": value for name, value in settings.items()}
    with (folder / "service.log").open("wb") as log:
        command = [sys.executable, "-m", "proofbox.cli", "serve"]
        service = subprocess.Popen(command, env=environment, stdout=log, stderr=log)  # noqa: S603 - our own
    try:
        ends = time.monotonic() + READY_S
        while not (address.exists() and is_ready(url := address.read_text().strip())):
            if service.poll() is not None or time.monotonic() > ends:
                why = f"the service is not ready after {READY_S} s" if service.poll() is None else "it ended"
                raise SystemExit(f"{why}; its log:\n{(folder / 'service.log').read_text()}")
            time.sleep(0.1)
        yield url
    finally:
        service.terminate()
        service.wait()


def is_ready(url: str) -> bool:
    """Whether a service answers."""
    try:
        return httpx.get(f"{url}/readyz", timeout=10, trust_env=False).is_success
    except httpx.TransportError:
        return False


class Loop:
    """The loop of the agent: it asks the model, and makes the calls that the model wants."""

    def __init__(self, web: httpx.Client, model: httpx.Client, run: Json, approve: httpx.Client | None) -> None:
        self._web, self._model, self._run, self._approve = web, model, run, approve
        self._lease = {"Run-Lease": str(run["lease"]["number"])}

    def solve(self, task: str) -> str:
        """Return the model's answer to a task."""
        query = {"run_id": self._run["run_id"], "format": "openai"}
        tools = sent(self._web.get("/v1/tools", params=query))["tools"]
        own = [tool for tool in tools if "__" not in tool["function"]["name"]]
        messages: list[Json] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task}]
        for _ in range(STEPS_MAX):
            body = {"model": os.environ.get("OPENAI_MODEL", "scripted"), "messages": messages, "tools": own}
            message = sent(self._model.post("chat/completions", json=body))["choices"][0]["message"]
            messages.append(message)
            if not message.get("tool_calls"):
                return str(message["content"])
            for call in message["tool_calls"]:
                content = self._call(call["id"], call["function"]["name"], call["function"]["arguments"])
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
        return f"no answer after {STEPS_MAX} steps"

    def say(self, text: str) -> None:
        """Post a text of the agent to the space."""
        self._call("call_answer", "send_message", json.dumps({"text": text}, ensure_ascii=False))

    def _call(self, call_id: str, name: str, arguments: str) -> str:
        """Make a call and return what the model reads of it; its arguments are shown while they are written."""
        run_id = self._run["run_id"]
        for offset in range(0, len(arguments), PIECE_CHARS):
            part = {"tool": name, "offset": offset, "delta": arguments[offset : offset + PIECE_CHARS]}
            sent(self._web.post(f"/v1/runs/{run_id}/tool-inputs/{call_id}", json=part, headers=self._lease))
            time.sleep(PIECE_PAUSE_S)
        body = {
            "run_id": run_id,
            "conversation_id": self._run["conversation_id"],
            "tool_id": name,
            "tool_call_id": call_id,
            "params": json.loads(arguments),
        }
        print(f"calls {name} {arguments}")
        response = self._web.post("/v1/tool-calls", json=body, headers={**self._lease, "Prefer": "wait=1"})
        while response.status_code == httpx.codes.ACCEPTED:
            self._wait(sent(response)["wait"])
            response = self._web.post("/v1/tool-calls", json=body, headers={**self._lease, "Prefer": "wait=30"})
        answer = sent(response)
        return json.dumps(answer["ret"] if answer["ok"] else answer["error"])

    def _wait(self, wait: Json) -> None:
        if self._approve is None:
            print(f"{wait['kind']}: answer it in the space")
            return
        print(f"{wait['kind']}: approved by the program, as --yes says")
        path = f"/v1/spaces/{wait['space_id']}/messages/{wait['message_id']}/result"
        sent(self._approve.post(path, json={"result": {"approved": True, "reason": "--yes"}}))


def model_client(local: LocalServer) -> httpx.Client:
    """Return the client of the user's model, through the user's proxies; else of the scripted one, through none."""
    own = os.environ.get("OPENAI_BASE_URL")
    key = os.environ.get("OPENAI_API_KEY", "none")
    return httpx.Client(
        base_url=(own or f"{local.url}/v1").rstrip("/") + "/",
        headers={"Authorization": f"Bearer {key}"},
        timeout=300,
        trust_env=own is not None,
    )


def sent(response: httpx.Response) -> Any:
    """Return the body of a response, or end with the text of its problem."""
    if not response.is_success:
        raise SystemExit(f"{response.request.method} {response.request.url}: {response.text}")
    return response.json()


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description="An agent with a weather tool, an approval and a chart.")
    parser.add_argument("--yes", action="store_true", help="approve without asking, and end")
    parser.add_argument("task", nargs="?", default="How warm does it get in Oslo? Tell the team, please.")
    given = parser.parse_args()
    with contextlib.ExitStack() as stack:
        local = stack.enter_context(LocalServer())
        threading.Thread(target=local.serve_forever, daemon=True).start()
        stack.callback(local.shutdown)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="proofbox-")))
        url = stack.enter_context(serving(folder, local.port))
        web = stack.enter_context(httpx.Client(base_url=url, timeout=90, trust_env=False))

        sent(web.put("/v1/agents/forecaster", json=agent_configuration(local.url)))
        sent(web.put("/v1/entities/you", json={"type": "human", "handle": "you", "display_name": "You"}))
        space = sent(web.post("/v1/spaces", json={"name": "Weather", "members": ["you", "agent:forecaster"]}))
        where = f"/v1/spaces/{space['space_id']}"
        token = sent(web.post(f"{where}/tokens", json={"entity_id": "you", "expires_s": 3_600}))["token"]
        print(f"open {url}/spaces/{space['space_id']}#token={token}", flush=True)
        person = stack.enter_context(
            httpx.Client(base_url=url, timeout=90, trust_env=False, headers={"Authorization": f"Bearer {token}"})
        )
        sent(person.post(f"{where}/messages", json={"text": given.task}))

        run = sent(web.post("/v1/runs", json={"agent_id": "forecaster", "space_id": space["space_id"]}))
        model = stack.enter_context(model_client(local))
        loop = Loop(web, model, run, person if given.yes else None)
        answer = loop.solve(given.task)
        loop.say(answer)
        lease = {"Run-Lease": str(run["lease"]["number"])}
        done = {"status": "completed", "summary": answer}
        sent(web.post(f"/v1/runs/{run['run_id']}/finish", json=done, headers=lease))
        for notice in local.notices:
            print(f"the team was told: {notice}")
        print(f"the agent: {answer}", flush=True)
        if not given.yes and sys.stdin.isatty():
            input("The space stays open until you press Enter. ")


if __name__ == "__main__":
    main()
