"""Roles that a group grants to some of its members without effect, because they do not meet the role's condition."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct

from gatehouse.admin.projects import ProjectListStore
from gatehouse.admin.role_cells import WithoutEffect, failed_parts
from gatehouse.kernel.background import run_off_loop
from gatehouse.permissions.evaluation.condition_index import meets_condition
from gatehouse.permissions.model.candidates import CandidateFilter, CandidatePage
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.project import GrantAction
from gatehouse.permissions.model.role import ConditionMode, Role
from gatehouse.permissions.questions.batches import person_weight
from gatehouse.permissions.store import CandidateStore

MAX_APPLICATIONS: Final = 20  # whose roles are judged for one page


class IdleGrant(Struct, frozen=True, kw_only=True):
    """A role that a member does not get from the group, and why."""

    role: str  # its name
    application: str  # its name
    without_effect: WithoutEffect


class GroupEffects(Struct, frozen=True, kw_only=True):
    candidates: CandidateStore
    lists: ProjectListStore

    async def idle_grants(
        self, project: ProjectModel, group: Group, user_ids: Collection[str]
    ) -> Mapping[str, Sequence[IdleGrant]]:
        """Return them by member."""
        granted = granted_roles(project, group)
        names = await self.lists.applications_by_id(granted.keys()) if granted and user_ids else {}
        found: dict[str, list[IdleGrant]] = {}
        for application_id, keys in list(granted.items())[:MAX_APPLICATIONS]:
            if application_id not in names:
                continue
            among = CandidateFilter(application_id=application_id, user_ids=frozenset(user_ids))
            page = await self.candidates.candidate_page(
                among, {project.project.project_id}, after="", limit=len(user_ids)
            )
            roles = [role for key in keys if (role := page.snapshot.model.roles.get(key)) and is_gated(role)]
            weight = sum(map(person_weight, page.people))
            judged = await run_off_loop(weight, unmet_roles, page, roles) if roles else ()
            for user_id, role, idle in judged:
                grant = IdleGrant(role=role.name, application=names[application_id].name, without_effect=idle)
                found.setdefault(user_id, []).append(grant)
        return found


def granted_roles(project: ProjectModel, group: Group) -> Mapping[int, Sequence[str]]:
    """Return the keys of roles that the project grants the group, by application."""
    granted = {
        number: [
            key
            for grant in grants
            if grant.group_id == group.group_id and grant.action is GrantAction.GRANT
            for key in grant.roles
        ]
        for number, grants in project.project.settings.services.items()
    }
    return {number: keys for number, keys in granted.items() if keys}


def is_gated(role: Role) -> bool:
    return role.condition is not None and role.condition_mode is ConditionMode.REQUIRE


def unmet_roles(page: CandidatePage, roles: Sequence[Role]) -> Sequence[tuple[str, Role, WithoutEffect]]:
    return [
        (facts.subject.user_id, role, WithoutEffect(reason="condition", failed=failed_parts(role, facts)))
        for facts in page.people
        for role in roles
        if not meets_condition(role, facts, None)
    ]
