"""Answers, unique by business key, and sessions that were deleted."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

TABLE = "flightsvc_records"
FORGOTTEN = "flightsvc_forgotten"


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("tenant", sa.String(300), nullable=False),
        sa.Column("session_id", sa.String(300), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("business_key", sa.String(300), nullable=False),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("flight_id", sa.String(300), nullable=False),
        sa.Column("value", sa.JSON, nullable=False),
        sa.Column("asked", sa.JSON, nullable=False),
        sa.Column("file_digest", sa.Text),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("written_ms", sa.BigInteger, nullable=False),
        sa.UniqueConstraint(
            "tenant", "session_id", "kind", "business_key", name=f"{TABLE}_business_key"
        ),
    )
    op.create_index(f"{TABLE}_flight", TABLE, ["flight_id"])
    op.create_index(f"{TABLE}_written", TABLE, ["written_ms"])
    op.create_index(f"{TABLE}_file", TABLE, ["file_digest"])
    op.create_table(
        FORGOTTEN,
        sa.Column("tenant", sa.String(300), primary_key=True),
        sa.Column("session_id", sa.String(300), primary_key=True),
        sa.Column("below_fence", sa.BigInteger, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
    )
    op.create_index(f"{FORGOTTEN}_at", FORGOTTEN, ["at_ms"])
