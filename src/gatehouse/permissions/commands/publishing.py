"""Publishing: a new project with its application and its first people (interface §4.6, §5.6, R6)."""

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord, Details
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Refused
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import NoRight, PersonNotFound
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.facts import Assignment, Facts, ScopeHoldings, UserRecord
from gatehouse.permissions.model.project import Project
from gatehouse.permissions.model.rules import ROOT, Scope
from gatehouse.permissions.model.schema import ApplicationSchema
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.granting import PROJECT_OWNER
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.permissions.rights.rights import central_rule
from gatehouse.permissions.store import NewApplication, PermissionStore, ProjectStore

ADMINISTRATOR: Final = "project_administrator"
CAN_CREATE_PROJECTS: Final = central_rule("can_create_projects")
NUMBER: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


class NeedsStrongFactor(Refused):
    public = "The project administrator needs two-factor sign-in with an authenticator app or a passkey."


class ProjectPublisher(Struct, kw_only=True, eq=False):
    store: ProjectStore
    people: PermissionStore
    recorder: Recorder
    clock: Clock

    async def publish(self, actor: Actor, author: Facts, title: object, target: str | None) -> Project:
        """Check everything first; the store then makes all of it or nothing (checklist PR-01)."""
        require_operation(actor.rights, Operation.PUBLISH)
        name = grammar.check_title(title, "project")
        limit = project_limit(actor)
        chosen = author if target in (None, author.subject.user_id) else await self._load_person(actor, target)
        if not chosen.has_strong_factor:
            raise NeedsStrongFactor(f"user {chosen.subject.user_id} has no TOTP and no passkey")
        now = self.clock.now()
        project = Project(
            project_id=grammar.project_id_of(name), title=name, author=author.subject.user_id, created_at=now
        )
        return await self.store.publish_project(
            project,
            new_application(project, now),
            limit,
            first_records(project, chosen.subject.user_id),
            lambda application_id: self._records(actor, project, application_id, chosen.subject.user_id),
        )

    async def _load_person(self, actor: Actor, user_id: str | None) -> Facts:
        """Load the person; callers who may not learn who exists see an unknown user as one without a factor (R6)."""
        facts = await self.people.facts(grammar.check_user_id(user_id, "user"), (CENTRAL_APPLICATION,))
        if facts is None:
            raise PersonNotFound if actor.rights.knows_who_exists else NeedsStrongFactor(f"no user {user_id}")
        return facts

    def _records(
        self, actor: Actor, project: Project, application_id: int, administrator: str
    ) -> Sequence[AuditRecord]:
        details: Details = {"title": project.title, "application_id": application_id, "administrator": administrator}
        subject = f"project {project.project_id}"
        return [self.recorder.record(AuditEvent.PROJECT_PUBLISHED, actor.origin, subject=subject, details=details)]


def new_application(project: Project, now: int) -> NewApplication:
    """An application of the same name with the default schema (R6); the store gives it an id."""
    application = Application(application_id=0, name=project.title, project_id=project.project_id, created_at=now)
    return NewApplication(application=application, schema=ApplicationSchema(application_id=0, updated_at=now))


def first_records(project: Project, administrator: str) -> Sequence[UserRecord]:
    """Return the first records: the author owns and administers the project, the target administers it."""
    scope = Scope(project.project_id)
    roles = {project.author: [PROJECT_OWNER, ADMINISTRATOR]}
    roles.setdefault(administrator, [ADMINISTRATOR])
    return [
        UserRecord(
            application_id=CENTRAL_APPLICATION,
            user_id=user_id,
            scopes={scope: ScopeHoldings(roles=tuple(Assignment(role=role) for role in role_keys))},
        )
        for user_id, role_keys in roles.items()
    ]


def project_limit(actor: Actor) -> int | None:
    """How many projects the actor may have; None for no limit (interface §5.6).

    A contribution without parameters is unlimited; else the highest number counts, and parameters that are not
    numbers give no right (R5).
    """
    contributions = actor.rights.central.rules(ROOT).params_by_contribution(CAN_CREATE_PROJECTS)
    if actor.rights.administers or () in contributions:
        return None
    numbers = [int(param) for params in contributions for param in params if NUMBER.fullmatch(param)]
    if not numbers:
        raise NoRight("can_create_projects has parameters that are not numbers")
    return max(numbers)
