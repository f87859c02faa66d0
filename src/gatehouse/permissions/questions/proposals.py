"""A change that somebody thinks of making: the data of its save, and how that save is rehearsed (R6)."""

import asyncio
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

import msgspec
from msgspec import UNSET

from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.commands.app_schemas import AppSchemas, RoleDraft
from gatehouse.permissions.commands.groups import AccessDraft, GroupDraft, Groups
from gatehouse.permissions.commands.memberships import MembershipDraft, Memberships
from gatehouse.permissions.commands.projects import ProjectDraft, Projects
from gatehouse.permissions.commands.user_schemas import RecordDraft, UserSchemas
from gatehouse.permissions.documents import fields, grammar
from gatehouse.permissions.documents.ends import LATEST
from gatehouse.permissions.errors import GroupNotFound, Malformed, ProjectNotFound
from gatehouse.permissions.model.crowd import Rehearsed
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.questions.asked import about_whom
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.store import GroupStore, PermissionStore, ProjectStore, Rehearsal, RehearsalStore

Action: TypeAlias = Literal["save", "delete"]


class Proposal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    pass


class RoleProposal(Proposal, frozen=True, kw_only=True, tag="role"):
    action: Action = "save"
    data: RoleDraft


class SchemaProposal(Proposal, frozen=True, kw_only=True, tag="schema"):
    data: dict[str, object]


class GroupProposal(Proposal, frozen=True, kw_only=True, tag="group"):
    action: Action = "save"
    group_id: str | None = None
    data: GroupDraft = GroupDraft()


class GroupAccessProposal(Proposal, frozen=True, kw_only=True, tag="group_access"):
    group_id: str
    data: AccessDraft


class ProjectProposal(Proposal, frozen=True, kw_only=True, tag="project"):
    action: Action = "save"
    data: ProjectDraft


class MembershipProposal(Proposal, frozen=True, kw_only=True, tag="membership"):
    data: MembershipDraft


class RecordProposal(Proposal, frozen=True, kw_only=True, tag="record"):
    data: RecordDraft
    expired: int = 0


AnyProposal: TypeAlias = (
    RoleProposal
    | SchemaProposal
    | GroupProposal
    | GroupAccessProposal
    | ProjectProposal
    | MembershipProposal
    | RecordProposal
)
OfApplication: TypeAlias = RoleProposal | SchemaProposal | RecordProposal  # others are about a project


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposer:
    """Whoever thinks of it, with the models his rights were judged by."""

    actor: Actor
    model: ApplicationModel  # of the application in which its effect is asked for
    central: ApplicationModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What a proposal can change: one project, or these people, and else whoever a changed role concerns."""

    project_id: str = ""
    user_ids: frozenset[str] = frozenset()

    @property
    def projects(self) -> frozenset[str]:
        return frozenset({self.project_id}) - {""}


class Rehearsals:
    """Runs the very commands of the endpoints on stores that undo."""

    def __init__(
        self,
        *,
        store: RehearsalStore,
        people: PermissionStore,
        groups: GroupStore,
        projects: ProjectStore,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._store = store
        self._people = people
        self._groups = groups
        self._projects = projects
        self._recorder = recorder
        self._clock = clock
        self._turn = asyncio.Lock()

    async def reach(self, proposal: AnyProposal, by: Proposer) -> Reach:
        """Of what is not there, nothing: the rehearsal will say that, to whoever may hear it."""
        match proposal:
            case RoleProposal() | SchemaProposal():
                return Reach()
            case RecordProposal(data=data):
                return Reach(user_ids=frozenset({about_whom(data.user_id, by.actor.user_id)}))
            case ProjectProposal(data=data):
                return Reach(project_id=await self._project_id(data.id))
            case MembershipProposal(data=data):
                named = frozenset(() if data.users is UNSET else data.users)
                return Reach(project_id=await self._project_id(data.id), user_ids=named)
            case GroupProposal(group_id=group_id):
                return Reach() if group_id is None else await self._of_group(group_id)
            case GroupAccessProposal(group_id=group_id, data=data):
                listed = data.users if isinstance(data.users, list) else []
                return await self._of_group(group_id, *(one for one in listed if isinstance(one, str)))
            case _:
                assert_never(proposal)

    async def rehearse(self, proposal: AnyProposal, by: Proposer, reach: Reach) -> Rehearsed:
        """Raises whatever the save would raise."""
        application_id = by.model.application.application_id
        stage = self._store.rehearsal(application_id, reach.projects, reach.user_ids)
        async with self._turn:  # saves wait for each other in the database: that is for those that are kept
            await self._play(stage, proposal, by)
        return stage.seen

    async def _play(self, stage: Rehearsal, proposal: AnyProposal, by: Proposer) -> None:
        match proposal:
            case RoleProposal() | SchemaProposal() | RecordProposal():
                await self._play_in_application(stage, proposal, by)
            case GroupProposal() | GroupAccessProposal():
                await self._play_with_group(stage, proposal, by.actor)
            case ProjectProposal(action="save", data=data):
                await self._project_commands(stage).save(by.actor, data)
            case ProjectProposal(data=data):
                await self._project_commands(stage).delete(by.actor, data.id, data.version)
            case MembershipProposal(data=data):
                await self._memberships(stage).save(by.actor, by.central, data)
            case _:
                assert_never(proposal)

    async def _play_in_application(self, stage: Rehearsal, proposal: OfApplication, by: Proposer) -> None:
        match proposal:
            case RoleProposal(action="save", data=data):
                await self._schemas(stage).save_role(by.actor, by.model, data)
            case RoleProposal(data=data):
                name = grammar.check_role_name(data.name, "data.change.data.name")
                await self._schemas(stage).delete_role(by.actor, by.model, name, data.version)
            case SchemaProposal(data=data):
                await self._schemas(stage).save(by.actor, by.model, data)
            case RecordProposal(data=data, expired=expired):
                user_id = about_whom(data.user_id, by.actor.user_id)
                end = fields.read_number(expired, "data.change.expired", LATEST)
                await self._records(stage).save(by.actor, by.model, user_id, data, end)
            case _:
                assert_never(proposal)

    async def _play_with_group(
        self, stage: Rehearsal, proposal: GroupProposal | GroupAccessProposal, actor: Actor
    ) -> None:
        groups = Groups(
            store=stage.groups,
            projects=stage.projects,
            people=self._people,
            recorder=self._recorder,
            clock=self._clock,
        )
        match proposal:
            case GroupAccessProposal(group_id=group_id, data=data):
                await groups.save_access(actor, group_id, data)
            case GroupProposal(action="save", group_id=group_id, data=data):
                await groups.save(actor, group_id, data)
            case GroupProposal(group_id=group_id, data=data):
                if group_id is None:
                    raise Malformed("data.change.group_id: required")
                await groups.delete(actor, group_id, data.version)
            case _:
                assert_never(proposal)

    def _schemas(self, stage: Rehearsal) -> AppSchemas:
        return AppSchemas(store=stage.applications, recorder=self._recorder, clock=self._clock)

    def _records(self, stage: Rehearsal) -> UserSchemas:
        return UserSchemas(
            store=stage.user_records,
            people=self._people,
            projects=stage.projects,
            recorder=self._recorder,
            clock=self._clock,
        )

    def _project_commands(self, stage: Rehearsal) -> Projects:
        return Projects(store=stage.projects, models=self._people, recorder=self._recorder)

    def _memberships(self, stage: Rehearsal) -> Memberships:
        return Memberships(
            projects=stage.projects,
            records=stage.user_records,
            recorder=self._recorder,
            clock=self._clock,
        )

    async def _project_id(self, name: str) -> str:
        try:
            return (await self._projects.project(name)).project.project_id
        except ProjectNotFound:
            return ""

    async def _of_group(self, group_id: str, *listed: str) -> Reach:
        try:
            group = await self._groups.group(group_id)
        except GroupNotFound:
            return Reach()
        return Reach(project_id=group.project_id, user_ids=frozenset({*group.users, *listed}))
