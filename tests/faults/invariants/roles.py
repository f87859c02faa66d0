"""Check the roles in the database after a run (I10)."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.database_contents import Rows


def i10_roles_are_whole(rows: Rows) -> list[str]:
    """No one is assigned a role that does not exist, and no public role grants a protected rule."""
    roles = {(row.application_id, row.role_key) for row in rows["roles"]}
    return [
        *(
            f"I10: {row.user_id} is assigned {row.role_key!r} of {row.application_id}, which is not there"
            for row in rows["role_assignments"]
            if (row.application_id, row.role_key) not in roles
        ),
        *(
            f"I10: the public role {row.name!r} of {row.application_id} gives {sorted(leaves)}"
            for row in rows["roles"]
            if not row.protected and (leaves := true_leaves(row.meta) & protected_leaves(rows, row.application_id))
        ),
    ]


def protected_leaves(rows: Rows, application_id: int) -> set[str]:
    (schema,) = [row for row in rows["application_schemas"] if row.application_id == application_id]
    trees = {"private_data": schema.private_data, "public_data": schema.public_data}
    return {path for path, leaf in leaves_of(trees) if leaf.get("protected")}


def true_leaves(meta: Mapping[str, Any]) -> set[str]:
    return {path for path, leaf in leaves_of(meta) if leaf.get("value") is True}


def leaves_of(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, below in tree.items():
        here = f"{path}.{name}" if path else name
        if isinstance(below, Mapping) and "value" in below:
            yield here, below
        elif isinstance(below, Mapping):
            yield from leaves_of(below, here)
