"""Origins of clients are found by key: a preflight reads one row, however many clients there are."""

import json

from alembic import op
from sqlalchemy import Column, PrimaryKeyConstraint, Text, text

revision = "0055"
down_revision = "0054"

BATCH = 1_000  # clients read at a time
NEXT_CLIENTS = text(
    "SELECT client_id, origins FROM clients WHERE client_id > :last AND removed IS false AND origins <> '[]'"
    " ORDER BY client_id LIMIT :most"
)
ADD_ORIGIN = text("INSERT INTO client_origins (origin, client_id) VALUES (:origin, :client_id)")


def upgrade() -> None:
    op.create_table(
        "client_origins",
        Column("origin", Text, nullable=False),
        Column("client_id", Text, nullable=False),
        PrimaryKeyConstraint("origin", "client_id", name="pk_client_origins"),
    )
    op.create_index("ix_client_origins_client_id", "client_origins", ["client_id"])
    there, last = op.get_bind(), ""
    while rows := there.execute(NEXT_CLIENTS, {"last": last, "most": BATCH}).all():
        there.execute(
            ADD_ORIGIN,
            [
                {"origin": origin, "client_id": row.client_id}
                for row in rows
                for origin in dict.fromkeys(json.loads(row.origins))
            ],
        )
        last = rows[-1].client_id
