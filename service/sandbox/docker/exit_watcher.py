"""What ended containers: one that has ended is often gone before anybody can ask the engine about it."""

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import requests
from docker.errors import DockerException

_REMEMBERED = 1000
_AGAIN_AFTER_S = 1.0
_EVENT_WITHIN_S = 1.0
_OUT_OF_MEMORY = "oom"
_DIED = "die"


class ExitWatcher:
    """Follows an engine's events in a thread of its own; what happens while the engine is away stays unknown.

    Args:
        api: a client of the engine.
        label: which containers.
        exits: whether exit codes are wanted too, at an event for each container.
    """

    def __init__(self, api: Any, label: str, *, exits: bool) -> None:
        self._api = api
        self._filters = {"event": [_OUT_OF_MEMORY, *([_DIED] if exits else [])], "label": [label]}
        self._out_of_memory: OrderedDict[str, bool] = OrderedDict()
        self._exit_codes: OrderedDict[str, int] = OrderedDict()
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._events: Any = None
        self._thread = threading.Thread(target=self._follow, name="engine-exits", daemon=True)
        self._thread.start()

    def ran_out_of_memory(self, container_id: str) -> bool:
        """Whether a container that has ended ran out of memory. Blocks, for as long as the news may take."""
        # That it has died does not show why: the engine learns of the two by different ways, in either order.
        self._wait(lambda: container_id in self._out_of_memory)
        return container_id in self._out_of_memory

    def exit_code(self, container_id: str) -> int | None:
        """The exit code of a container that has ended; None if it is unknown. Blocks, as the other one."""
        self._wait(lambda: container_id in self._exit_codes)
        return self._exit_codes.get(container_id)

    def close(self) -> None:
        """Ends the thread; never raises. Blocks for a moment."""
        self._ended.set()
        if self._events is not None:
            with contextlib.suppress(DockerException, OSError, AttributeError):
                self._events.close()
        self._thread.join(_AGAIN_AFTER_S)

    def _wait(self, known: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _EVENT_WITHIN_S
        with self._changed:
            while not known() and not self._ended.is_set() and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)

    def _follow(self) -> None:
        while not self._ended.is_set():
            with contextlib.suppress(DockerException, requests.RequestException, OSError, ValueError):
                self._events = self._api.events(filters=self._filters, decode=True)
                for event in self._events:
                    self._take(event["Action"], event["Actor"])
            self._ended.wait(_AGAIN_AFTER_S)

    def _take(self, action: str, container: dict[str, Any]) -> None:
        with self._changed:
            if action == _OUT_OF_MEMORY:
                self._out_of_memory[container["ID"]] = True
            else:
                self._exit_codes[container["ID"]] = int(container["Attributes"]["exitCode"])
            for record in (self._out_of_memory, self._exit_codes):
                if len(record) > _REMEMBERED:
                    record.popitem(last=False)
            self._changed.notify_all()
