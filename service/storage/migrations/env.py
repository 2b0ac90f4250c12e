"""Run revisions on the connection and in the transaction of the caller of Alembic."""

from alembic import context

from proofbox.service.storage.gateway.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
