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
        # Saves run beside each other: each has its own list of what it is about to put into the store.
        "ALTER TABLE unfinished RENAME TO unfinished_before",
        "CREATE TABLE unfinished (save TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (save, name)) WITHOUT ROWID",
        "INSERT INTO unfinished SELECT 'before', name FROM unfinished_before",
        "DROP TABLE unfinished_before",
        "CREATE INDEX unfinished_name ON unfinished (name)",
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
