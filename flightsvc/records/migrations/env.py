"""Alembic runs this file; see ``flightsvc.records.upgrade``, which hands it the connection."""

from alembic import context

from flightsvc.records.tables import METADATA, VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION_TABLE,
)
with context.begin_transaction():
    context.run_migrations()
