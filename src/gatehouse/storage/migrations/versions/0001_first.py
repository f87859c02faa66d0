"""The first schema.

Until the first release tag this revision is the whole of `tables` as it stands; from then on
revisions are written out and never change again.
"""

from alembic import op

from gatehouse.storage.tables import metadata

revision = "0001"
down_revision = None


def upgrade() -> None:
    metadata.create_all(op.get_bind(), checkfirst=False)


def downgrade() -> None:
    metadata.drop_all(op.get_bind(), checkfirst=False)
