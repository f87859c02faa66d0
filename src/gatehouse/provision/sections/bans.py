"""Bans in files: entries, plan and export (R10)."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from gatehouse.accounts.bans.model import INSTALLATION, MAX_PUBLIC_TEXT, MAX_REASON, Ban, BanScope
from gatehouse.accounts.model import CENTRAL_APPLICATION, AccountKind
from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.errors import BadInput
from gatehouse.kernel.ids import new_record_id
from gatehouse.permissions.commands.bans import DRAFT_FIELDS, LATEST_END, ban_details
from gatehouse.permissions.documents.fields import read_line, read_lines, read_number
from gatehouse.provision.document import Document
from gatehouse.provision.model import AuditNote, Change, PutBan, ReadScope, RecordKind, StoredState
from gatehouse.provision.sections.references import EntryPlanner
from gatehouse.provision.sections.section import Context, Located, Options, Section, merge_field


class BanFileEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Without application_id and project_id it is about the whole installation."""

    user_id: str
    application_id: int = 0
    project_id: str = ""
    reason: str | UnsetType | None = UNSET
    public_text: str | UnsetType | None = UNSET
    until: int | UnsetType | None = UNSET  # Unix seconds; an entry whose end has passed is ignored


BAN: Final[RecordKind[Ban]] = RecordKind(
    "ban",
    name_of=lambda ban: f"{ban.user_id} from {ban.application_id or ban.project_id or 'the installation'}",
    subject_of=lambda ban: ban.user_id,
)


def ban_scope(entries: Sequence[BanFileEntry]) -> ReadScope:
    return ReadScope(user_ids=frozenset(entry.user_id for entry in entries), permissions=True, bans=True)


class BanPlanner(EntryPlanner[BanFileEntry]):
    def __init__(self, state: StoredState, context: Context, options: Options) -> None:
        super().__init__(state, context, options)
        self._active = {(ban.user_id, ban.scope): ban for ban in state.bans}

    def plan_entry(self, located: Located[BanFileEntry]) -> Change | None:
        try:
            return self._plan_ban(located.entry, located.place)
        except BadInput as error:
            raise BadInput(f"{located.place}: {error}") from None

    def _plan_ban(self, entry: BanFileEntry, place: str) -> Change | None:
        scope = find_scope(entry, self._state)
        key = (entry.user_id, scope)
        if self._places.setdefault(key, place) != place:
            raise BadInput("the same person and scope twice")
        before = self._active.get(key)
        after = wanted_ban(entry, scope, before, self._context.now)
        return None if after is None or after == before else ban_change(before, after)

    def removals(self) -> Iterator[Change]:
        for key, ban in self._active.items():
            if key not in self._places:
                yield lift_change(ban)


def find_scope(entry: BanFileEntry, state: StoredState) -> BanScope:
    """Return the scope of a person who exists. Raises BadInput."""
    if not any(user.user_id == entry.user_id and user.kind is AccountKind.PERSON for user in state.users):
        raise BadInput(f"user_id: there is no person {entry.user_id}")
    if entry.application_id and entry.project_id:
        raise BadInput("project_id: not together with application_id")
    if entry.application_id:
        if entry.application_id == CENTRAL_APPLICATION or entry.application_id not in state.permissions.applications:
            raise BadInput(f"application_id: people cannot be banned from {entry.application_id}")
        return BanScope(application_id=entry.application_id)
    if not entry.project_id:
        return INSTALLATION
    project = state.permissions.project(entry.project_id)
    if project is None:
        raise BadInput(f"project_id: there is no project {entry.project_id}")
    return BanScope(project_id=project.project.project_id)


def wanted_ban(entry: BanFileEntry, scope: BanScope, before: Ban | None, now: int) -> Ban | None:
    """Return the ban as the file says; the stored one if it is the same, None if its end has passed."""
    kept = before or Ban(ban_id="", user_id=entry.user_id)
    ban = replace(
        kept,
        application_id=scope.application_id,
        project_id=scope.project_id,
        reason=read_lines(merge_field(entry.reason, kept=kept.reason, cleared=""), "reason", MAX_REASON),
        public_text=read_line(
            merge_field(entry.public_text, kept=kept.public_text, cleared=""), "public_text", MAX_PUBLIC_TEXT
        ),
        until=read_number(merge_field(entry.until, kept=kept.until, cleared=0), "until", LATEST_END),
    )
    if 0 < ban.until <= now:
        return None
    if ban == before:
        return before
    return replace(ban, ban_id=new_record_id(now), author="", created_at=now)


def ban_change(before: Ban | None, after: Ban) -> Change | None:
    note = AuditNote(event=AuditEvent.USER_BANNED, details=ban_details(after))
    if before is None:
        return BAN.addition(after, PutBan(None, after), notes=[note])
    changed = [name for name in DRAFT_FIELDS if getattr(before, name) != getattr(after, name)]
    return BAN.change(after, changed, [PutBan(before, after)], notes=[note])


def lift_change(ban: Ban) -> Change:
    note = AuditNote(event=AuditEvent.USER_BAN_LIFTED, details=ban_details(ban))
    return BAN.removal(ban, PutBan(ban, None), note)


def ban_document(ban: Ban) -> Document:
    place: Document = {}
    if ban.application_id:
        place = {"application_id": ban.application_id}
    elif ban.project_id:
        place = {"project_id": ban.project_id}
    return {
        "user_id": ban.user_id,
        **place,
        "reason": ban.reason,
        "public_text": ban.public_text,
        "until": ban.until,
    }


BANS: Final = Section(
    name="bans",
    entry=BanFileEntry,
    scope=ban_scope,
    plan=BanPlanner.plan,
    documents=lambda state, _: list(map(ban_document, state.bans)),
)
