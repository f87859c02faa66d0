"""What a user sees in the console (interface §5.5)."""

from collections.abc import Collection

from msgspec import Struct
from sqlalchemy import bindparam, select

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.kernel.addresses import Address
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.callers import Caller
from gatehouse.permissions.authentication.vouching import CallerKind
from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.model.rules import ResourceKind
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open
from gatehouse.permissions.rights.rights import Rights
from gatehouse.storage.runner import SqlStore, read
from gatehouse.storage.statements import EMPTY_DOCUMENT, InStringList, Statement, Verb
from gatehouse.storage.tables.permissions import applications, user_records


class Visibility(Struct, frozen=True, kw_only=True):
    everything: bool = False  # can_administer
    projects: frozenset[str] = frozenset()  # ids of those the user may view
    managed: frozenset[str] = frozenset()  # ids of those whose applications the user manages
    applications: frozenset[int] = frozenset()  # ids of those with a record of the user, or in a managed project
    groups: frozenset[str] = frozenset()  # ids of those the user manages
    may_publish: bool = False
    may_create: bool = False  # applications outside a project

    @property
    def has_any(self) -> bool:
        contents = self.projects or self.managed or self.applications or self.groups
        return self.everything or bool(contents) or self.may_publish or self.may_create


APPLICATIONS_WITH_OWN_SECRETS = Statement(
    lambda: select(user_records.c.application_id).where(
        user_records.c.user_id == bindparam("user_id"), user_records.c.secret_data != EMPTY_DOCUMENT
    )
)

APPLICATIONS_IN_PROJECTS = Statement(
    lambda: select(applications.c.application_id).where(
        InStringList(applications.c.project_id, "projects"), applications.c.removed.is_(False)
    )
)


def own_applications(user_id: str) -> Verb[Collection[int]]:
    """Return the ids of the applications in which the user's own record has secret_data."""
    return [row.application_id for row in (yield APPLICATIONS_WITH_OWN_SECRETS(user_id=user_id))]


def applications_in(projects: Collection[str]) -> Verb[Collection[int]]:
    """Return the ids of the applications in these projects that are not removed."""
    return [row.application_id for row in (yield APPLICATIONS_IN_PROJECTS(projects=sorted(projects)))]


class VisibilityStore(SqlStore):
    own_applications = read(own_applications)
    applications_in = read(applications_in)


class ConsoleAccess:
    """Whether the console shows a user anything; the account page links to it only then."""

    def __init__(
        self,
        *,
        authenticator: Authenticator,
        permission_loader: PermissionLoader,
        visibility_loader: "VisibilityLoader",
    ) -> None:
        self._authenticator = authenticator
        self._permission_loader = permission_loader
        self._visibility_loader = visibility_loader

    async def may_open(self, user_id: str, address: Address | None) -> bool:
        facts = await self._permission_loader.load_facts(user_id, (CENTRAL_APPLICATION,))
        if facts is None:
            return False
        authenticated = await self._authenticator.attach_rights(
            Caller(by=CallerKind.FACTOR, facts=facts, address=address)
        )
        return (await self._visibility_loader.load(authenticated.rights)).has_any


class VisibilityLoader(Struct, eq=False):
    store: VisibilityStore

    async def load(self, rights: Rights) -> Visibility:
        if rights.holds_can_administer:
            return Visibility(everything=True, may_publish=True, may_create=True)
        own = await self.store.own_applications(rights.user_id)
        scopes = [scope for scope in rights.central.open_scopes if not scope.is_root]
        projects = {scope.project_id for scope in scopes if scope.kind is None}
        application_ids = {int(scope.resource_id) for scope in scopes if scope.kind is ResourceKind.APPLICATION}
        managed = projects_open_to(rights, Operation.APPLICATION_CREATE_IN_PROJECT, projects)
        return Visibility(
            projects=projects_open_to(rights, Operation.PROJECT_GET, projects),
            managed=managed,
            applications=frozenset(
                {*own, *application_ids, *(await self.store.applications_in(managed) if managed else ())}
            ),
            groups=frozenset(scope.resource_id for scope in scopes if scope.kind is ResourceKind.GROUP),
            may_publish=is_open(rights, Operation.PUBLISH),
            may_create=is_open(rights, Operation.APPLICATION_CREATE),
        )


def projects_open_to(rights: Rights, operation: Operation, projects: Collection[str]) -> frozenset[str]:
    return frozenset(
        project_id for project_id in projects if is_open(rights, operation, GuardTarget(project_id=project_id))
    )
