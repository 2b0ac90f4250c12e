"""The master key of webhook secrets in the data folder, and the generations of the secrets of agents."""

import secrets
from pathlib import Path

from sqlalchemy import Connection, bindparam, select, update
from typing_extensions import override

from proofbox.service.errors import StoreFailedError
from proofbox.service.gateway.waits.webhook_signing import GenerationStore, SecretGeneration
from proofbox.service.gateway_errors import UnknownAgentError
from proofbox.service.identity import Principal
from proofbox.service.storage.conversation_rows import utc_now
from proofbox.service.storage.database import Database
from proofbox.service.storage.error_translation import translate_errors
from proofbox.service.storage.gateway.schema import agents, projects
from proofbox.service.storage.private_files import create_private_file

_NAME = "gateway-key"
_ROLE = "the file of the key of webhooks"
_KEY_BYTES = 32
_FOUND = (
    select(agents.c.id, agents.c.secret_generation, agents.c.rotated)
    .join_from(agents, projects, agents.c.project == projects.c.id)
    .where(
        projects.c.tenant == bindparam("of_tenant"),
        projects.c.project == bindparam("of_project"),
        agents.c.agent_id == bindparam("of_agent"),
        agents.c.deleted.is_(None),
    )
)
_ROTATED = (
    update(agents)
    .where(agents.c.id == bindparam("of_row"))
    .values(secret_generation=agents.c.secret_generation + 1, rotated=bindparam("at"))
    .returning(agents.c.secret_generation, agents.c.rotated)
)


class MasterKeyFile:
    """The master key; created at the first use.

    Args:
        data_dir: the data folder.
    """

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / _NAME
        self._key: bytes | None = None

    def read(self) -> bytes:
        """The key.

        Raises:
            StoreFailedError: the file cannot be read or created, other users can read it, or it is damaged.
            StoreFullError: no space is left.
        """
        if self._key is None:
            with translate_errors(_ROLE, self._path.parent):
                if not self._path.exists():
                    create_private_file(self._path, secrets.token_bytes(_KEY_BYTES))
                if self._path.stat().st_mode & 0o077:
                    raise StoreFailedError(f"{_ROLE} can be read by others; chmod 600 {_NAME}")
                key = self._path.read_bytes()
            if len(key) != _KEY_BYTES:
                raise StoreFailedError(
                    f"{_ROLE} is damaged; restore {_NAME} from a backup, or remove it: then all secrets change"
                )
            self._key = key
        return self._key


class SqlGenerationStore(GenerationStore):
    """The GenerationStore in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def generation(self, principal: Principal, agent_id: str) -> SecretGeneration:
        def work(connection: Connection) -> SecretGeneration:
            return _find(connection, principal, agent_id)[1]

        return await self._database.read(work)

    @override
    async def rotate(self, principal: Principal, agent_id: str) -> SecretGeneration:
        def work(connection: Connection) -> SecretGeneration:
            row, _ = _find(connection, principal, agent_id)
            changed = connection.execute(_ROTATED, {"of_row": row, "at": utc_now()}).one()
            return SecretGeneration(changed.secret_generation, changed.rotated)

        return await self._database.write(work)


def _find(connection: Connection, principal: Principal, agent_id: str) -> tuple[int, SecretGeneration]:
    values = {"of_tenant": principal.tenant, "of_project": principal.project, "of_agent": agent_id}
    found = connection.execute(_FOUND, values).first()
    if found is None:
        raise UnknownAgentError(f"agent_id: there is no agent '{agent_id[:100]}' here; GET /v1/agents lists them")
    return found.id, SecretGeneration(found.secret_generation, found.rotated)
