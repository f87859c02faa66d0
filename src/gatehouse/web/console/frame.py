"""What stands around every screen of the console, and the screens that several entries share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from gatehouse.admin.model.sight import Visibility
from gatehouse.web.console.notes import NOT_SAVED_MESSAGE
from gatehouse.web.console.places import ConsoleEntry
from gatehouse.web.permissions.encoding import iter_json_pieces

ENTRIES_FOR_ALL: Final = (
    ConsoleEntry.HOME,
    ConsoleEntry.PROJECTS,
    ConsoleEntry.APPLICATIONS,
    ConsoleEntry.ROLES,
    ConsoleEntry.ACCESS,
)
MAX_ANSWER_BYTES: Final = 2**18  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    here: ConsoleEntry
    entries: tuple[ConsoleEntry, ...]
    nick: str
    user_id: str
    csrf: str
    note: str  # what was just done: the end of a key `note.…`, or nothing
    now: int
    address: str  # this page's own

    @property
    def is_not_sent(self) -> bool:
        """Whether the form of this page was kept from being sent by the question for a fresh proof."""
        return self.note == NOT_SAVED_MESSAGE


def entries_for(visibility: Visibility) -> tuple[ConsoleEntry, ...]:
    """Who administers the installation sees all of them; others what their projects and applications have."""
    if visibility.everything:
        return tuple(ConsoleEntry)
    more = {ConsoleEntry.GAMES: bool(visibility.applications), ConsoleEntry.ACTIVITY: bool(visibility.projects)}
    return tuple(entry for entry in ConsoleEntry if entry in ENTRIES_FOR_ALL or more.get(entry))


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall:
    """What a screen shows, as a call of the API: anything that can be done here can be done by a program."""

    path: str  # below /api/permissions/
    body: Mapping[str, object]
    record: object = None  # `data` of the answer

    @property
    def answer(self) -> str:
        """The record, or nothing where a screen is a list of things that have screens."""
        return "" if self.record is None else format_answer(self.record)

    @property
    def curl(self) -> str:
        """To be pasted into a shell that knows the three names."""
        quoted = format_json(self.body).replace("'", r"'\''")
        return (
            f'curl -X POST "$GATEHOUSE/api/permissions/{self.path}" \\\n'
            '  -H "Authorization: Bearer $JWT" -H "Factor: $FACTOR" \\\n'
            '  -H "Content-Type: application/json" \\\n'
            f"  -d '{quoted}'"
        )


def format_answer(record: object) -> str:
    """A long one is left to the API: no page is made of it."""
    pieces, length = [], 0
    for piece in iter_json_pieces(record):
        pieces.append(piece)
        length += len(piece)
        if length > MAX_ANSWER_BYTES:
            return ""
    return msgspec.json.format(b"".join(pieces), indent=2).decode()


def format_json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
