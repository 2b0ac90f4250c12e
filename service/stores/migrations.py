"""The schema of the database as numbered steps; ``PRAGMA user_version`` counts the steps that a file has seen.

A step that was released is never edited: a change is one more step.
"""

import sqlite3

from service.core.errors import StoreFailedError

_STEPS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE principals (
            id INTEGER PRIMARY KEY,
            tenant TEXT NOT NULL,
            project TEXT NOT NULL,
            user_type TEXT NOT NULL,
            user TEXT NOT NULL,
            UNIQUE (tenant, project, user_type, user)
        )
        """,
        """
        CREATE TABLE conversations (
            id INTEGER PRIMARY KEY,
            principal INTEGER NOT NULL REFERENCES principals (id),
            name TEXT NOT NULL,
            UNIQUE (principal, name)
        )
        """,
        """
        CREATE TABLE artifacts (
            id INTEGER PRIMARY KEY,
            conversation INTEGER NOT NULL REFERENCES conversations (id),
            turn TEXT NOT NULL,
            namespace TEXT NOT NULL CHECK (namespace IN ('files', 'attachments')),
            rel TEXT NOT NULL,
            version INTEGER NOT NULL CHECK (version >= 1),
            sha256 TEXT NOT NULL,
            size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
            mime TEXT NOT NULL,
            visibility TEXT NOT NULL CHECK (visibility IN ('external', 'internal')),
            description TEXT NOT NULL,
            tool_call_id TEXT,
            created TEXT NOT NULL,
            hosted_name TEXT,
            UNIQUE (conversation, turn, namespace, rel, version),
            CHECK ((visibility = 'external') = (hosted_name IS NOT NULL))
        )
        """,
        "CREATE INDEX artifacts_sha256 ON artifacts (sha256)",
        "CREATE INDEX artifacts_hosted ON artifacts (hosted_name, version) WHERE hosted_name IS NOT NULL",
        # What a save is about to put below the data folder; empty unless one was cut short.
        "CREATE TABLE unfinished (name TEXT PRIMARY KEY) WITHOUT ROWID",
        """
        CREATE TABLE sources (
            conversation INTEGER NOT NULL REFERENCES conversations (id),
            sid INTEGER NOT NULL,
            file TEXT,
            source TEXT NOT NULL,
            PRIMARY KEY (conversation, sid)
        )
        """,
        "CREATE INDEX sources_file ON sources (conversation, file, sid) WHERE file IS NOT NULL",
        """
        CREATE TABLE calls (
            id INTEGER PRIMARY KEY,
            conversation INTEGER NOT NULL REFERENCES conversations (id),
            tool_call_id TEXT NOT NULL,
            payload_sha256 TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('open', 'done', 'failed', 'cancelled')),
            boot_id TEXT NOT NULL,
            created TEXT NOT NULL,
            request TEXT NOT NULL,
            answer TEXT,
            UNIQUE (conversation, tool_call_id),
            CHECK ((state = 'open') = (answer IS NULL))
        )
        """,
        "CREATE INDEX calls_tool_call_id ON calls (tool_call_id)",
        "CREATE INDEX calls_open ON calls (boot_id) WHERE state = 'open'",
        """
        CREATE TABLE idempotency_keys (
            principal INTEGER NOT NULL REFERENCES principals (id),
            name TEXT NOT NULL,
            call INTEGER NOT NULL REFERENCES calls (id) ON DELETE CASCADE,
            PRIMARY KEY (principal, name)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX idempotency_keys_call ON idempotency_keys (call)",
        """
        CREATE VIEW named_calls AS
        SELECT calls.*, principal, name AS conversation_name, tenant, project, user_type, user
        FROM calls
        JOIN conversations ON conversations.id = calls.conversation
        JOIN principals ON principals.id = conversations.principal
        """,
    ),
    (
        # The log of a conversation; what base64 says is kept as bytes beside the rest of its block.
        """
        CREATE TABLE blocks (
            conversation INTEGER NOT NULL REFERENCES conversations (id),
            position INTEGER NOT NULL CHECK (position >= 1),
            call_id TEXT,
            path TEXT NOT NULL,
            block TEXT NOT NULL,
            content BLOB,
            PRIMARY KEY (conversation, position)
        )
        """,
        "CREATE INDEX blocks_path ON blocks (conversation, path, position)",
    ),
    (
        # What blocks are found by: their turn, the artifact that a digest describes, the path that a block hides.
        "ALTER TABLE blocks ADD COLUMN turn TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE blocks ADD COLUMN describes TEXT",
        "ALTER TABLE blocks ADD COLUMN hides TEXT",
        "UPDATE blocks SET turn = json_extract(block, '$.turn_id')",
        """
        UPDATE blocks SET describes = json_extract(json_extract(block, '$.text'), '$.artifact_path')
        WHERE json_extract(block, '$.mime') = 'application/json' AND json_valid(json_extract(block, '$.text'))
        AND (path LIKE 'tc:%' OR json_extract(block, '$.type') = 'user.attachment.meta')
        """,
        "CREATE INDEX blocks_describes ON blocks (conversation, describes, position) WHERE describes IS NOT NULL",
        "CREATE INDEX blocks_hides ON blocks (conversation, position) WHERE hides IS NOT NULL",
        "CREATE INDEX blocks_turn ON blocks (conversation, turn, position)",
        "CREATE INDEX blocks_call ON blocks (conversation, call_id, position) WHERE call_id IS NOT NULL",
        """
        CREATE TABLE turns (
            conversation INTEGER NOT NULL REFERENCES conversations (id),
            turn TEXT NOT NULL,
            first INTEGER NOT NULL,
            last INTEGER NOT NULL,
            PRIMARY KEY (conversation, turn)
        ) WITHOUT ROWID
        """,
        """
        INSERT INTO turns SELECT conversation, turn, MIN(position), MAX(position) FROM blocks
        GROUP BY conversation, turn
        """,
        "ALTER TABLE sources ADD COLUMN url TEXT",
        "UPDATE sources SET url = json_extract(source, '$.url') WHERE file IS NULL",
        "CREATE INDEX sources_url ON sources (conversation, url, sid) WHERE url IS NOT NULL",
        """
        CREATE TABLE passages (
            id INTEGER PRIMARY KEY,
            conversation INTEGER NOT NULL REFERENCES conversations (id),
            position INTEGER NOT NULL,
            turn TEXT NOT NULL,
            target TEXT NOT NULL,
            ts TEXT NOT NULL,
            path TEXT NOT NULL,
            text TEXT NOT NULL,
            vector BLOB NOT NULL
        )
        """,
        "CREATE INDEX passages_conversation ON passages (conversation, target, ts)",
        """
        CREATE TABLE passages_through (
            conversation INTEGER PRIMARY KEY REFERENCES conversations (id),
            position INTEGER NOT NULL
        )
        """,
    ),
)


def migrate(connection: sqlite3.Connection) -> None:
    """Brings the database to the newest schema, one transaction for each step.

    Raises:
        StoreFailedError: a newer release of the service made it.
        sqlite3.Error: a step failed; the steps before it stay.
    """
    seen: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if seen > len(_STEPS):
        raise StoreFailedError(
            f"the database has schema {seen} and this release knows {len(_STEPS)}; run the newer release"
        )
    for number, step in enumerate(_STEPS[seen:], start=seen + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in step:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
