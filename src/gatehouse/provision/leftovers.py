"""What an export leaves out: what could be written once and no longer can be (R5), or apply would refuse it (R7)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from gatehouse.permissions.documents.rules import refuse_collisions
from gatehouse.permissions.documents.trees import refuse_reserved, without_leaf
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.evaluation.gathering import direct_entries
from gatehouse.permissions.model.facts import ApplicationModel, ProjectModel
from gatehouse.permissions.model.rule import Rule, Section
from gatehouse.permissions.model.schema import Tree
from gatehouse.permissions.model.user_record import Holdings, UserRecord
from gatehouse.provision.model import State, World
from gatehouse.provision.sections.project_services import refuse_unfit
from gatehouse.provision.sections.references import References, refuse_unrelated
from gatehouse.provision.sections.section import File

Tell = Callable[[str], None]


def without_leftovers(state: State, tell: Tell) -> State:
    """The same without what a file would be refused for; each is told in one line."""
    applications = {key: _described(model, tell) for key, model in state.world.applications.items()}
    state = replace(state, world=replace(state.world, applications=applications))
    references = References(state, File())
    projects = {key: _connected(model, references, tell) for key, model in state.world.projects.items()}
    world = replace(state.world, projects=projects)
    records = {key: _held(record, world, references, tell) for key, record in world.records.items()}
    return replace(state, world=replace(world, records=records))


def _described(model: ApplicationModel, tell: Tell) -> ApplicationModel:
    """Without rules under names that were reserved after they were stored."""
    place = f"application {model.application.application_id}"
    sections = {
        section.value: _unreserved(getattr(model.schema, section.value), f"{place}: schema.{section}", tell)
        for section in Section
    }
    roles = {
        key: replace(
            role,
            meta={
                name: _unreserved(tree, f"{place}: roles.{role.name}.meta.{name}", tell)
                for name, tree in role.meta.items()
                if isinstance(tree, Mapping)
            },
        )
        for key, role in model.roles.items()
    }
    return replace(model, schema=replace(model.schema, **sections), roles=roles)  # type: ignore[arg-type]


def _unreserved(tree: Tree, place: str, tell: Tell) -> Tree:
    return {name: node for name, node in tree.items() if _fits(partial(refuse_reserved, (name,), place), tell)}


def _connected(model: ProjectModel, references: References, tell: Tell) -> ProjectModel:
    """Services of a project that are still its own, or published."""
    if model.project.removed:
        return model
    settings, place = model.project.settings, f"project {model.project.project_id}: settings.services"
    services = {
        number: grants
        for number, grants in settings.services.items()
        if _fits(partial(refuse_unfit, number, grants, model, references, f"{place}.{number}"), tell)
    }
    return replace(model, project=replace(model.project, settings=replace(settings, services=services)))


def _held(record: UserRecord, world: World, references: References, tell: Tell) -> UserRecord:
    model = references.application(record.application_id)
    if model is None:
        return record
    place = f"application {record.application_id}: users.{record.user_id}"
    scopes = {
        scope: _uncolliding(model, held, place, tell)
        for scope, held in record.scopes.items()
        if scope.is_root
        or not world.has(scope)
        or _fits(partial(refuse_unrelated, model.application, scope.project_id, f"{place}.{scope.project_id}"), tell)
    }
    return replace(record, scopes=scopes)


def _uncolliding(model: ApplicationModel, held: Holdings, place: str, tell: Tell) -> Holdings:
    """Entries that a later schema does not stand in the way of: a save of it looks at nobody's record."""

    def refuse(*rules: Rule) -> None:
        for rule in rules:
            refuse_reserved((rule.path,), f"{place}.{rule.section}")
        refuse_collisions(model.schema, rules, place=place, central=model.application.is_central)

    entries = direct_entries(held)
    if _fits(partial(refuse, *entries), silent):
        return held
    for rule in entries:
        if not _fits(partial(refuse, rule), tell):
            held = _without(held, rule)
    return held


def _without(held: Holdings, rule: Rule) -> Holdings:
    if rule.section is Section.PRIVATE:
        return replace(held, private_data=without_leaf(held.private_data, rule.path))
    return replace(held, public_data=without_leaf(held.public_data, rule.path))


def silent(line: str) -> None:
    """Nobody listens."""


def _fits(refuse: Callable[[], None], tell: Tell) -> bool:
    try:
        refuse()
    except Malformed as reason:
        tell(str(reason))
        return False
    return True
