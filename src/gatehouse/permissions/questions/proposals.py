"""A proposed change: the data of its save, and the dry run of that save (R6)."""

import asyncio
from typing import Literal, TypeAlias, assert_never

import msgspec
from msgspec import UNSET

from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.commands.app_schemas import RoleDraft, SchemaCommands
from gatehouse.permissions.commands.groups import AccessDraft, GroupCommands, GroupDraft
from gatehouse.permissions.commands.memberships import MembershipCommands, MembershipDraft
from gatehouse.permissions.commands.projects import ProjectCommands, ProjectDraft
from gatehouse.permissions.commands.user_schemas import RecordDraft, UserRecordCommands
from gatehouse.permissions.documents import fields, grammar
from gatehouse.permissions.documents.ends import MAX_EXPIRED
from gatehouse.permissions.errors import GroupNotFound, Malformed
from gatehouse.permissions.model.candidates import DryRunResult
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.questions.parsing import find_project_id, target_user_id
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.store import DryRun, DryRunStore, GroupStore, PermissionStore, ProjectStore

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
ApplicationProposal: TypeAlias = RoleProposal | SchemaProposal | RecordProposal  # others are about a project


class Proposer(msgspec.Struct, frozen=True, kw_only=True):
    """The proposing caller, with the models that decide about their rights."""

    actor: Actor
    model: ApplicationModel  # of the application in which its effect is asked for
    central: ApplicationModel


class ProposalReach(msgspec.Struct, frozen=True, kw_only=True):
    """What a proposal can change: one project, or these people, else everyone with a changed role."""

    project_id: str = ""
    user_ids: frozenset[str] = frozenset()

    @property
    def projects(self) -> frozenset[str]:
        return frozenset({self.project_id}) - {""}


class DryRuns:
    """Runs the commands of the endpoints on stores that roll back."""

    def __init__(
        self,
        *,
        store: DryRunStore,
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
        self._lock = asyncio.Lock()

    async def find_reach(self, proposal: AnyProposal, by: Proposer) -> ProposalReach:
        """Return what a proposal can change.

        Nothing for a missing target, which the dry run reports if the caller may know.
        """
        match proposal:
            case RoleProposal() | SchemaProposal():
                return ProposalReach()
            case RecordProposal(data=data):
                return ProposalReach(user_ids=frozenset({target_user_id(data.user_id, by.actor.user_id)}))
            case ProjectProposal(data=data):
                return ProposalReach(project_id=await self._project_id(data.id))
            case MembershipProposal(data=data):
                named = frozenset(() if data.users is UNSET else data.users)
                return ProposalReach(project_id=await self._project_id(data.id), user_ids=named)
            case GroupProposal(group_id=group_id):
                return ProposalReach() if group_id is None else await self._group_reach(group_id)
            case GroupAccessProposal(group_id=group_id, data=data):
                listed = data.users if isinstance(data.users, list) else []
                return await self._group_reach(group_id, *(element for element in listed if isinstance(element, str)))
            case _:
                assert_never(proposal)

    async def run(self, proposal: AnyProposal, by: Proposer, reach: ProposalReach) -> DryRunResult:
        """Run the dry run. Raises what the save would raise."""
        application_id = by.model.application.application_id
        stage = self._store.dry_run(application_id, reach.projects, reach.user_ids)
        async with self._lock:  # dry runs are serialized here, so that they do not delay real saves in the database
            await self._run_proposal(stage, proposal, by)
        return stage.state_after

    async def _run_proposal(self, dry_run: DryRun, proposal: AnyProposal, by: Proposer) -> None:
        match proposal:
            case RoleProposal() | SchemaProposal() | RecordProposal():
                await self._run_in_application(dry_run, proposal, by)
            case GroupProposal() | GroupAccessProposal():
                await self._run_on_group(dry_run, proposal, by.actor)
            case ProjectProposal(action="save", data=data):
                await self._project_commands(dry_run).save(by.actor, data)
            case ProjectProposal(data=data):
                await self._project_commands(dry_run).delete(by.actor, data.id, data.version)
            case MembershipProposal(data=data):
                await self._memberships(dry_run).save(by.actor, by.central, data)
            case _:
                assert_never(proposal)

    async def _run_in_application(self, dry_run: DryRun, proposal: ApplicationProposal, by: Proposer) -> None:
        match proposal:
            case RoleProposal(action="save", data=data):
                await self._schemas(dry_run).save_role(by.actor, by.model, data)
            case RoleProposal(data=data):
                name = grammar.check_role_name(data.name, "data.change.data.name")
                await self._schemas(dry_run).delete_role(by.actor, by.model, name, data.version)
            case SchemaProposal(data=data):
                await self._schemas(dry_run).save(by.actor, by.model, data)
            case RecordProposal(data=data, expired=expired):
                user_id = target_user_id(data.user_id, by.actor.user_id)
                end = fields.read_number(expired, "data.change.expired", MAX_EXPIRED)
                await self._records(dry_run).save(by.actor, by.model, user_id, data, end)
            case _:
                assert_never(proposal)

    async def _run_on_group(
        self, dry_run: DryRun, proposal: GroupProposal | GroupAccessProposal, actor: Actor
    ) -> None:
        groups = GroupCommands(
            store=dry_run.groups,
            projects=dry_run.projects,
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

    def _schemas(self, dry_run: DryRun) -> SchemaCommands:
        return SchemaCommands(store=dry_run.applications, recorder=self._recorder, clock=self._clock)

    def _records(self, dry_run: DryRun) -> UserRecordCommands:
        return UserRecordCommands(
            store=dry_run.user_records,
            people=self._people,
            projects=dry_run.projects,
            recorder=self._recorder,
            clock=self._clock,
        )

    def _project_commands(self, dry_run: DryRun) -> ProjectCommands:
        return ProjectCommands(store=dry_run.projects, models=self._people, recorder=self._recorder)

    def _memberships(self, dry_run: DryRun) -> MembershipCommands:
        return MembershipCommands(
            projects=dry_run.projects,
            records=dry_run.user_records,
            recorder=self._recorder,
            clock=self._clock,
        )

    async def _project_id(self, name: str) -> str:
        return await find_project_id(self._projects, name, default="")

    async def _group_reach(self, group_id: str, *listed: str) -> ProposalReach:
        try:
            group = await self._groups.group(group_id)
        except GroupNotFound:
            return ProposalReach()
        return ProposalReach(project_id=group.project_id, user_ids=frozenset({*group.users, *listed}))
