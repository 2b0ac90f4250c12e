"""A service that signs the heads of two lines, adds three more and is killed; run by test_audit_heads.py."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from pydantic import SecretStr

from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.storage.audit_head_files import HeadFiles
from proofbox.service.storage.audit_signing import HeadSigner
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.database import Database
from tests.store_contract.audited import answered


async def run(data_dir, url):
    database = Database(data_dir, SecretStr(url))
    await database.open_beside()
    store, scope = (
        SqlCallStore(database),
        ConversationKey(Principal("acme", "books", "registered", "ann"), "conv-1"),
    )
    signer = HeadSigner(database, HeadFiles(data_dir / "audit-key.pem", data_dir / "audit-heads.jsonl"), 3600)
    for number in (1, 2):
        await answered(store, scope, f"call-{number}")
    await signer.sign()
    for number in (3, 4, 5):
        await answered(store, scope, f"call-{number}")
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), sys.argv[2]))
