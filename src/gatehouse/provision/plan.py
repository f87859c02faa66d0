"""Plan, apply and export; and the order of the sections: what others refer to comes first."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import or_
from typing import Any, Final

from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import Passwords
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.addresses import Network
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Conflict, GatehouseError, NotFound
from gatehouse.keys.sealing import MasterKeys
from gatehouse.permissions.documents.apis import NOTHING_RESERVED, ReservedResources
from gatehouse.permissions.errors import (
    ApplicationTooLarge,
    GroupListed,
    LastOwner,
    LimitReached,
    Malformed,
    NoAdministratorLeft,
    RoleFull,
)
from gatehouse.provision.claims import release_first
from gatehouse.provision.document import Document
from gatehouse.provision.file_secrets import FileSeal
from gatehouse.provision.model import (
    EVERYTHING,
    Action,
    AddUser,
    Change,
    ChangeUser,
    FollowUpProblem,
    OnProgress,
    Plan,
    ProvisionStore,
    ReadScope,
    ShowProgress,
    StoredState,
    Unfit,
    Unsettled,
    ignore_progress,
    show_no_progress,
)
from gatehouse.provision.sections.application_users import ApplicationUsersStage
from gatehouse.provision.sections.applications import ApplicationSection
from gatehouse.provision.sections.bans import BanSection
from gatehouse.provision.sections.clients import ClientSection
from gatehouse.provision.sections.groups import GroupSection
from gatehouse.provision.sections.memberships import MembershipSection
from gatehouse.provision.sections.projects import ProjectSection, ProjectServicesStage
from gatehouse.provision.sections.section import (
    Context,
    FileSection,
    IssueToken,
    LoadImage,
    Options,
    PlanStage,
    ProvisionFile,
    SectionEntries,
    SectionPlan,
    SettingRules,
    issue_no_token,
    load_no_image,
)
from gatehouse.provision.sections.service_accounts import ServiceAccountRightsStage, ServiceAccountSection
from gatehouse.provision.sections.settings import SettingSection
from gatehouse.provision.sections.users import UserSection
from gatehouse.provision.state_after import state_after
from gatehouse.provision.unmanaged import ReportLine, ignore_line, without_unmanaged

USERS: Final = UserSection()
CLIENTS: Final = ClientSection()
PROJECTS: Final = ProjectSection()
APPLICATIONS: Final = ApplicationSection()
GROUPS: Final = GroupSection()
MEMBERSHIPS: Final = MembershipSection()
SERVICE_ACCOUNTS: Final = ServiceAccountSection()
SETTINGS: Final = SettingSection()
BANS: Final = BanSection()

# In the order of a file.
SECTIONS: Final[tuple[FileSection[Any], ...]] = (
    USERS,
    CLIENTS,
    PROJECTS,
    APPLICATIONS,
    GROUPS,
    MEMBERSHIPS,
    SERVICE_ACCOUNTS,
    SETTINGS,
    BANS,
)
SECTION_NAMES: Final = tuple(section.name for section in SECTIONS)
# In the order of the writes: a service names groups and roles, and a user may hold rights on anything.
STAGES: Final[tuple[PlanStage[Any], ...]] = (
    USERS,
    CLIENTS,
    PROJECTS,
    SERVICE_ACCOUNTS,
    APPLICATIONS,
    GROUPS,
    ProjectServicesStage(),
    MEMBERSHIPS,
    ServiceAccountRightsStage(),
    ApplicationUsersStage(),
    SETTINGS,
    BANS,
)


PLAN_ATTEMPTS: Final = 5  # new plans after concurrent changes of the same records
INSTALLATION: Final = "installation"
# Conflicts between the file and what is stored, which no retry resolves.
PERMANENT_CONFLICTS: Final = (
    NoAdministratorLeft,
    RoleFull,
    LastOwner,
    LimitReached,
    ApplicationTooLarge,
    GroupListed,
)


async def make_plan(
    file: ProvisionFile,
    state: StoredState,
    context: Context,
    options: Options,
    on_progress: OnProgress = ignore_progress,
) -> tuple[Plan, StoredState]:
    """The changes, stage by stage, and the state after them. Raises Unfit with every problem.

    Progress is in entries.
    """
    drafts: list[SectionPlan] = []
    reached = 0
    for stage in STAGES:
        if stage.name in file.sections:
            entries = file.entries_of(stage.name)
            of_stage = replace(context, on_progress=partial(tell_after, on_progress, reached))
            draft = await stage.plan(entries, state, of_stage, options)
            state = state_after(state, [write for change in draft.changes for write in change.writes])
            drafts.append(draft)
            if stage in SECTIONS:  # another stage reads the entries of its section again
                reached += len(entries)
                on_progress(reached)
    problems = [problem for draft in drafts for problem in draft.problems]
    if problems:  # follow-up problems only if there are no others
        own = [problem for problem in problems if not isinstance(problem, FollowUpProblem)]
        raise Unfit(dict.fromkeys(own or problems))
    return Plan(
        changes=tuple(change for draft in drafts for change in draft.changes),
        spared=tuple(line for draft in drafts for line in draft.spared),
        warnings=tuple(line for draft in drafts for line in draft.warnings),
    ), state


def tell_after(on_progress: OnProgress, before: int, reached: int) -> None:
    on_progress(before + reached)


class Provisioning:
    def __init__(
        self,
        *,
        store: ProvisionStore,
        masters: MasterKeys,
        passwords: Passwords,
        rules: PasswordRules,
        recorder: Recorder,
        clock: Clock,
        reachable: Sequence[Network] = (),
        reserved: ReservedResources = NOTHING_RESERVED,
        issue_token: IssueToken = issue_no_token,
        load_image: LoadImage = load_no_image,
        settings: SettingRules | None = None,
        show_progress: ShowProgress = show_no_progress,
    ) -> None:
        self._show_progress = show_progress
        self._settings = settings
        self._reachable = tuple(reachable)
        self._reserved = reserved
        self._issue_token = issue_token
        self._load_image = load_image
        self._store = store
        self._masters = masters
        self._passwords = passwords
        self._rules = rules
        self._recorder = recorder
        self._clock = clock

    async def dry_run(self, sections: Sequence[SectionEntries], options: Options, origin: AuditOrigin) -> Plan:
        """What apply would change. The writes are made and rolled back, so it refuses what apply would refuse."""
        return await self._write_with_retries(sections, options, origin, self._store.as_dry_run(), "Checking")

    async def apply(self, sections: Sequence[SectionEntries], options: Options, origin: AuditOrigin) -> Plan:
        """Make all changes or none, and return them; safe while the service is running."""
        return await self._write_with_retries(sections, options, origin, self._store, "Applying")

    async def plan(self, sections: Sequence[SectionEntries], options: Options) -> Plan:
        """What has to change. Raises Unfit with every problem of the file."""
        scopes = (section.section.read_scope(section.entries, prune=options.prune) for section in sections)
        state = await self._store.read_state(reduce(or_, scopes, ReadScope()), self._clock.now())
        file = ProvisionFile({one.section.name: one.entries for one in sections})
        with self._show_progress("Planning, entries", sum(len(one.entries) for one in sections)) as tell:
            return (await make_plan(file, state, self._context(file), options, tell))[0]

    async def _write_with_retries(
        self,
        sections: Sequence[SectionEntries],
        options: Options,
        origin: AuditOrigin,
        store: ProvisionStore,
        work: str,
    ) -> Plan:
        for _ in range(PLAN_ATTEMPTS):
            plan = await self.plan(sections, options)
            try:
                await self._write_changes(plan.changes, origin, store, work)
            except (Conflict, NotFound) as conflict:  # the state changed since it was read: plan again
                reason: GatehouseError = conflict
            except Malformed as error:
                raise Unfit([str(error)]) from error
            else:
                return plan
        if isinstance(reason, PERMANENT_CONFLICTS):
            raise Unfit([str(reason)]) from reason
        raise Unsettled(f"{Unsettled.public} ({reason})") from reason

    async def export(
        self, *, secrets: bool, only: Collection[str] = SECTION_NAMES, report: ReportLine = ignore_line
    ) -> dict[str, list[Document]]:
        """A file of these sections that apply accepts; `report` gets a line for what had to be left out."""
        state = without_unmanaged(await self._store.read_state(EVERYTHING, self._clock.now()), report)
        context = self._context(ProvisionFile())
        return {
            section.name: section.export_documents(state, context, secrets=secrets)
            for section in SECTIONS
            if section.name in only
        }

    async def _write_changes(
        self, changes: Sequence[Change], origin: AuditOrigin, store: ProvisionStore, work: str
    ) -> None:
        if not changes:
            return
        makes_administrator = any(
            isinstance(change.write, AddUser | ChangeUser) and change.write.administrator for change in changes
        )
        closed = self._recorder.record(AuditEvent.SETUP_CLOSED, origin, subject=INSTALLATION)
        writes = release_first(write for change in changes for write in change.writes)
        with self._show_progress(f"{work}, records", len(writes)) as tell:
            await store.write_changes(
                writes,
                self._audit_records(changes, origin),
                setup_closed=closed if makes_administrator else None,
                now=self._clock.now(),
                on_progress=tell,
            )

    def _audit_records(self, changes: Sequence[Change], origin: AuditOrigin) -> list[AuditRecord]:
        counts = {action.value: sum(change.action is action for change in changes) for action in Action}
        return [
            self._recorder.record(AuditEvent.PROVISIONED, origin, subject=INSTALLATION, details=counts),
            *(
                self._recorder.record(
                    note.event,
                    origin,
                    subject=note.subject or change.subject,
                    details=note.details,
                    personal=note.personal,
                )
                for change in changes
                for note in change.notes
            ),
        ]

    def _context(self, file: ProvisionFile) -> Context:
        return Context(
            reachable=self._reachable,
            reserved=self._reserved,
            issue_token=self._issue_token,
            load_image=self._load_image,
            settings=self._settings,
            file=file,
            masters=self._masters,
            seal=FileSeal(self._masters),
            passwords=self._passwords,
            rules=self._rules,
            now=self._clock.now(),
        )
