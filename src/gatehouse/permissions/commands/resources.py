"""Whether a project has what someone is to be given rights on."""

from collections.abc import Mapping

from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import ApplicationNotFound, Malformed
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.model.scope import ResourceKind, Scope
from gatehouse.permissions.model.user_record import Holdings
from gatehouse.permissions.store import ApplicationStore


async def refuse_unknown_resources(
    model: ProjectModel,
    before: Mapping[Scope, Holdings],
    wanted: Mapping[Scope, Holdings],
    applications: ApplicationStore,
) -> None:
    """Raise Malformed for something new on what is not this project's; what is held already is saved back (R6)."""
    for scope, held in wanted.items():
        if before.get(scope) != held and not await has(model, scope, applications):
            raise Malformed(f"project {scope.project_id} has nothing in {scope.kind} with the id {scope.resource_id}")


async def has(model: ProjectModel, scope: Scope, applications: ApplicationStore) -> bool:
    match scope.kind:
        case None:
            return True
        case ResourceKind.GROUP:
            return scope.resource_id in model.groups
        case ResourceKind.SERVICE:
            return grammar.parse_application_id(scope.resource_id) in model.project.settings.services
        case ResourceKind.APPLICATION:
            return await belongs(grammar.parse_application_id(scope.resource_id), model, applications)


async def belongs(application_id: int, model: ProjectModel, applications: ApplicationStore) -> bool:
    try:
        application = await applications.application(application_id)
    except ApplicationNotFound:
        return False
    return application.project_id == model.project.project_id and not application.removed
