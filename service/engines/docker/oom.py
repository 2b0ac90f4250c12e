"""Which containers ran out of memory: one that did is often gone before anybody can ask the engine about it."""

import contextlib
import threading
import time
from collections import deque
from typing import Any

import requests
from docker.errors import DockerException

_REMEMBERED = 1000
_AGAIN_AFTER_S = 1.0
_TOLD_WITHIN_S = 0.5


class OomWatch:
    """Follows an engine's events in a thread of its own; what happens while the engine is away stays unknown."""

    def __init__(self, api: Any, label: str) -> None:
        self._api = api
        self._filters = {"event": ["oom"], "label": [label]}
        self._seen: deque[str] = deque(maxlen=_REMEMBERED)
        self._told = threading.Condition()
        self._ended = threading.Event()
        self._events: Any = None
        self._thread = threading.Thread(target=self._follow, name="engine-oom", daemon=True)
        self._thread.start()

    def saw(self, container_id: str) -> bool:
        """Whether a container that has ended ran out of memory. Blocks, for as long as the news may take."""
        deadline = time.monotonic() + _TOLD_WITHIN_S
        with self._told:
            while container_id not in self._seen:
                left = deadline - time.monotonic()
                if left <= 0 or self._ended.is_set():
                    return False
                self._told.wait(left)
            return True

    def close(self) -> None:
        """Ends the thread; never raises. Blocks for a moment."""
        self._ended.set()
        if self._events is not None:
            with contextlib.suppress(DockerException, OSError, AttributeError):
                self._events.close()
        self._thread.join(_AGAIN_AFTER_S)

    def _follow(self) -> None:
        while not self._ended.is_set():
            with contextlib.suppress(DockerException, requests.RequestException, OSError, ValueError):
                self._events = self._api.events(filters=self._filters, decode=True)
                for event in self._events:
                    with self._told:
                        self._seen.append(str(event["Actor"]["ID"]))
                        self._told.notify_all()
            self._ended.wait(_AGAIN_AFTER_S)
