"""How large an application may become, decided where it is stored: for every way of saving one. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gatehouse.permissions.errors import ApplicationTooLarge
from gatehouse.permissions.model.application import MAX_APPLICATION_MEMORY, MAX_APPLICATION_SIZE, Application
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.rule import RuleSection
from gatehouse.permissions.model.schema import ApplicationSchema, Tree
from gatehouse.permissions.model.shared_trees import TreeInterner, model_weight

MEGABYTE: Final = 2**20


@dataclass(frozen=True, slots=True)
class ModelSize:
    size: int
    weight: int  # bytes in memory


def measure_model(model: ApplicationModel, sections: Iterable[RuleSection], keys: Iterable[str]) -> ModelSize:
    """These parts of an application."""
    trees, known = TreeInterner(), [model.roles[key] for key in keys if key in model.roles]
    for section in sections:
        trees.intern_tree(_section(model.schema, section), f"{section}.")
    for role in known:
        trees.intern_role_tree(role.meta, role.params)
    return ModelSize(trees.size, model_weight(trees, model.application, known))


def refuse_too_large(model: ApplicationModel) -> None:
    """For a new application."""
    _refuse(model.application, measure_model(model, RuleSection, model.roles))


def refuse_outgrown(before: ApplicationModel, after: ApplicationModel) -> None:
    """`before` was loaded, so its size is known: only what differs is measured.

    An application that is too large already, of an earlier version or a restored backup, may be made smaller.
    """
    sections = [one for one in RuleSection if _section(before.schema, one) != _section(after.schema, one)]
    keys = [key for key in before.roles.keys() | after.roles.keys() if before.roles.get(key) != after.roles.get(key)]
    old, new = (measure_model(model, sections, keys) for model in (before, after))
    _refuse(
        after.application,
        ModelSize(
            before.size + new.size - old.size if new.size > old.size else 0,
            before.weight + new.weight - old.weight if new.weight > old.weight else 0,
        ),
    )


def _refuse(application: Application, found: ModelSize) -> None:
    name = f"Application {application.application_id}"
    if found.size > MAX_APPLICATION_SIZE:
        raise ApplicationTooLarge(
            f"{name} would have {found.size:,} rules, role entries and params in total; at most "
            f"{MAX_APPLICATION_SIZE:,} are allowed."
        )
    if found.weight > MAX_APPLICATION_MEMORY:
        raise ApplicationTooLarge(
            f"{name} would need about {found.weight // MEGABYTE} MB of memory;"
            f" at most {MAX_APPLICATION_MEMORY // MEGABYTE} MB are allowed."
            " Different rules, descriptions and params count most."
        )


def _section(schema: ApplicationSchema, section: RuleSection) -> Tree:
    return schema.private_data if section is RuleSection.PRIVATE else schema.public_data
