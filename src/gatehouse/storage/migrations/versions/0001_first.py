"""The first schema, written out for each database in the SQL files beside this one."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    written_out = Path(__file__).with_name(f"0001_{op.get_bind().dialect.name}.sql").read_text()
    for statement in written_out.split(";\n"):
        if statement.strip():
            op.get_bind().exec_driver_sql(statement)
