"""Size limits of applications and projects, for every kind of save. Pure."""

from collections.abc import Collection, Iterable
from typing import Final

from msgspec import Struct

from gatehouse.permissions.documents.conditions import refuse_overgrown
from gatehouse.permissions.errors import AccessKeysFull, ApplicationTooLarge, CustomKeysFull, GroupsFull, Malformed
from gatehouse.permissions.model.application import MAX_APPLICATION_MEMORY, MAX_APPLICATION_SIZE, Application
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.limits import MAX_ACCESS_KEYS, MAX_CUSTOM_KEYS, MAX_GROUPS
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rules import RuleSection
from gatehouse.permissions.model.schema import ApplicationSchema, Tree
from gatehouse.permissions.model.tree_interner import TreeInterner, model_weight

MEGABYTE: Final = 2**20


class ModelSize(Struct, frozen=True):
    size: int
    weight: int  # bytes in memory


def measure_model(model: ApplicationModel, sections: Iterable[RuleSection], keys: Iterable[str]) -> ModelSize:
    """Return the size of these parts of an application."""
    trees, known = TreeInterner(), [model.roles[key] for key in keys if key in model.roles]
    for section in sections:
        trees.intern_tree(_section(model.schema, section), f"{section}.")
    for role in known:
        trees.intern_role_tree(role.meta, role.params)
    return ModelSize(trees.size, model_weight(trees, model.application, known))


def refuse_too_large(model: ApplicationModel) -> None:
    """Refuse a new application that is too large."""
    _refuse(model.application, measure_model(model, RuleSection, model.roles))


def refuse_outgrown(before: ApplicationModel, after: ApplicationModel) -> None:
    """Refuse an application that grows beyond its limits.

    The size of `before` is known, so only differences are measured. One that is too large already, from an earlier
    version or a restored backup, may be made smaller.
    """
    sections = [
        section for section in RuleSection if _section(before.schema, section) != _section(after.schema, section)
    ]
    keys = [key for key in before.roles.keys() | after.roles.keys() if before.roles.get(key) != after.roles.get(key)]
    old, new = (measure_model(model, sections, keys) for model in (before, after))
    _refuse(
        after.application,
        ModelSize(
            before.size + new.size - old.size if new.size > old.size else 0,
            before.weight + new.weight - old.weight if new.weight > old.weight else 0,
        ),
    )


def _refuse(application: Application, size: ModelSize) -> None:
    name = f"Application {application.application_id}"
    if size.size > MAX_APPLICATION_SIZE:
        raise ApplicationTooLarge(
            f"{name} would have {size.size:,} rules, role entries and params in total; at most "
            f"{MAX_APPLICATION_SIZE:,} are allowed."
        ).on_screen("application_size", size=size.size, most=MAX_APPLICATION_SIZE)
    if size.weight > MAX_APPLICATION_MEMORY:
        raise ApplicationTooLarge(
            f"{name} would need about {size.weight // MEGABYTE} MB of memory;"
            f" at most {MAX_APPLICATION_MEMORY // MEGABYTE} MB are allowed."
            " Different rules, descriptions and params count most."
        ).on_screen("application_memory", size=size.weight // MEGABYTE, most=MAX_APPLICATION_MEMORY // MEGABYTE)


def _section(schema: ApplicationSchema, section: RuleSection) -> Tree:
    return schema.private_data if section is RuleSection.PRIVATE else schema.public_data


# Limits on the content of a project or an application, checked by commands and files alike.


MAX_ROLES: Final = 1_000  # of one application


def refuse_groups(before: Collection[Group], after: Collection[Group], *, most: int = MAX_GROUPS) -> None:
    """Check a project's groups; a project beyond today's limit may only reduce them. Raises GroupsFull, Malformed."""
    if len(after) > max(most, len(before)):
        raise GroupsFull
    old, new = (
        [condition.condition for group in groups for condition in group.conditions] for groups in (before, after)
    )
    refuse_overgrown(old, new, what="a project's groups")


def refuse_roles(roles: Collection[Role], *, place: str = "") -> None:
    if len(roles) > MAX_ROLES:
        raise Malformed(f"{place}an application can have at most {MAX_ROLES} roles").on_screen(
            "roles_most", most=MAX_ROLES
        )


def refuse_role_conditions(before: Collection[Role], after: Collection[Role]) -> None:
    old, new = ([role.condition for role in roles if role.condition is not None] for roles in (before, after))
    refuse_overgrown(old, new, what="an application's roles")


def refuse_access_keys(count: int) -> None:
    if count > MAX_ACCESS_KEYS:
        raise AccessKeysFull


def refuse_custom_keys(count: int) -> None:
    if count > MAX_CUSTOM_KEYS:
        raise CustomKeysFull
