"""Who may see which records of the audit log, and which parts of a record, for the console as for the API.

Administrators see everything but whole gsids. Others see records about the projects that they may view, and about
the applications and groups in these that they may read; they see no IP addresses.
"""

from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from gatehouse.admin.activity import ActivityStore
from gatehouse.admin.visibility import Visibility
from gatehouse.audit.model import AuditRecord, AuditStore, Refusal
from gatehouse.gamesessions.model import short_gsid, short_gsids
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest, Authenticator
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open, require_operation
from gatehouse.permissions.rights.rights import Rights

MAX_SUBJECTS: Final = 50  # projects, applications and groups together; each takes a lookup

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
        """Return the record as stored; `redact_record` cuts it. Raises RecordNotFound; NoRight as `subjects`.

        A record that is not visible is not found, so that its existence is not revealed.
        """
        everything = is_open(request.rights, Operation.ADMINISTER)
        if not everything:
            refuse_without_projects(request, visibility)
        record = await self._log.find_record(record_id)
        if record is None or not (everything or await self._is_visible(request, visibility, record)):
            raise RecordNotFound
        return record

    async def subjects(
        self, request: AuthenticatedRequest, visibility: Visibility, only: str = ""
    ) -> tuple[str, ...] | None:
        """Return the subjects whose records are visible, or None for all. Raises NoRight if there are none.

        `only`: check this subject alone, regardless of the limit.
        """
        if is_open(request.rights, Operation.ADMINISTER):
            return None
        refuse_without_projects(request, visibility)
        return tuple(await self._visible_subjects(request, visibility, only))

    async def _is_visible(
        self, request: AuthenticatedRequest, visibility: Visibility, record: AuditRecord | Refusal
    ) -> bool:
        """Whether the record is visible to a viewer who is no administrator; refusals never are."""
        return isinstance(record, AuditRecord) and record.subject in await self._visible_subjects(
            request, visibility, record.subject
        )

    async def _visible_subjects(
        self, request: AuthenticatedRequest, visibility: Visibility, only: str
    ) -> Sequence[str]:
        contents = await self._store.project_contents(visibility.projects)
        own = visibility.applications  # first: these are most likely readable
        candidates = [
            number
            for number in sorted(contents.applications, key=lambda number: (number not in own, number))
            if only in ("", f"application {number}")
        ]
        authenticated = await self._authenticator.attach_rights_in_each(request.caller, candidates[:MAX_SUBJECTS])
        visible = [
            *(f"project {project}" for project in sorted(visibility.projects)),
            *(f"application {number}" for number, each in authenticated.items() if may_read_schema(each)),
            *(
                f"group {group_id}"
                for project_id, group_id in contents.groups
                if is_open(request.rights, Operation.GROUP_GET, GuardTarget(project_id=project_id, group_id=group_id))
            ),
        ]
        return [subject for subject in visible if only in ("", subject)][:MAX_SUBJECTS]


def refuse_without_projects(request: AuthenticatedRequest, visibility: Visibility) -> None:
    """Raise NoRight for those who see no project and do not administer."""
    if not visibility.projects:
        require_operation(request.rights, Operation.ADMINISTER)


def may_read_schema(request: AuthenticatedRequest) -> bool:
    return is_open(request.rights, Operation.SCHEMA_GET, request.target)


def truncated_at(subjects: Sequence[str] | None) -> int:
    """The number of subjects searched if there may be more; 0 if all were searched."""
    return MAX_SUBJECTS if len(subjects or ()) >= MAX_SUBJECTS else 0


def redact_record(record: Logged, rights: Rights) -> Logged:
    """Shorten gsids, which let anyone take over the session (R4); keep addresses for administrators only."""
    personal = (record.personal or {}) if is_open(rights, Operation.ADMINISTER) else {}
    return replace(record, subject=short_gsid(record.subject), details=short_gsids(record.details), personal=personal)
