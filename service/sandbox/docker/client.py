"""The Engine API, blocking calls kept off the event loop, foreign errors translated once."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound, NotFound

from proofbox.service.errors import EngineUnavailableError
from proofbox.service.public_cause import public_cause
from proofbox.service.sandbox.containers import OrphanContainer
from proofbox.service.sandbox.docker.abandoned_starts import AbandonedStarts
from proofbox.service.sandbox.docker.container_config import LABEL_BOOT, LABEL_SERVICE
from proofbox.service.sandbox.docker.exit_watcher import ExitWatcher

T = TypeVar("T")
_PIECE_BYTES = 1024 * 1024
_CONFLICT = 409  # "removal of container … is already in progress"


class EngineClient:
    """One Docker engine; every method raises EngineUnavailableError when it does not do what it is asked."""

    def __init__(self, host: str, timeout_s: float, threads: int) -> None:
        self._host = host
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="engine")
        self._client: docker.DockerClient | None = None
        self._deaths: ExitWatcher | None = None
        self._abandoned = AbandonedStarts(timeout_s)

    async def connect(self) -> None:
        """Connects and agrees on an API version."""

        def connect() -> docker.DockerClient:
            options: dict[str, Any] = {"timeout": self._timeout_s, "version": "auto"}
            host = self._host
            client = docker.DockerClient(base_url=host, **options) if host else docker.from_env(**options)
            if _is_socket_file(client.api):
                # Or each request looks for proxies and passwords, for a quarter of its time.
                client.api.trust_env = False
            return client

        where = self._host or os.environ.get("DOCKER_HOST") or "its default socket"
        self._client = await self._call(f"be reached at {where}", connect)

    async def close(self) -> None:
        """Closes the connections; never raises."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._deaths is not None:
            await asyncio.to_thread(self._deaths.close)
        if self._client is not None:
            with contextlib.suppress(DockerException, OSError):
                self._client.close()

    async def ping(self) -> None:
        """Asks the engine whether it is there."""
        await self._call("answer a ping", lambda: self._api().ping())

    async def info(self) -> dict[str, Any]:
        """The engine's description of itself."""
        return await self._call("describe itself", lambda: self._api().info())

    async def version(self) -> dict[str, Any]:
        """The engine's version and that of its parts."""
        return await self._call("name its version", lambda: self._api().version())

    async def image_id(self, image: str) -> str:
        """The id (digest) of an image."""
        inspected = await self._call("find the sandbox image", lambda: self._api().inspect_image(image))
        return str(inspected["Id"])

    async def save(self, image: str, into: Path) -> None:
        """Writes an image to a file, as ``docker save`` does."""

        def save() -> None:
            with into.open("xb") as file:
                for piece in self._api().get_image(image, chunk_size=_PIECE_BYTES):
                    file.write(piece)

        await self._call("hand out the sandbox image", save)

    async def start(self, config: dict[str, Any], name: str) -> tuple[str, socket.socket]:
        """Creates, attaches and starts a container; its id and the attached connection.

        Attached before it starts, so none of its output is lost.
        """

        def start() -> tuple[str, socket.socket]:
            api = self._api()
            container_id = str(api.create_container_from_config(config, name)["Id"])
            try:
                attached = api.attach_socket(
                    container_id, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
                )
                connection = _own_socket(attached)
                try:
                    api.start(container_id)
                except BaseException:
                    connection.close()
                    raise
            except BaseException:
                with contextlib.suppress(DockerException, OSError):
                    api.remove_container(container_id, force=True, v=True)
                raise
            return container_id, connection

        return await self._call("start a sandbox", start)

    def start_now(self, config: dict[str, Any], name: str) -> tuple[str, int]:
        """Creates and starts a container that nobody attaches to, and blocks; its id and its first process."""

        def start() -> tuple[str, int]:
            api = self._api()
            container_id = str(api.create_container_from_config(config, name)["Id"])
            try:
                api.start(container_id)
                return container_id, int(api.inspect_container(container_id)["State"]["Pid"])
            except BaseException:
                with contextlib.suppress(DockerException, OSError):
                    api.remove_container(container_id, force=True, v=True)
                raise

        return _translate("start a zygote", start)

    async def first_process(self, container_id: str) -> int:
        """The first process of a container, as the engine's machine counts; 0 if it has ended."""

        def inspect() -> int:
            try:
                return int(self._api().inspect_container(container_id)["State"]["Pid"])
            except NotFound:
                return 0

        return await self._call("inspect a sandbox", inspect)

    async def remove(self, container_id: str) -> None:
        """Removes a container, running or not; one that is gone or going is fine."""
        await self._call("remove a sandbox", lambda: self._remove(container_id))

    def remove_now(self, container_id: str) -> None:
        """As `remove`, and blocks."""
        _translate("remove a zygote", lambda: self._remove(container_id))

    def _remove(self, container_id: str) -> None:
        try:
            self._api().remove_container(container_id, force=True, v=True)
        except NotFound:
            return
        except APIError as exc:
            if exc.status_code != _CONFLICT:
                raise

    def labelled_now(self, label: str, value: str) -> list[dict[str, Any]]:
        """All containers with a label, running or not, as the engine lists them; blocks."""
        filters = {"label": f"{label}={value}"}
        return _translate("list zygotes", lambda: list(self._api().containers(all=True, filters=filters)))

    @property
    def is_on_this_machine(self) -> bool:
        """Whether it is reached over a socket file; that of another machine would have to be forwarded to one."""
        return _is_socket_file(self._api())

    async def update(self, container_id: str, resources: dict[str, Any]) -> None:
        """Changes resources of a running container, named as in the Engine API."""

        def update() -> None:
            api = self._api()  # its own method knows neither processes nor a share of the CPU in cores
            url = f"{api.base_url}/v{api.api_version}/containers/{container_id}/update"
            api.post(url, json=resources, timeout=self._timeout_s).raise_for_status()

        await self._call("change the limits of a sandbox", update)

    async def rename(self, container_id: str, name: str) -> None:
        """Gives a container another name; one that is gone is fine."""

        def rename() -> None:
            with contextlib.suppress(NotFound):
                self._api().rename(container_id, name)

        await self._call("rename a sandbox", rename)

    async def watch_deaths(self, service_name: str, *, exits: bool) -> None:
        """From here on more is known of this service's containers that have gone: also exit codes, if wanted."""
        api, label = self._api(), f"{LABEL_SERVICE}={service_name}"
        self._deaths = await self._call("stream its events", lambda: ExitWatcher(api, label, exits=exits))

    async def died_of_memory(self, container_id: str) -> bool:
        """Whether the kernel killed processes of a container for memory; False if nobody knows."""

        def inspect() -> bool:
            try:
                if self._api().inspect_container(container_id)["State"]["OOMKilled"]:
                    return True
            except NotFound:
                pass
            return self._deaths is not None and self._deaths.ran_out_of_memory(container_id)

        return await self._call("inspect a sandbox", inspect)

    async def exit_code(self, container_id: str) -> int | None:
        """The exit code of a container that has ended; None if nobody knows."""
        deaths = self._deaths
        return None if deaths is None else await self._call("say", lambda: deaths.exit_code(container_id))

    async def list_orphans(self, service_name: str) -> list[OrphanContainer]:
        """All containers of this service, running or not, and those that any service created and abandoned."""

        def listed() -> list[OrphanContainer]:
            api = self._api()
            own = api.containers(all=True, filters={"label": f"{LABEL_SERVICE}={service_name}"})
            created = api.containers(all=True, filters={"label": LABEL_BOOT, "status": "created"})
            abandoned = self._abandoned.find(str(row["Id"]) for row in created)
            rows = {row["Id"]: row for row in [*own, *(row for row in created if row["Id"] in abandoned)]}
            return [
                OrphanContainer(
                    container_id=str(row["Id"]),
                    name=str((row["Names"] or [""])[0]).lstrip("/"),  # one that is being removed has none
                    boot_id=str(row["Labels"].get(LABEL_BOOT, "")),
                )
                for row in rows.values()
            ]

        return await self._call("list sandboxes", listed)

    def _api(self) -> Any:
        if self._client is None:
            raise EngineUnavailableError("the engine client is not connected")
        return self._client.api

    async def _call(self, what: str, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: _translate(what, call))


def _is_socket_file(api: docker.APIClient) -> bool:
    return str(api.base_url).startswith("http+docker://")


def _translate(what: str, call: Callable[[], T]) -> T:
    try:
        return call()
    except ImageNotFound as exc:
        raise EngineUnavailableError(
            f"the engine has no sandbox image ({exc.explanation}); run 'proofbox image build', or in a checkout "
            "'make images'"
        ) from exc
    except (DockerException, requests.RequestException, OSError) as exc:
        raise EngineUnavailableError(f"the container engine could not {what}: {_short_cause(exc)}") from exc


def _short_cause(exc: BaseException) -> str:
    """Why, in words that anybody may read; the log has the engine's text as it is."""
    while True:
        if (status := getattr(getattr(exc, "response", None), "status_code", None)) is not None:
            words = public_cause(getattr(exc, "explanation", None) or "")
            return f"it answered {status}{words and f': {words}'}"
        if isinstance(exc, requests.Timeout | TimeoutError):
            return "it did not answer in time"
        if (cause := exc.__cause__ or exc.__context__) is None:
            break
        exc = cause
    if isinstance(exc, OSError) and exc.strerror:
        return exc.strerror.lower()
    return "it broke the connection" if isinstance(exc, ConnectionError) else type(exc).__name__


def _own_socket(attached: Any) -> socket.socket:
    """The connection itself: the SDK wraps a plain one, and closes it with the response it belongs to."""
    connection = getattr(attached, "_sock", attached)
    if type(connection) is not socket.socket:
        return connection  # type: ignore[no-any-return]  # TLS
    try:
        return socket.socket(fileno=os.dup(connection.fileno()))
    finally:
        attached.close()
        connection.close()  # closing the wrapper alone leaves the descriptor to the garbage collector
