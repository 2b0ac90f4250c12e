"""What the example asks: a forecast, a board for notices, and a scripted model with the API of OpenAI."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri"]
CELSIUS = [14.5, 16, 19.5, 21, 17]


def next_message(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the scripted model says: a call for each step, made of the results before it."""
    results = [json.loads(message["content"]) for message in messages if message["role"] == "tool"]
    forecast, *others = results or [None]
    if forecast is None:
        return _call("call_weather", "get_weather", {"city": "Oslo"})
    forecast = forecast["data"]
    warmest = max(zip(forecast["celsius"], forecast["days"], strict=True))
    if not others:
        series = [{"name": forecast["city"], "values": forecast["celsius"]}]
        title = f"Highs in {forecast['city']}"
        shown = {"type": "line", "title": title, "unit": "°C", "labels": forecast["days"], "series": series}
        return _call("call_chart", "show_chart", shown)
    text = f"{warmest[1]} is the warmest day in {forecast['city']}: {warmest[0]:g} °C."
    told = others[1:]
    if not told:
        return _call("call_team", "tell_team", {"text": text})
    end = "The team knows." if told[0].get("data") == {"sent": True} else "The team was not told."
    return {"role": "assistant", "content": f"{text} {end}"}


def _call(call_id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


class LocalServer(ThreadingHTTPServer):
    """The server, on loopback.

    Attributes:
        notices: the texts that were sent to the team.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.notices: list[str] = []

    @property
    def port(self) -> int:
        """The port."""
        return self.server_port

    @property
    def url(self) -> str:
        """The URL without a slash at the end."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: LocalServer

    def do_GET(self) -> None:
        city = parse_qs(urlsplit(self.path).query).get("city", ["?"])[0]
        self._answer({"city": city, "days": DAYS, "celsius": CELSIUS})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/notices":
            self.server.notices.append(body["text"])
            self._answer({"sent": True})
        else:
            message = next_message(body["messages"])
            self._answer({"object": "chat.completion", "choices": [{"index": 0, "message": message}]})

    def _answer(self, value: dict[str, Any]) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
