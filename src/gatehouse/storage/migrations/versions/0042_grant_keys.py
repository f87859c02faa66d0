"""Projects have a version each, and what a person needs to be granted something in one is found by index."""

import json

from alembic import op
from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, Text, text

revision = "0042"
down_revision = "0041"

ANYONE = "everyone:"
BATCH = 1_000  # groups read at a time
NEXT_GROUPS = text(
    "SELECT group_id, project_id, conditions FROM groups WHERE group_id > :last AND EXISTS"
    " (SELECT 1 FROM project_services AS granted WHERE granted.group_id = groups.group_id"
    " AND granted.project_id = groups.project_id) ORDER BY group_id LIMIT :most"
)
ADD_KEY = text(
    "INSERT INTO grant_keys (application_id, index_key, project_id) SELECT DISTINCT application_id,"
    " application_id || ':' || :key, project_id"
    " FROM project_services WHERE group_id = :group AND project_id = :project ON CONFLICT DO NOTHING"
)


def upgrade() -> None:
    op.add_column("projects", Column("model_version", BigInteger, nullable=False, server_default=text("1")))
    op.create_table(
        "grant_keys",
        Column("index_key", Text, nullable=False),
        Column("project_id", Text, nullable=False),
        Column("application_id", BigInteger, nullable=False),
        PrimaryKeyConstraint("index_key", "project_id", name="pk_grant_keys"),
    )
    op.create_index("ix_grant_keys_project_id", "grant_keys", ["project_id"])
    there, last = op.get_bind(), ""
    while rows := there.execute(NEXT_GROUPS, {"last": last, "most": BATCH}).all():
        keys = [
            {"group": row.group_id, "project": row.project_id, "key": key}
            for row in rows
            for key in sorted(keys_of_group(row.group_id, json.loads(row.conditions)))
        ]
        there.execute(ADD_KEY, keys)
        last = rows[-1].group_id
    op.drop_table("permission_clock")


def keys_of_group(group_id: str, conditions: list[dict[str, object]]) -> set[str]:
    """The keys of people who may be members: more than needed do no harm, because each condition is tested."""
    return {f"group:{group_id}"}.union(*(keys_of_condition(one["condition"]) for one in conditions))


def keys_of_condition(condition: object) -> set[str]:
    """All members of an object must hold, so the keys of one are enough."""
    if not isinstance(condition, dict) or not condition:
        return set()
    return min((keys_of_member(name, value) for name, value in condition.items()), key=breadth)


def keys_of_member(name: str, value: object) -> set[str]:  # noqa: PLR0911 - one a kind
    match name, value:
        case "and", [*parts] if parts:
            return min(map(keys_of_condition, parts), key=breadth)
        case "or", [*parts]:
            return set[str]().union(*map(keys_of_condition, parts))
        case "uid", [*users]:
            return {f"uid:{user_id}" for user_id in users}
        case "domain", str():
            return {f"domain:{value.lower()}"}
        case "tag" | "purchase", str():
            return {f"{name}:{value}"}
        case ("everyone", True) | ("ip", _):
            return {ANYONE}
    return set()


def breadth(keys: set[str]) -> tuple[bool, int]:
    return ANYONE in keys, len(keys)
