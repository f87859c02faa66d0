"""The audit log as the console shows it: newest first, a page at a time, never more than a page is read for it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar

from gatehouse.admin.visibility import Visibility
from gatehouse.audit.model import AuditRecord, AuditStore, ChainEnd, Refusal
from gatehouse.gamesessions.model import short_gsid, short_gsids
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest, Authenticator
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open, require_operation
from gatehouse.permissions.rights.rights import Rights

PAGE: Final = 50
EXAMINED_MOST: Final = 5_000  # records looked at for one page: a filter that finds little never reads the whole log
SUBJECTS_MOST: Final = 50  # projects, applications and groups together, each of them looked up
FOREVER: Final = 1 << 62


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class ActivityCursor:
    """A place in the log; what is older comes after it."""

    at: int
    record_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityFilter:
    """What is looked for; empty stands for any."""

    events: tuple[str, ...] = ()
    actor: str = ""
    subject: str = ""
    subjects: tuple[str, ...] | None = None  # nothing else is seen: of somebody who does not administer
    names: tuple[str, ...] = ()  # of whom it is about, or who did it: any of these
    application_id: int = 0
    text: str = ""  # in ids and details
    since: int = 0
    until: int = FOREVER  # not included
    after: ActivityCursor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityPage:
    records: Sequence[AuditRecord]
    after: ActivityCursor | None = None  # where older ones may be; None when these were all
    examined: bool = False  # the page is short because enough was looked at, not because there is no more


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalPage:
    """What was not allowed, the newest first."""

    rows: Sequence[Refusal]
    after: int  # where older ones begin; 0 when these were all


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectContents:
    """What is in some projects; whether somebody may see it is another question."""

    applications: Sequence[int]
    groups: Sequence[tuple[str, str]]  # the project's id, and its own


class ActivityStore(Protocol):
    async def activity(self, filters: ActivityFilter, limit: int) -> ActivityPage:
        """The newest first."""

    async def find_record(self, record_id: str) -> AuditRecord | None:
        """The record with this id."""

    async def refusals(self, after: int, limit: int) -> RefusalPage:
        """`after`: where a page before ended, 0 for the newest."""

    async def chain_end(self) -> ChainEnd:
        """The head of the log, and where seals and records end."""

    async def project_contents(self, project_ids: Collection[str]) -> ProjectContents:
        """The applications and groups of these projects, removed ones too."""


# What somebody may see of the audit log, and what of a record: one rule, for the console as for the API.
#
# Whoever administers sees everything but whole gsids. Others see what happened to the projects that they may view,
# and of what is in these to what they may read themselves; from where somebody came is not theirs to know.


Logged = TypeVar("Logged", bound=AuditRecord | Refusal)


class RecordNotFound(NotFound):
    public = "Record not found or no longer stored."


class VisibleAuditLog:
    def __init__(self, *, log: AuditStore, store: ActivityStore, authenticator: Authenticator) -> None:
        self._log = log
        self._store = store
        self._authenticator = authenticator

    async def record(
        self, request: AuthenticatedRequest, visibility: Visibility, record_id: str
    ) -> AuditRecord | Refusal:
        """As it is kept: `shown` cuts it. Raises RecordNotFound, for what is out of sight too; NoRight as `subjects`.

        Whoever sees anything of the log is told the same of what is not there and of what is not for him.
        """
        everything = is_open(request.rights, Operation.ADMINISTER)
        if not everything:
            refuse_without_projects(request, visibility)
        found = await self._log.find_record(record_id)
        if found is None or not (everything or await self._is_visible(request, visibility, found)):
            raise RecordNotFound
        return found

    async def subjects(
        self, request: AuthenticatedRequest, visibility: Visibility, only: str = ""
    ) -> tuple[str, ...] | None:
        """How the log names what he may see; None stands for everything. Raises NoRight where that is nothing.

        `only`: whether this one is among them, however many there are.
        """
        if is_open(request.rights, Operation.ADMINISTER):
            return None
        refuse_without_projects(request, visibility)
        return tuple(await self._visible_subjects(request, visibility, only))

    async def _is_visible(
        self, request: AuthenticatedRequest, visibility: Visibility, found: AuditRecord | Refusal
    ) -> bool:
        """What was refused is for administrators: it tells of attempts, not of what happened to a project."""
        return isinstance(found, AuditRecord) and found.subject in await self._visible_subjects(
            request, visibility, found.subject
        )

    async def _visible_subjects(
        self, request: AuthenticatedRequest, visibility: Visibility, only: str
    ) -> Sequence[str]:
        inside = await self._store.project_contents(visibility.projects)
        own = visibility.applications  # first: most likely they are open to him
        asked = [
            one
            for one in sorted(inside.applications, key=lambda one: (one not in own, one))
            if only in ("", f"application {one}")
        ]
        visits = await self._authenticator.attach_rights_in_each(request.caller, asked[:SUBJECTS_MOST])
        seen = [
            *(f"project {one}" for one in sorted(visibility.projects)),
            *(f"application {one}" for one, each in visits.items() if may_read_schema(each)),
            *(
                f"group {group_id}"
                for project_id, group_id in inside.groups
                if is_open(request.rights, Operation.GROUP_GET, GuardTarget(project_id=project_id, group_id=group_id))
            ),
        ]
        return [one for one in seen if only in ("", one)][:SUBJECTS_MOST]


def refuse_without_projects(request: AuthenticatedRequest, visibility: Visibility) -> None:
    """Raise NoRight where there is nothing to see, whatever is asked for."""
    if not visibility.projects:
        require_operation(request.rights, Operation.ADMINISTER)


def may_read_schema(request: AuthenticatedRequest) -> bool:
    return is_open(request.rights, Operation.SCHEMA_GET, request.target)


def truncated_at(subjects: Sequence[str] | None) -> int:
    """How many things it is about, of more that he may see; 0 when it is about all of them."""
    return SUBJECTS_MOST if len(subjects or ()) >= SUBJECTS_MOST else 0


def redact_record(found: Logged, rights: Rights) -> Logged:
    """No whole gsid: whoever knows one could go on with it (R4). Addresses are for administrators."""
    personal = (found.personal or {}) if is_open(rights, Operation.ADMINISTER) else {}
    return replace(found, subject=short_gsid(found.subject), details=short_gsids(found.details), personal=personal)
