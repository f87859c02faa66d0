"""What stands around every screen of the console, and the screens that several entries share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from gatehouse.admin.model.sight import Sight
from gatehouse.web.console.notes import NOT_SAVED
from gatehouse.web.console.places import Entry
from gatehouse.web.permissions.encoding import slices

FOR_EVERYBODY: Final = (Entry.HOME, Entry.PROJECTS, Entry.APPLICATIONS, Entry.ROLES, Entry.ACCESS)
ANSWER_SHOWN: Final = 2**18  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    here: Entry
    entries: tuple[Entry, ...]
    nick: str
    user_id: str
    csrf: str
    note: str  # what was just done: the end of a key `note.…`, or nothing
    now: int
    address: str  # this page's own

    @property
    def is_not_sent(self) -> bool:
        """Whether the form of this page was kept from being sent by the question for a fresh proof."""
        return self.note == NOT_SAVED


def entries_for(sight: Sight) -> tuple[Entry, ...]:
    """Who administers the installation sees all of them; others what their projects and applications have."""
    if sight.everything:
        return tuple(Entry)
    more = {Entry.GAMES: bool(sight.applications), Entry.ACTIVITY: bool(sight.projects)}
    return tuple(entry for entry in Entry if entry in FOR_EVERYBODY or more.get(entry))


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall:
    """What a screen shows, as a call of the API: anything that can be done here can be done by a program."""

    path: str  # below /api/permissions/
    body: Mapping[str, object]
    record: object = None  # `data` of the answer

    @property
    def answer(self) -> str:
        """The record, or nothing where a screen is a list of things that have screens."""
        return "" if self.record is None else shown_answer(self.record)

    @property
    def curl(self) -> str:
        """To be pasted into a shell that knows the three names."""
        quoted = written(self.body).replace("'", r"'\''")
        return (
            f'curl -X POST "$GATEHOUSE/api/permissions/{self.path}" \\\n'
            '  -H "Authorization: Bearer $JWT" -H "Factor: $FACTOR" \\\n'
            '  -H "Content-Type: application/json" \\\n'
            f"  -d '{quoted}'"
        )


def shown_answer(record: object) -> str:
    """A long one is left to the API: no page is made of it."""
    pieces, length = [], 0
    for piece in slices(record):
        pieces.append(piece)
        length += len(piece)
        if length > ANSWER_SHOWN:
            return ""
    return msgspec.json.format(b"".join(pieces), indent=2).decode()


def written(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
