"""What an export leaves out: stored data that apply would refuse today (R5, R7)."""

from collections.abc import Callable, Mapping
from functools import partial

from msgspec.structs import replace

from gatehouse.permissions.commands.user_schemas import refuse_unrelated
from gatehouse.permissions.documents.rules import refuse_collisions
from gatehouse.permissions.documents.trees import refuse_reserved, without_leaf
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.evaluation.contributions import direct_entries
from gatehouse.permissions.model.facts import ApplicationModel, ProjectModel, ScopeHoldings, UserRecord
from gatehouse.permissions.model.rules import Rule, RuleSection
from gatehouse.permissions.model.schema import Tree
from gatehouse.provision.model import PermissionState, StoredState
from gatehouse.provision.sections.projects import refuse_unusable_service
from gatehouse.provision.sections.references import References
from gatehouse.provision.sections.section import ProvisionFile

ReportLine = Callable[[str], None]


def without_unmanaged(state: StoredState, report: ReportLine) -> StoredState:
    """The state without what apply would refuse, with one line to `report` for each."""
    applications = {
        key: _without_reserved_rules(model, report) for key, model in state.permissions.applications.items()
    }
    state = replace(state, permissions=replace(state.permissions, applications=applications))
    references = References(state, ProvisionFile())
    projects = {
        key: _without_unusable_services(model, references, report)
        for key, model in state.permissions.projects.items()
    }
    permissions = replace(state.permissions, projects=projects)
    records = {
        key: _without_unusable_holdings(record, permissions, references, report)
        for key, record in permissions.records.items()
    }
    return replace(state, permissions=replace(permissions, records=records))


def _without_reserved_rules(model: ApplicationModel, report: ReportLine) -> ApplicationModel:
    """Without rules whose names were reserved later."""
    place = f"application {model.application.application_id}"
    sections = {
        section.value: _without_reserved_names(
            getattr(model.schema, section.value), f"{place}: schema.{section}", report
        )
        for section in RuleSection
    }
    roles = {
        key: replace(
            role,
            meta={
                name: _without_reserved_names(tree, f"{place}: roles.{role.name}.meta.{name}", report)
                for name, tree in role.meta.items()
                if isinstance(tree, Mapping)
            },
        )
        for key, role in model.roles.items()
    }
    return replace(model, schema=replace(model.schema, **sections), roles=roles)


def _without_reserved_names(tree: Tree, place: str, report: ReportLine) -> Tree:
    return {
        name: node for name, node in tree.items() if _is_accepted(partial(refuse_reserved, (name,), place), report)
    }


def _without_unusable_services(model: ProjectModel, references: References, report: ReportLine) -> ProjectModel:
    """With the services that are still its own or published."""
    if model.project.removed:
        return model
    settings, place = model.project.settings, f"project {model.project.project_id}: settings.services"
    services = {
        number: grants
        for number, grants in settings.services.items()
        if _is_accepted(
            partial(refuse_unusable_service, number, grants, model, references, f"{place}.{number}"), report
        )
    }
    return replace(model, project=replace(model.project, settings=replace(settings, services=services)))


def _without_unusable_holdings(
    record: UserRecord, permissions: PermissionState, references: References, report: ReportLine
) -> UserRecord:
    model = references.application(record.application_id)
    if model is None:
        return record
    place = f"application {record.application_id}: users.{record.user_id}"
    scopes = {
        scope: _without_colliding_entries(model, held, place, report)
        for scope, held in record.scopes.items()
        if scope.is_root
        or not permissions.has_scope(scope)
        or _is_accepted(partial(refuse_unrelated, model, scope.project_id, f"{place}.{scope.project_id}"), report)
    }
    return replace(record, scopes=scopes)


def _without_colliding_entries(
    model: ApplicationModel, held: ScopeHoldings, place: str, report: ReportLine
) -> ScopeHoldings:
    """Without entries that a later schema conflicts with: saving a schema does not check records."""

    def refuse(*rules: Rule) -> None:
        for rule in rules:
            refuse_reserved((rule.path,), f"{place}.{rule.section}")
        refuse_collisions(model.schema, rules, place=place, central=model.application.is_central)

    entries = direct_entries(held)
    if _is_accepted(partial(refuse, *entries), ignore_line):
        return held
    for rule in entries:
        if not _is_accepted(partial(refuse, rule), report):
            held = _without_rule(held, rule)
    return held


def _without_rule(held: ScopeHoldings, rule: Rule) -> ScopeHoldings:
    if rule.section is RuleSection.PRIVATE:
        return replace(held, private_data=without_leaf(held.private_data, rule.path))
    return replace(held, public_data=without_leaf(held.public_data, rule.path))


def ignore_line(line: str) -> None:
    """Report nothing."""


def _is_accepted(refuse: Callable[[], None], report: ReportLine) -> bool:
    try:
        refuse()
    except Malformed as reason:
        report(str(reason))
        return False
    return True
