"""Plan, apply and export; and the order of the sections: what others refer to comes first."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial, reduce
from operator import or_
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.errors import UserChanged
from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import Passwords
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.addresses import Network
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Conflict, GatehouseError, NotFound
from gatehouse.keys.sealing import MasterKeys
from gatehouse.oauth.errors import ClientChanged
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
    AddServiceAccount,
    AddUser,
    Change,
    ChangeUser,
    FileRun,
    FollowUpProblem,
    OnProgress,
    Plan,
    PlanAudit,
    ProvisionStore,
    ReadScope,
    ShowProgress,
    StoredState,
    Unfit,
    Unsettled,
    ignore_progress,
    show_no_progress,
)
from gatehouse.provision.sections.applications import APPLICATION_USERS, APPLICATIONS
from gatehouse.provision.sections.bans import BANS
from gatehouse.provision.sections.clients import CLIENTS
from gatehouse.provision.sections.groups import GROUPS
from gatehouse.provision.sections.memberships import MEMBERSHIPS
from gatehouse.provision.sections.projects import PROJECT_SERVICES, PROJECTS
from gatehouse.provision.sections.section import (
    Context,
    IssueToken,
    LoadImage,
    Options,
    PlanStage,
    ProvisionFile,
    ResolvedSection,
    Section,
    SectionEntries,
    SettingRules,
    issue_no_token,
    load_no_image,
)
from gatehouse.provision.sections.service_accounts import SERVICE_ACCOUNT_RIGHTS, SERVICE_ACCOUNTS
from gatehouse.provision.sections.settings import SETTINGS
from gatehouse.provision.sections.users import USERS
from gatehouse.provision.unmanaged import ReportLine, ignore_line, without_unmanaged

# In the order of a file.
SECTIONS: Final[tuple[Section, ...]] = (
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
STAGES: Final[tuple[PlanStage, ...]] = (
    USERS,
    CLIENTS,
    PROJECTS,
    SERVICE_ACCOUNTS,
    APPLICATIONS,
    GROUPS,
    PROJECT_SERVICES,
    MEMBERSHIPS,
    SERVICE_ACCOUNT_RIGHTS,
    APPLICATION_USERS,
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


class ResolvedFile(Struct, frozen=True):
    """The sections of a file, resolved on this state."""

    sections: Mapping[str, ResolvedSection]
    state: StoredState

    def refuse_changed(self, state: StoredState) -> None:
        """Refuse accounts and clients that changed since their entries were resolved, new ones included."""
        before = self.state
        if {(one.user_id, one.version) for one in state.users} != {
            (one.user_id, one.version) for one in before.users
        }:
            raise UserChanged
        if {(one.client_id, one.version) for one in state.clients} != {
            (one.client_id, one.version) for one in before.clients
        }:
            raise ClientChanged


class FileAttempt:
    """One attempt to apply a file: what its sections find wrong, and their plan."""

    def __init__(self, file: ResolvedFile, context: Context, options: Options, on_progress: OnProgress) -> None:
        self._file = file
        self._context = context
        self._options = options
        self._on_progress = on_progress
        self._reached = 0  # entries of the sections that are done
        self._entries = 0  # of the section whose changes are written
        self._writes = 1
        self.problems: list[str] = []

    def run(self, state: StoredState) -> FileRun:
        """Plan one stage after the other, each on what is stored after the ones before.

        Raises Unfit with every problem, and only those that do not follow from others.
        """
        self.problems, self._reached, plan = [], 0, Plan()
        self._file.refuse_changed(state)
        for stage in STAGES:
            if stage.name not in self._file.sections:
                continue
            section = self._file.sections[stage.name]
            draft = section.plan(stage, state, self._context, self._options)
            self.problems += draft.problems
            self._entries = len(section.entries) if stage in SECTIONS else 0  # other stages read them again
            writes = release_first(write for change in draft.changes for write in change.writes)
            self._writes = len(writes)
            try:
                state = yield writes
            except GatehouseError:
                if not self.problems:
                    raise
            self._reached += self._entries
            self._on_progress(self._reached)
            plan |= draft.plan
        self.refuse_problems()
        return plan

    def refuse_problems(self) -> None:
        if self.problems:  # those that follow from others only if there are no others
            own = [problem for problem in self.problems if not isinstance(problem, FollowUpProblem)]
            raise Unfit(dict.fromkeys(own or self.problems))

    def tell_written(self, written: int) -> None:
        self._on_progress(self._reached + self._entries * written // max(self._writes, 1))


def plan_without_changes(attempt: FileAttempt, state: StoredState) -> Plan | None:
    """Return the plan of a file that changes nothing, which needs no transaction; None for others."""
    run = attempt.run(state)
    try:
        writes = next(run)
        while not writes:
            writes = run.send(state)
    except StopIteration as end:
        unchanged: Plan = end.value
        return unchanged
    run.close()
    return None


async def resolve_sections(
    sections: Sequence[SectionEntries],
    state: StoredState,
    context: Context,
    options: Options,
    on_progress: OnProgress,
) -> ResolvedFile:
    """Do before the transaction what takes long: hash passwords and load images. Progress is in entries."""
    resolved: dict[str, ResolvedSection] = {}
    reached = 0
    for one in sections:
        of_section = replace(context, on_progress=partial(tell_after, on_progress, reached))
        resolved[one.section.name] = await one.section.resolve(one.entries, state, of_section, options)
        reached += len(one.entries)
        on_progress(reached)
    return ResolvedFile(resolved, state)


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
        """What apply would change: it is applied and rolled back, so it refuses what apply would refuse."""
        return await self._run(sections, options, origin, self._store.as_dry_run(), "Checking, records")

    async def apply(self, sections: Sequence[SectionEntries], options: Options, origin: AuditOrigin) -> Plan:
        """Make all changes or none, and return them; safe while the service is running."""
        plan = await self._run(sections, options, origin, self._store, "Applying, records")
        return replace(plan, changes=tuple([await self._with_token(change) for change in plan.changes]))

    async def _run(
        self,
        sections: Sequence[SectionEntries],
        options: Options,
        origin: AuditOrigin,
        store: ProvisionStore,
        work: str,
    ) -> Plan:
        scope = reduce(or_, (one.scope(prune=options.prune) for one in sections), ReadScope())
        context = self._context(ProvisionFile({one.section.name: one.entries for one in sections}))
        total = sum(len(one.entries) for one in sections)
        for _ in range(PLAN_ATTEMPTS):
            with self._show_progress("Planning, entries", total) as tell:
                state = await self._store.read_state(scope, context.now)
                resolved = await resolve_sections(sections, state, context, options, tell)
            unchanged = plan_without_changes(FileAttempt(resolved, context, options, ignore_progress), state)
            if unchanged is not None:
                return unchanged
            with self._show_progress(work, total) as tell:
                attempt = FileAttempt(resolved, context, options, tell)
                try:
                    return await store.run_file(
                        attempt.run,
                        scope,
                        partial(self._audit, origin=origin),
                        by=origin.actor,
                        now=context.now,
                        on_progress=attempt.tell_written,
                    )
                except (Conflict, NotFound) as conflict:  # the state changed since it was read: plan again
                    attempt.refuse_problems()
                    reason: GatehouseError = conflict
                except Malformed as error:
                    attempt.refuse_problems()
                    raise Unfit([str(error)]) from error
        if isinstance(reason, PERMANENT_CONFLICTS):
            raise Unfit([str(reason)]) from reason
        raise Unsettled(f"{Unsettled.public} ({reason})") from reason

    async def _with_token(self, change: Change) -> Change:
        """Issue the JWT of a new service account, which is stored by now."""
        match change.write:
            case AddServiceAccount(account) if not account.revoked:
                return replace(change, generated_secret=await self._issue_token(account) or None)
        return change

    async def export(
        self, *, secrets: bool, only: Collection[str] = SECTION_NAMES, report: ReportLine = ignore_line
    ) -> dict[str, list[Document]]:
        """A file of these sections that apply accepts; `report` gets a line for what had to be left out."""
        state = without_unmanaged(await self._store.read_state(EVERYTHING, self._clock.now()), report)
        context = replace(self._context(ProvisionFile()), secrets=secrets)
        return {section.name: section.documents(state, context) for section in SECTIONS if section.name in only}

    def _audit(self, plan: Plan, origin: AuditOrigin) -> PlanAudit:
        makes_administrator = any(
            isinstance(change.write, AddUser | ChangeUser) and change.write.administrator for change in plan.changes
        )
        closed = self._recorder.record(AuditEvent.SETUP_CLOSED, origin, subject=INSTALLATION)
        return PlanAudit(
            records=self._audit_records(plan.changes, origin), setup_closed=closed if makes_administrator else None
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
            load_image=self._load_image,
            settings=self._settings,
            file=file,
            masters=self._masters,
            seal=FileSeal(self._masters),
            passwords=self._passwords,
            rules=self._rules,
            now=self._clock.now(),
        )
