"""Whether a project has what someone is to be given rights on."""

from collections.abc import Iterable

from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import ApplicationNotFound, Malformed
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.model.scope import ResourceKind, Scope
from gatehouse.permissions.store import ApplicationStore


async def refuse_unknown_resources(
    model: ProjectModel, scopes: Iterable[Scope], applications: ApplicationStore
) -> None:
    """Raise Malformed for a scope on something that is not this project's."""
    for scope in scopes:
        if not await has(model, scope, applications):
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
