"""How much a project or an application may have: asked wherever it is saved, by commands and files alike. Pure."""

from collections.abc import Collection
from typing import Final

from gatehouse.permissions.documents.conditions import refuse_overgrown
from gatehouse.permissions.errors import AccessKeysFull, CustomKeysFull, GroupsFull, Malformed
from gatehouse.permissions.model.access_key import MAX_ACCESS_KEYS
from gatehouse.permissions.model.application_key import MAX_CUSTOM_KEYS
from gatehouse.permissions.model.group import MAX_GROUPS, Group
from gatehouse.permissions.model.role import Role

MAX_ROLES: Final = 1_000  # of one application


def refuse_groups(before: Collection[Group], after: Collection[Group], *, most: int = MAX_GROUPS) -> None:
    """A project's groups; raises GroupsFull, Malformed. One that has more than today's limit may have fewer."""
    if len(after) > max(most, len(before)):
        raise GroupsFull
    old, new = ([one.condition for group in groups for one in group.conditions] for groups in (before, after))
    refuse_overgrown(old, new, what="a project's groups")


def refuse_roles(roles: Collection[Role], *, place: str = "") -> None:
    if len(roles) > MAX_ROLES:
        raise Malformed(f"{place}an application can have at most {MAX_ROLES} roles")


def refuse_role_conditions(before: Collection[Role], after: Collection[Role]) -> None:
    old, new = ([role.condition for role in roles if role.condition is not None] for roles in (before, after))
    refuse_overgrown(old, new, what="an application's roles")


def refuse_access_keys(count: int) -> None:
    if count > MAX_ACCESS_KEYS:
        raise AccessKeysFull


def refuse_custom_keys(count: int) -> None:
    if count > MAX_CUSTOM_KEYS:
        raise CustomKeysFull
