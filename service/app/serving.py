"""Serve the API: the HTTP application, the server's configuration, and the process until it stops."""

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from proofbox.contracts.operations import AllowedPackages
from proofbox.service.api.app import create_app, create_worker_app, release
from proofbox.service.api.connections import ConnectionLimits, make_room_for_connections
from proofbox.service.api.server import DrainingServer, server_config
from proofbox.service.api.services import Services
from proofbox.service.app import malloc_tuning
from proofbox.service.app.auth_policy import allowed_hosts, build_authenticator
from proofbox.service.app.bootstrap import Service, build, running
from proofbox.service.app.facades import build_facades
from proofbox.service.app.ports import check_port, format_url, write_address
from proofbox.service.app.settings import Settings
from proofbox.service.app.tools import absent_tools
from proofbox.service.app.unknown_settings import refuse_unknown_settings
from proofbox.service.console.routes import console_routes
from proofbox.service.identity import Principal
from proofbox.service.mcp.endpoint import mcp_route
from proofbox.service.mcp.options import McpOptions
from proofbox.service.observability.log_format import START_LOGGER
from proofbox.service.packages.port import Packages
from proofbox.service.sandbox.limits import CallLimits, limit_names
from proofbox.service.storage.readiness import StoreReadiness

_LAST_ANSWERS_S = 5  # time limit of answers and event streams that are still being sent
_LAST_WORK_S = 5  # time limit of closing stores and engine
_log = logging.getLogger("proofbox")


def application(service: Service) -> FastAPI:
    """Build the HTTP application over a running service."""
    services = Services(
        calls=service.calls,
        provenance=service.provenance,
        attachments=service.attachments,
        artifacts=service.artifacts,
        history=service.history,
        previews=service.previews,
        recent_calls=service.recent_calls,
        operations=service.operations,
        conversations=service.conversations,
        sources=service.sources,
        timeline=service.timeline,
        paths=service.paths,
        engine=service.engine,
        ping_engine=_ping_of(service),
        image=service.image,
        authenticator=build_authenticator(
            service.settings, service.principal, service.keyring, service.gateway.services.tokens
        ),
        quotas=service.quotas,
        links=service.links,
        uploads=service.uploads,
        public_url=service.settings.public_url,
        hosts=allowed_hosts(service.settings),
        metrics=service.meter.text,
        meter=service.meter,
        tracer=service.tracer,
        draining=lambda: service.calls.is_closing,
        check_stores=StoreReadiness(
            service.database, service.settings.data_dir, check_bytes=service.artifacts.check_bytes
        ).check,
        body_bytes_max=service.settings.body_bytes_max,
        bodies_bytes_max=service.settings.bodies_bytes_max,
        body_s=service.settings.body_s,
        heartbeat_s=service.settings.heartbeat_s,
        absent_tools=absent_tools(),
        packages_of=_packages_of(service.packages),
        gateway=service.gateway.services,
        network_of=service.network.list_hosts,
        space_origins=frozenset(service.settings.space_origins),
    )
    if service.dispatching is not None:
        services = replace(services, find_away=service.dispatching.find_away)
    if service.dispatching is not None and not service.settings.accepts_calls:
        return create_worker_app(services)
    app = create_app(services, facades=build_facades(service, services))
    if service.settings.mcp:
        app.router.routes.append(mcp_route(services, _mcp_options(service.settings)))
    if service.settings.console:
        app.router.routes.extend(console_routes())
    return app


def _packages_of(packages: Packages | None) -> Callable[[Principal], AllowedPackages | None]:
    return lambda principal: None if packages is None else packages.describe(principal.caller)


def _ping_of(service: Service) -> Callable[[], Awaitable[None]] | None:
    if service.dispatching is None:
        return None
    if not service.settings.runs_calls:
        return _no_engine
    return None if service.settings.accepts_calls else service.dispatching.ping_worker


async def _no_engine() -> None:
    """An API process has none to ask."""


def _mcp_options(settings: Settings) -> McpOptions:
    absent = {*absent_tools(), *([] if settings.web_search_url else ["web_tools.web_search"])}
    days = settings.retention_days
    stored = {"retention": f"for {days:g} days after the last use"} if days else {}
    return McpOptions(
        limits=CallLimits(**{name: getattr(settings, name) for name in limit_names()}),
        release=release(),
        link_s=settings.link_s,
        absent_tools=frozenset(absent),
        has_packages=bool(settings.package_index),
        **stored,
    )


def serve(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        ServiceError: an environment variable names no setting, the port is in use, or a store or the engine cannot
            be used; the message has the remedy.
    """
    refuse_unknown_settings(os.environ)
    check_port(settings.host, settings.port)
    malloc_tuning.share_arenas()
    asyncio.run(_serve(build(settings)))


def http_config(service: Service) -> uvicorn.Config:
    """Build the configuration of the HTTP server."""
    settings = service.settings
    connections_max = make_room_for_connections(settings.connections_max)
    limits = ConnectionLimits(
        settings.head_s, settings.unread_s, connections_max, settings.connections_per_address_max
    )
    address = settings.host, settings.port
    return server_config(application(service), address, limits=limits, last_answers_s=_LAST_ANSWERS_S)


class AnnouncedServer(DrainingServer):
    """A server that logs its address, one line that every level has, and writes it to a file.

    A service for one command has neither.
    """

    def __init__(
        self, config: uvicorn.Config, drain: Callable[[], Awaitable[None]], address_file: Path | None
    ) -> None:
        super().__init__(config, drain)
        self._address_file = address_file

    async def startup(self, sockets: Any = None) -> None:
        """Listen, and publish the address."""
        await super().startup(sockets)
        for listener in [listener for server in self.servers for listener in server.sockets][:1]:
            host, port = listener.getsockname()[:2]
            logging.getLogger(START_LOGGER).info("Proofbox %s is running on %s", release(), format_url(host, port))
            if self._address_file is not None:
                write_address(self._address_file, host, port)


async def _serve(service: Service) -> None:
    settings = service.settings

    async def drain() -> None:
        _exit_after(settings.shutdown_grace_s + _LAST_ANSWERS_S + _LAST_WORK_S)
        service.gateway.spaces.feed.close()  # its streams have no end of their own
        works = [service.calls.close(settings.shutdown_grace_s)]
        if service.dispatching is not None:
            works.append(service.dispatching.stop_work())
        await asyncio.gather(*works)

    async with running(service, serves=True):
        malloc_tuning.settle()
        await AnnouncedServer(http_config(service), drain, settings.address_file).serve()


def _exit_after(seconds: float) -> None:
    """Exit after a time limit although a store or the engine does not answer: a thread cannot be stopped.

    Work in progress is lost, as by a power cut; the next process answers its calls and removes its containers.
    """

    def exit_now() -> None:
        _log.error("shutdown timed out after %g s; exiting", seconds)
        os._exit(1)

    timer = threading.Timer(seconds, exit_now)
    timer.daemon = True
    timer.start()
