"""The service for one command: in a thread of this process, at a loopback port, with a key of its own."""

import asyncio
import contextlib
import logging
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from proofbox.cli.connection import local_store, temporary_store
from proofbox.service.access.api_keys import ALL_PERMISSIONS, ApiKey, new_key_id, new_secret, secret_sha256
from proofbox.service.access.authenticator import Keyring
from proofbox.service.access.quotas import ALLOWANCE_NAMES
from proofbox.service.api.server import DrainingServer
from proofbox.service.app.bootstrap import Service, build, running
from proofbox.service.app.serving import http_config
from proofbox.service.app.settings import Settings
from proofbox.service.observability.log_format import configure
from proofbox.service.storage.error_translation import InUseError

# No process that imports libraries for later calls, and no containers for them.
_SINGLE_CALL = {"pool_reserve": 0, "import_once": "off"}


class _OneKey:
    """A store of keys with the key of this process."""

    def __init__(self, key: ApiKey) -> None:
        self._key = key

    async def all(self) -> list[ApiKey]:
        """Return the key."""
        return [self._key]

    async def note_use(self, used: Mapping[str, str]) -> None:
        """Nothing to store."""


class _AnnouncedServer(DrainingServer):
    """A server that passes its port to another thread."""

    def __init__(self, service: Service, port: "Future[int]") -> None:
        super().__init__(http_config(service), self._close_calls)
        self._service = service
        self._port = port

    async def startup(self, sockets: list[Any] | None = None) -> None:
        """Listen, and pass the port on."""
        await super().startup(sockets)
        self._port.set_result(self.servers[0].sockets[0].getsockname()[1])

    async def _close_calls(self) -> None:
        await self._service.calls.close(0)


class _LocalService:
    """A service in a thread."""

    def __init__(self, settings: Settings, key: ApiKey) -> None:
        self._settings = settings
        self._key = key
        self._server: _AnnouncedServer | None = None
        self._is_stopping = False
        self.port: Future[int] = Future()
        self.thread = threading.Thread(target=self._run, name="proofbox-local-service")

    def stop(self) -> None:
        """End the service and wait for it."""
        self._is_stopping = True
        if self._server is not None:
            self._server.should_exit = True
        self.thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as exc:  # noqa: BLE001 - the thread that waits for the port raises it
            if not self.port.done():
                self.port.set_exception(exc)

    async def _serve(self) -> None:
        service = replace(build(self._settings), keyring=Keyring(_OneKey(self._key)))
        async with running(service, serves=True):
            self._server = _AnnouncedServer(service, self.port)
            if not self._is_stopping:
                await self._server.serve()


@contextlib.contextmanager
def run_local_service(data_dir: Path, *, is_single_call: bool = False) -> Iterator[tuple[str, str]]:
    """Run the service while a block runs; give its URL and key.

    Args:
        data_dir: the folder of its store; one process at a time can use it.
        is_single_call: whether it starts for one call, so that nothing is prepared for later ones.

    Raises:
        ServiceError: the engine or the store cannot be used.
    """
    configure("text", logging.WARNING)
    settings = Settings.of_local_command(data_dir=data_dir, **(_SINGLE_CALL if is_single_call else {}))
    key_id = new_key_id()
    secret = new_secret(key_id)
    local = _LocalService(settings, _key(settings, key_id, secret))
    local.thread.start()
    try:
        yield f"http://127.0.0.1:{local.port.result()}", secret
    finally:
        local.stop()


@contextlib.contextmanager
def run_lasting_service(
    run: Callable[[Path], AbstractContextManager[tuple[str, str]]] = run_local_service,
) -> Iterator[tuple[str, str]]:
    """Run the service on the local store, or on a temporary one while another process uses that.

    Args:
        run: runs the service on a store; gives its URL and key.
    """
    with contextlib.ExitStack() as stack:
        store = local_store()
        try:
            running_service = stack.enter_context(run(store))
        except InUseError:
            sys.stderr.write(
                f"proofbox: another process uses {store}; this one has a temporary store, removed at its end\n"
            )
            running_service = stack.enter_context(run(stack.enter_context(temporary_store())))
        yield running_service


def _key(settings: Settings, key_id: str, secret: str) -> ApiKey:
    return ApiKey(
        id=key_id,
        name="local",
        tenant=settings.tenant,
        project=settings.project,
        user_type=None,
        user=None,
        permissions=ALL_PERMISSIONS,
        sha256=secret_sha256(secret),
        created=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        limits=dict.fromkeys(ALLOWANCE_NAMES, 0),
    )
