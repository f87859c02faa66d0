"""What somebody may see of the audit log, and what of a record: one rule, for the console as for the API.

Whoever administers sees everything but whole gsids. Others see what happened to the projects that they may view, and
of what is in these to what they may read themselves; from where somebody came is not theirs to know.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from gatehouse.admin.model.activity import SUBJECTS_MOST, ActivityStore
from gatehouse.admin.model.sight import Sight
from gatehouse.audit.model import Record, Refusal
from gatehouse.audit.store import AuditStore
from gatehouse.gamesessions.model import short_gsid, short_gsids
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.callers.desk import Desk, Visit
from gatehouse.permissions.rights.guard import About, Operation, is_open, require
from gatehouse.permissions.rights.rights import Rights

Logged = TypeVar("Logged", bound=Record | Refusal)


class RecordNotFound(NotFound):
    public = "Record not found or no longer stored."


class SeenLog:
    def __init__(self, *, log: AuditStore, store: ActivityStore, desk: Desk) -> None:
        self._log = log
        self._store = store
        self._desk = desk

    async def record(self, visit: Visit, sight: Sight, record_id: str) -> Record | Refusal:
        """As it is kept: `shown` cuts it. Raises RecordNotFound, for what is out of sight too; NoRight as `subjects`.

        Whoever sees anything of the log is told the same of what is not there and of what is not for him.
        """
        everything = is_open(visit.rights, Operation.ADMINISTER)
        if not everything:
            refuse_without_projects(visit, sight)
        found = await self._log.find(record_id)
        if found is None or not (everything or await self._is_seen(visit, sight, found)):
            raise RecordNotFound
        return found

    async def subjects(self, visit: Visit, sight: Sight, only: str = "") -> tuple[str, ...] | None:
        """How the log names what he may see; None stands for everything. Raises NoRight where that is nothing.

        `only`: whether this one is among them, however many there are.
        """
        if is_open(visit.rights, Operation.ADMINISTER):
            return None
        refuse_without_projects(visit, sight)
        return tuple(await self._named(visit, sight, only))

    async def _is_seen(self, visit: Visit, sight: Sight, found: Record | Refusal) -> bool:
        """What was refused is for administrators: it tells of attempts, not of what happened to a project."""
        return isinstance(found, Record) and found.subject in await self._named(visit, sight, found.subject)

    async def _named(self, visit: Visit, sight: Sight, only: str) -> Sequence[str]:
        inside = await self._store.belongings(sight.projects)
        own = sight.applications  # first: most likely they are open to him
        asked = [
            one
            for one in sorted(inside.applications, key=lambda one: (one not in own, one))
            if only in ("", f"application {one}")
        ]
        visits = await self._desk.about_each(visit.caller, asked[:SUBJECTS_MOST])
        seen = [
            *(f"project {one}" for one in sorted(sight.projects)),
            *(f"application {one}" for one, each in visits.items() if reads_schema(each)),
            *(
                f"group {group_id}"
                for project_id, group_id in inside.groups
                if is_open(visit.rights, Operation.GROUP_GET, About(project_id=project_id, group_id=group_id))
            ),
        ]
        return [one for one in seen if only in ("", one)][:SUBJECTS_MOST]


def refuse_without_projects(visit: Visit, sight: Sight) -> None:
    """Raise NoRight where there is nothing to see, whatever is asked for."""
    if not sight.projects:
        require(visit.rights, Operation.ADMINISTER)


def reads_schema(visit: Visit) -> bool:
    return is_open(visit.rights, Operation.SCHEMA_GET, visit.about)


def cut_at(subjects: Sequence[str] | None) -> int:
    """How many things it is about, of more that he may see; 0 when it is about all of them."""
    return SUBJECTS_MOST if len(subjects or ()) >= SUBJECTS_MOST else 0


def shown(found: Logged, rights: Rights) -> Logged:
    """No whole gsid: whoever knows one could go on with it (R4). Addresses are for administrators."""
    personal = (found.personal or {}) if is_open(rights, Operation.ADMINISTER) else {}
    return replace(found, subject=short_gsid(found.subject), details=short_gsids(found.details), personal=personal)
