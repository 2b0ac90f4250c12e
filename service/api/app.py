"""The HTTP application: routes and middleware."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline

from proofbox.service.api import docs_page, docs_site, openapi
from proofbox.service.api import error_handlers as error_answers
from proofbox.service.api.facade import Facade
from proofbox.service.api.middleware.access_log import AccessLogMiddleware
from proofbox.service.api.middleware.authentication import AuthenticationMiddleware, HostCheck
from proofbox.service.api.middleware.body_limit import BodyLimitMiddleware
from proofbox.service.api.middleware.security_headers import SecurityHeadersMiddleware
from proofbox.service.api.middleware.space_origins import SpaceOrigins
from proofbox.service.api.routes import (
    artifact_list,
    artifacts,
    attachments,
    call_events,
    conversations,
    file_archive,
    file_versions,
    health,
    metrics,
    operations,
    previews,
    provenance,
    timeline,
    tool_calls,
    tools,
    upload_links,
)
from proofbox.service.api.routes import download_links as links
from proofbox.service.api.routes.gateway import (
    agent_imports,
    agents,
    entities,
    external,
    messages,
    results,
    run_events,
    runs,
    space_events,
    spaces,
    tool_inputs,
)
from proofbox.service.api.services import Services

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]

_GATEWAY = (
    agents,
    agent_imports,
    runs,
    run_events,
    entities,
    spaces,
    messages,
    space_events,
    tool_inputs,
    results,
    external,
)


def create_app(
    services: Services,
    *,
    facades: Sequence[Facade] = (),
    lifespan: Lifespan | None = None,
    site: Path = docs_site.ARCHIVE,
) -> FastAPI:
    """Build the application.

    Args:
        services: the services that the routes use.
        facades: APIs of other products.
        lifespan: runs while requests are served.
        site: the archive of the built documentation site; it may be missing.
    """
    # FastAPI's documentation page loads its scripts from a CDN; FastAPIOffline serves them. The page is ours.
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
        conversations,
        upload_links,
        artifact_list,
        artifacts,
        links,
        file_versions,
        previews,
        file_archive,
        operations,
        timeline,
        health,
        metrics,
        docs_page,
        *_GATEWAY,
    )
    for module in routed:
        # Not include_router: it would analyse the parameters of each route again, for each application.
        app.router.routes.extend(module.router.routes)
    app.router.routes.extend(docs_site.DocsSite(site).routes())
    for facade in facades:
        app.router.routes.extend(facade.routes)
    error_answers.install(app)
    _add_middleware(app, services, facades)
    app.openapi = partial(openapi.document, app)  # type: ignore[method-assign]  # as FastAPI documents it
    return app


def create_worker_app(services: Services) -> FastAPI:
    """Build the application of a process that runs calls and accepts none: health and metrics."""
    app = FastAPI(title="Proofbox worker", version=release(), docs_url=None, redoc_url=None, openapi_url=None)
    app.state.services = services
    for module in (health, metrics, operations):
        app.router.routes.extend(module.router.routes)
    error_answers.install(app)
    _add_middleware(app, services, ())
    return app


_UPLOADS = tuple(
    f"PUT {module.ROUTE.partition('{')[0]}" for module in (attachments, upload_links)
)  # each goes to the disk


def _add_middleware(app: FastAPI, services: Services, facades: Sequence[Facade]) -> None:
    """Add the middleware; the last one added is the outermost."""
    app.add_middleware(
        BodyLimitMiddleware,
        bytes_max=services.body_bytes_max,
        own_bytes_max={
            **dict.fromkeys(_UPLOADS, services.attachments.bytes_max),
            **_upload_bytes_max(facades),
        },
        body_s=services.body_s,
        held_max=services.bodies_bytes_max,
    )
    app.add_middleware(
        AuthenticationMiddleware,
        authenticator=services.authenticator,
        quotas=services.quotas,
        facades=facades,
        public_url=services.public_url,
    )
    app.add_middleware(HostCheck, names=services.hosts)
    app.add_middleware(SpaceOrigins, origins=services.space_origins)
    app.add_middleware(SecurityHeadersMiddleware)
    app.add_middleware(AccessLogMiddleware, meter=services.meter, tracer=services.tracer)


def _upload_bytes_max(facades: Sequence[Facade]) -> dict[str, int]:
    return {path: bytes_max for facade in facades for path, bytes_max in facade.upload_bytes_max.items()}


def release() -> str:
    """Return the version of the service."""
    try:
        return version("proofbox")
    except PackageNotFoundError:
        return "0.0.0"  # a checkout without installation
