"""The HTTP application: every route, and every guard around them."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from importlib.metadata import PackageNotFoundError, version

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline

from service.api import docs_page, openapi
from service.api import error_handlers as error_answers
from service.api.middleware.access_log import AccessLogMiddleware
from service.api.middleware.authentication import AuthenticationMiddleware, HostCheck
from service.api.middleware.body_limit import BodyLimitMiddleware
from service.api.middleware.security_headers import SecurityHeadersMiddleware
from service.api.routes import (
    artifact_list,
    artifacts,
    attachments,
    call_events,
    health,
    metrics,
    provenance,
    timeline,
    tool_calls,
    tools,
)
from service.api.routes import download_links as links
from service.api.services import Services

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def create_app(services: Services, *, lifespan: Lifespan | None = None) -> FastAPI:
    """The application that serves what ``services`` lead to.

    Args:
        services: the services, made by the composition root.
        lifespan: what has to be running while requests are served.
    """
    # FastAPI's own page of documentation loads its scripts from a CDN; this one brings them along.
    # (Its page is of our own making; from here come the scripts.)
    app = FastAPIOffline(
        title="Proofbox",
        summary="Sandboxed code execution for agents: promised files, proven.",
        version=release(),
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        docs_url=None,
        redoc_url=None,
        static_url=docs_page.STATIC,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.services = services
    routed = (
        tool_calls,
        call_events,
        provenance,
        tools,
        attachments,
        artifact_list,
        artifacts,
        links,
        timeline,
        health,
        metrics,
        docs_page,
    )
    for module in routed:
        app.include_router(module.router)
    error_answers.install(app)
    app.add_middleware(
        BodyLimitMiddleware,
        bytes_max=services.body_bytes_max,
        # The one route that takes files takes them with this method.
        bytes_max_of_method={"PUT": services.attachments.bytes_max},
        body_s=services.body_s,
        held_max=services.bodies_bytes_max,
    )
    app.add_middleware(AuthenticationMiddleware, authenticator=services.authenticator, quotas=services.quotas)
    app.add_middleware(HostCheck, names=services.hosts)
    app.add_middleware(SecurityHeadersMiddleware)
    app.add_middleware(
        AccessLogMiddleware, meter=services.meter, tracer=services.tracer
    )  # the last one added is the outermost
    app.openapi = partial(openapi.document, app)  # type: ignore[method-assign]  # as FastAPI documents it
    return app


def release() -> str:
    """The version of the service."""
    try:
        return version("proofbox")
    except PackageNotFoundError:
        return "0.0.0"  # a checkout that was not installed
