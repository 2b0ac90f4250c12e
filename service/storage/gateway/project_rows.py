"""Rows of a tenant's projects, and the stored answers of creating routes."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, insert, select

from proofbox.service.errors import IdReusedError
from proofbox.service.gateway.spaces.port import RequestKey
from proofbox.service.identity import Principal
from proofbox.service.storage.conversation_rows import (
    PRINCIPAL,
    lock_principal,
    new_or_known,
    principal_values,
    utc_now,
)
from proofbox.service.storage.gateway.schema import created_records, projects
from proofbox.service.storage.schema import principals

PROJECT = (
    select(projects.c.id)
    .where(projects.c.tenant == bindparam("of_tenant"), projects.c.project == bindparam("of_project"))
    .scalar_subquery()
)
"""The row of the project of `project_values`, inside another query."""
_CREATED = select(created_records.c.request_sha256, created_records.c.status, created_records.c.answer).where(
    created_records.c.principal == bindparam("of_principal"), created_records.c.name == bindparam("of_name")
)


@dataclass(frozen=True, slots=True)
class StoredCreation:
    """The answer of an earlier request with the same key.

    Attributes:
        status: its HTTP status.
        answer: its JSON text.
    """

    status: int
    answer: str


def project_values(principal: Principal) -> dict[str, str]:
    """Return the parameters of `PROJECT`."""
    return {"of_tenant": principal.tenant, "of_project": principal.project}


def ensure_project(connection: Connection, principal: Principal) -> int:
    """Return the row of a principal's project; insert it if it is new."""
    values = project_values(principal)
    found = connection.scalar(select(PROJECT), values)
    if found is None:
        row = {"tenant": principal.tenant, "project": principal.project}
        connection.execute(new_or_known(projects, connection.dialect.name), row)
        found = connection.scalar(select(PROJECT), values)
    assert found is not None
    return int(found)


def ensure_principal(connection: Connection, principal: Principal) -> int:
    """Return the row of a principal; insert it if it is new."""
    values = principal_values(principal)
    found = connection.scalar(select(PRINCIPAL), values)
    if found is None:
        row = {name.removeprefix("scope_"): value for name, value in values.items()}
        connection.execute(new_or_known(principals, connection.dialect.name), row)
        found = connection.scalar(select(PRINCIPAL), values)
    assert found is not None
    return int(found)


def find_creation(connection: Connection, principal: Principal, key: RequestKey | None) -> StoredCreation | None:
    """Return the stored answer of a creating request that was repeated; other requests with the key wait.

    Raises:
        IdReusedError: the key was used for another request.
    """
    if key is None:
        return None
    owner = ensure_principal(connection, principal)
    lock_principal(connection, owner)
    found = connection.execute(_CREATED, {"of_principal": owner, "of_name": key.name}).first()
    if found is None:
        return None
    if found.request_sha256 != key.sha256:
        raise IdReusedError(
            f"the Idempotency-Key '{key.name}' has been used with another request; repeat that request unchanged, "
            "or send this one with a new Idempotency-Key"
        )
    return StoredCreation(found.status, found.answer)


def store_creation(
    connection: Connection, principal: Principal, key: RequestKey | None, creation: StoredCreation
) -> None:
    """Store the answer of a creating request in its transaction, after `find_creation` found none."""
    if key is None:
        return
    row = {
        "principal": ensure_principal(connection, principal),
        "name": key.name,
        "request_sha256": key.sha256,
        "status": creation.status,
        "answer": creation.answer,
        "created": utc_now(),
    }
    connection.execute(insert(created_records), row)
