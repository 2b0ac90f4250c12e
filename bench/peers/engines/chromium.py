"""Chromium, headless, kept running as a rendering service keeps it: driven over its debugging pipe.

The figures are those of the browser's processes, before and after a job: CPU time of all, memory of the largest.
"""

import base64
import json
import os
from pathlib import Path
from typing import Any

from engines.pages import page_file

PATH = "/usr/bin/chromium-headless-shell"
FLAGS = (
    "--no-sandbox",  # no user namespaces in the container; the documents of the benchmark are our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--remote-debugging-pipe",
    "--user-data-dir=/tmp/chromium",
    "about:blank",
)
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
WIDTH_PX = 1280


class Browser:
    """A running browser."""

    def __init__(self) -> None:
        for_browser, self._to = os.pipe()
        self._from, of_browser = os.pipe()
        self.pid = os.posix_spawn(
            PATH,
            [PATH, *FLAGS],
            dict(os.environ),
            file_actions=[(os.POSIX_SPAWN_DUP2, for_browser, 3), (os.POSIX_SPAWN_DUP2, of_browser, 4)],
        )
        self._left = b""
        self.session = ""

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Calls a method of the DevTools protocol.

        Raises:
            RuntimeError: the browser's own error.
        """
        # A job that was ended has left answers in the pipe, and every job is a fork with the same counters.
        number = int.from_bytes(os.urandom(3))
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        while (answer := self._message()).get("id") != number:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def wait_for(self, event: str) -> None:
        """Waits for an event of the current session."""
        wanted = (event, self.session)
        while ((message := self._message()).get("method"), message.get("sessionId")) != wanted:
            pass

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            part = os.read(self._from, 1 << 20)
            if not part:
                raise RuntimeError("the browser has ended")
            self._left += part
        line, self._left = self._left.split(b"\0", 1)
        value: dict[str, Any] = json.loads(line)
        return value

    def render(self, page: Path, fmt: str) -> bytes:
        """A page as PDF or PNG, in a tab of its own."""
        self.session = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        if fmt == "png":
            metrics = {"width": WIDTH_PX, "height": 720, "deviceScaleFactor": 1, "mobile": False}
            self.call("Emulation.setDeviceMetricsOverride", **metrics)
        self.call("Page.navigate", url=page.as_uri())
        self.wait_for("Page.loadEventFired")
        if fmt == "png":
            data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        else:
            options = {"printBackground": True, "preferCSSPageSize": True, "generateTaggedPDF": True}
            data = self.call("Page.printToPDF", generateDocumentOutline=True, **options)["data"]
        self.session = ""
        self.call("Target.closeTarget", targetId=target)
        return base64.b64decode(data)

    def usage(self) -> tuple[float, float]:
        """CPU seconds of all processes so far, those that ended included; megabytes of the largest."""
        cpu_s, peak_mb = 0.0, 0.0
        for pid in _tree(self.pid):
            try:
                fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
                status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
            except OSError:
                continue
            cpu_s += sum(map(int, fields[11:15])) * TICK_S
            high_water = next((line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")), "0")
            peak_mb = max(peak_mb, int(high_water) * 1024 / 1e6)
        return cpu_s, peak_mb


def _tree(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text(encoding="utf-8").rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


_running: list[Browser] = []


def warm(fmt: str) -> None:
    """Starts the browser and renders a small document."""
    browser = Browser()
    _running.append(browser)
    page = Path("/tmp/warm.html")  # noqa: S108 - in a container that runs nothing else
    page.write_text("<h1>One</h1>", encoding="utf-8")
    browser.render(page, fmt)


def render_measured(job: dict[str, Any], fmt: str, target: Path) -> dict[str, float]:
    """Renders in the running browser; gives ``cpu_s`` and ``peak_mb`` of its processes.

    Raises:
        RuntimeError: the browser's own error.
    """
    (browser,) = _running
    began_s, _ = browser.usage()
    target.write_bytes(browser.render(page_file(job), fmt))
    ended_s, peak_mb = browser.usage()
    return {"cpu_s": ended_s - began_s, "peak_mb": peak_mb}
