"""Waits until the brokers of a NATS cluster are ready for streams. Run by nats.sh.

Usage: nats_ready.py MONITOR_URL,MONITOR_URL,… [SECONDS]. Exit status 1, with the reason, if they are not in time.
"""

import http.client
import json
import sys
import time
from typing import Any
from urllib.parse import urlsplit

_START_S = 30.0
_POLL_S = 0.05
_OK = 200


def read_figures(monitor_url: str, path: str) -> dict[str, Any]:
    """The JSON of a broker's monitoring page; empty if it does not answer 200."""
    connection = http.client.HTTPConnection(urlsplit(monitor_url).netloc, timeout=2)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        found: dict[str, Any] = json.loads(body) if response.status == _OK else {}
    except (OSError, http.client.HTTPException, ValueError):
        return {}
    else:
        return found
    finally:
        connection.close()


def find_faults(monitor_urls: list[str]) -> list[str]:
    """Why a cluster is not ready; empty if it is: each broker is healthy and they have one leader."""
    faults = [
        f"{url} is not healthy" for url in monitor_urls if read_figures(url, "/healthz").get("status") != "ok"
    ]
    if faults:
        return faults
    leaders = {read_figures(url, "/jsz").get("meta_cluster", {}).get("leader") for url in monitor_urls}
    return [] if len(leaders) == 1 and None not in leaders and "" not in leaders else ["there is no leader"]


def wait_until_ready(monitor_urls: list[str], within_s: float = _START_S) -> None:
    """Wait for a cluster.

    Raises:
        TimeoutError: it is not ready in time.
    """
    deadline = time.monotonic() + within_s
    while faults := find_faults(monitor_urls):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the NATS cluster is not ready after {within_s:g} s: {'; '.join(faults)}")
        time.sleep(_POLL_S)


if __name__ == "__main__":
    try:
        wait_until_ready(sys.argv[1].split(","))
    except TimeoutError as exc:
        sys.exit(f"nats: {exc}")
