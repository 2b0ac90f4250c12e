"""A service with keys whose principals differ, over real stores."""

import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import httpx
import pytest

from proofbox.service.access.api_keys import (
    ALL_PERMISSIONS,
    ApiKey,
    Permission,
    new_key_id,
    new_secret,
    secret_sha256,
)
from proofbox.service.access.authenticator import Authenticator, Keyring
from proofbox.service.api.app import create_app
from proofbox.service.artifacts.download_links import DownloadLinks
from proofbox.service.identity import Principal
from proofbox.service.storage.api_keys import SqlApiKeys
from proofbox.service.storage.conversation_rows import utc_now
from proofbox.service.storage.link_keys import LinkKeyFile
from tests.support.gateway_client import opened_loop
from tests.support.pipeline import services_over

ORIGIN = "https://chat.example.com"
NO_ACT_AS = ALL_PERMISSIONS - {Permission.SPACES_ACT_AS}


@dataclass
class Office:
    """A service that asks for keys.

    Attributes:
        loop: what drives runs without a key, over the same stores.
        admin: may act as anybody.
        ann, bob: act as themselves.
        reader: bob without `spaces:write`.
        blind: ann without `spaces:read`.
        foreigner: an admin of another tenant.
    """

    loop: object
    app: object
    stack: AsyncExitStack
    admin: httpx.AsyncClient = None
    ann: httpx.AsyncClient = None
    bob: httpx.AsyncClient = None
    reader: httpx.AsyncClient = None
    blind: httpx.AsyncClient = None
    foreigner: httpx.AsyncClient = None

    async def key(self, user, permissions=NO_ACT_AS, tenant="acme", project="books"):
        """A client with a new key of a user."""
        key_id = new_key_id()
        secret = new_secret(key_id)
        key = ApiKey(
            key_id, user, tenant, project, "registered", user, permissions, secret_sha256(secret), utc_now()
        )
        await SqlApiKeys(self.loop.pipeline.database).add(key)
        return await self.client(secret)

    async def client(self, secret=None):
        """A client with a credential, or none."""
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        client = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app, raise_app_exceptions=False),
            base_url="http://proofbox",
            headers=headers,
        )
        return await self.stack.enter_async_context(client)


@pytest.fixture
async def office(tmp_path):
    async with AsyncExitStack() as stack:
        loop = await stack.enter_async_context(opened_loop(tmp_path))
        services = services_over(loop.pipeline)
        keyring = Keyring(SqlApiKeys(loop.pipeline.database))
        tokens = loop.pipeline.gateway.services.tokens
        authenticator = Authenticator(
            Principal("acme", "books", "registered", "nobody"), keyring, required=True, tokens=tokens
        )
        links = DownloadLinks(LinkKeyFile(tmp_path / "data").in_use, 600, time.time)
        services = replace(services, authenticator=authenticator, links=links, space_origins=frozenset({ORIGIN}))
        app = create_app(services)
        office = Office(loop, app, stack)
        # All keys at first: they are cached for a second.
        office.admin = await office.key("admin", ALL_PERMISSIONS)
        office.ann, office.bob = await office.key("ann"), await office.key("bob")
        office.reader = await office.key("bob", NO_ACT_AS - {Permission.SPACES_WRITE})
        office.blind = await office.key("ann", NO_ACT_AS - {Permission.SPACES_READ})
        office.foreigner = await office.key("ann", ALL_PERMISSIONS, tenant="other")
        yield office


@pytest.fixture
async def people(office):
    """The office with the entities ann and bob, and the agent ``helper``."""
    for name in ("ann", "bob"):
        body = {"type": "human", "handle": name, "display_name": name.title(), "user": name}
        answer = await office.admin.put(f"/v1/entities/{name}", json=body)
        assert answer.status_code == 201, answer.text
    await office.loop.write_agent(name="helper")
    return office


@pytest.fixture
async def kitchen(people):
    """The id of a space of ann and the agent."""
    answer = await people.ann.post("/v1/spaces", json={"name": "Kitchen", "members": ["agent:helper"]})
    assert answer.status_code == 201, answer.text
    return answer.json()["space_id"]
