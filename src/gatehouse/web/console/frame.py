"""The frame of every page, flash messages and API calls.

A flash message says on the next page, once, what was just done.

In a cookie, not in the address: so no link can make a page claim something.
"""

import base64
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.games import session_ref
from gatehouse.admin.visibility import Visibility
from gatehouse.admin.visible_audit_log import may_read_schema
from gatehouse.audit.model import AuditRecord, Refusal
from gatehouse.fields.secrets import SecretText
from gatehouse.gamesessions.model import GameSession
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.project import Project
from gatehouse.web.api.permissions.envelope import iter_json_pieces
from gatehouse.web.api.permissions.game_sessions import game_session_entry as session_entry
from gatehouse.web.api.permissions.groups import group_list as groups_listed
from gatehouse.web.api.permissions.lookups import activity_entry
from gatehouse.web.api.permissions.projects import project_record
from gatehouse.web.api.permissions.schemas import whole_schema
from gatehouse.web.api.permissions.settings import SettingsPart
from gatehouse.web.console.paths import ConsoleEntry, is_console_page
from gatehouse.web.pages.contexts import PageContext

COOKIE_NAME: Final = "gh_note"
UNDO_COOKIE: Final = "gh_undo"
MAX_UNDO_LENGTH: Final = 3_000  # characters of the cookie; browsers keep 4,096 with its name
MAX_UNDO_BYTES: Final = 65_536  # unpacked
SIDEBAR_COOKIE: Final = "gh_sidebar"  # set by static/console.js
MESSAGE_SECONDS: Final = 60  # seconds; it is read by the very next page of the console
NOT_SAVED_MESSAGE: Final = "not_saved"  # of a form that a fresh sign-in interrupted
MESSAGE_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)


class Undo(msgspec.Struct, frozen=True, kw_only=True):
    """A form that takes back what was just done: where it goes, and its fields."""

    path: str
    fields: Sequence[tuple[str, str]] = ()


class FlashMessages:
    """Messages, and the form that undoes what one is about if it fits into a cookie."""

    def __init__(self, *, https: bool) -> None:
        self._https = https
        prefix = "__Host-" if https else ""  # R8: plain names on loopback
        self._name, self._undo_name = f"{prefix}{COOKIE_NAME}", f"{prefix}{UNDO_COOKIE}"

    def set(
        self, response: Response, message: str, *, lifetime: int = MESSAGE_SECONDS, undo: Undo | None = None
    ) -> Response:
        self._set_cookie(response, self._name, message, lifetime)
        if undo is not None and len(text := encode_undo(undo)) <= MAX_UNDO_LENGTH:
            self._set_cookie(response, self._undo_name, text, lifetime)
        return response

    def read(self, request: Request) -> str:
        message = request.cookies.get(self._name, "")
        return message if MESSAGE_NAME.fullmatch(message) else ""

    def read_undo(self, request: Request) -> Undo | None:
        return decode_undo(request.cookies.get(self._undo_name, ""))

    def clear(self, response: Response) -> Response:
        self._set_cookie(response, self._name, "", 0)
        self._set_cookie(response, self._undo_name, "", 0)
        return response

    def _set_cookie(self, response: Response, name: str, value: str, max_age: int) -> None:
        response.set_cookie(name, value, max_age=max_age, path="/", secure=self._https, httponly=True, samesite="lax")


def encode_undo(undo: Undo) -> str:
    packed = zlib.compress(msgspec.json.encode(undo))
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def decode_undo(text: str) -> Undo | None:
    """None for what no page of the console wrote: it leads to pages of the console only."""
    if not 0 < len(text) <= MAX_UNDO_LENGTH:
        return None
    try:
        packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        undo = msgspec.json.decode(zlib.decompressobj().decompress(packed, MAX_UNDO_BYTES), type=Undo)
    except (ValueError, zlib.error, msgspec.DecodeError):
        return None
    return undo if is_console_page(undo.path) else None


# The frame around every page, and pages that several entries share.


ENTRIES_FOR_ALL: Final = (
    ConsoleEntry.HOME,
    ConsoleEntry.PROJECTS,
    ConsoleEntry.APPLICATIONS,
    ConsoleEntry.ROLES,
    ConsoleEntry.ACCESS,
)
MAX_ANSWER_BYTES: Final = 2**18  # bytes


class MenuItem(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the sidebar for those who have the entry; its text is `nav.<name>`."""

    entry: ConsoleEntry
    icon: str
    screen: str = ""  # of the entry, where it has several

    @property
    def name(self) -> str:
        return self.screen or self.entry.value

    @property
    def path(self) -> str:
        return f"{self.entry.path}/{self.screen}" if self.screen else self.entry.path


# The sidebar by groups; a group's text is `nav.group_<name>`.
MENU_GROUPS: Final[Mapping[str, Sequence[MenuItem]]] = {
    "manage": (
        MenuItem(entry=ConsoleEntry.PEOPLE, icon="users"),
        MenuItem(entry=ConsoleEntry.PROJECTS, icon="folder"),
        MenuItem(entry=ConsoleEntry.APPLICATIONS, icon="layout-grid"),
        MenuItem(entry=ConsoleEntry.ROLES, icon="shield-check"),
    ),
    "access": (
        MenuItem(entry=ConsoleEntry.ACCESS, icon="circle-check", screen="check"),
        MenuItem(entry=ConsoleEntry.ACCESS, icon="log-in", screen="sign-in"),
        MenuItem(entry=ConsoleEntry.ACCESS, icon="user-search", screen="who"),
        MenuItem(entry=ConsoleEntry.ACCESS, icon="flask-conical", screen="simulate"),
    ),
    "monitor": (
        MenuItem(entry=ConsoleEntry.HOME, icon="house"),
        MenuItem(entry=ConsoleEntry.GAMES, icon="gamepad-2"),
        MenuItem(entry=ConsoleEntry.ACTIVITY, icon="activity"),
    ),
    "settings": (MenuItem(entry=ConsoleEntry.SETTINGS, icon="settings"),),
}


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    here: ConsoleEntry
    entries: tuple[ConsoleEntry, ...]
    is_collapsed: bool  # the sidebar, in this browser
    nick: str
    user_id: str
    csrf: str
    message: str  # what was just done; the text is `note.<message>`
    undo: Undo | None  # takes it back
    now: int
    address: str  # this page's own

    @property
    def has_unsent_form(self) -> bool:
        """Whether a fresh sign-in kept the form of this page from being sent."""
        return self.message == NOT_SAVED_MESSAGE

    @property
    def menu(self) -> Sequence[tuple[str, Sequence[MenuItem]]]:
        """The groups of the sidebar, with the entries this person has."""
        groups = (
            (group, [item for item in items if item.entry in self.entries]) for group, items in MENU_GROUPS.items()
        )
        return [(group, items) for group, items in groups if items]

    @property
    def is_search(self) -> bool:
        return self.address.partition("?")[0] == f"{ConsoleEntry.HOME.path}/search"

    def is_here(self, item: MenuItem) -> bool:
        path = self.address.partition("?")[0]
        if item.entry is ConsoleEntry.HOME:
            return path == item.path  # the search has an address below it
        first = path == item.entry.path and item.screen == "check"  # what Access shows by itself
        return item.entry == self.here and (not item.screen or path == item.path or first)


def entries_for(visibility: Visibility) -> tuple[ConsoleEntry, ...]:
    """All entries for administrators of the installation; for others those of their projects and applications."""
    if visibility.everything:
        return tuple(ConsoleEntry)
    more = {ConsoleEntry.GAMES: bool(visibility.applications), ConsoleEntry.ACTIVITY: bool(visibility.projects)}
    return tuple(entry for entry in ConsoleEntry if entry in ENTRIES_FOR_ALL or more.get(entry))


class NewSecretContext(PageContext, frozen=True, kw_only=True):
    """A secret that was just created: shown in the response to its form, and on no other page."""

    template = "console/secret.html"

    title: str
    trail: Sequence[tuple[str, str]]  # from below the entry
    text: str
    value: SecretText
    command: SecretText = ""  # a line that uses it
    facts: Sequence[tuple[str, str]] = ()
    environment: SecretText = ""  # a whole .env file with it
    environment_name: str = ""
    old_works_until: int = 0  # Unix seconds, of a secret that replaces another
    download: str = ""  # where the form of the file goes
    back: str
    done: str = ""  # what the button back says, where nothing needs to be stored


class ApiCall(msgspec.Struct, frozen=True, kw_only=True):
    """What a screen shows, as a call of the API: anything that can be done here can be done by a program."""

    path: str  # below /api/permissions/
    body: Mapping[str, object]
    record: object = None  # `data` of the answer

    @property
    def answer(self) -> str:
        """The record as JSON, or nothing for a list of things that have pages."""
        return "" if self.record is None else format_answer(self.record)

    @property
    def curl(self) -> str:
        """For a shell that has the three variables."""
        quoted = format_json(self.body).replace("'", r"'\''")
        return (
            f'curl -X POST "$GATEHOUSE/api/permissions/{self.path}" \\\n'
            '  -H "Authorization: Bearer $JWT" -H "Factor: $FACTOR" \\\n'
            '  -H "Content-Type: application/json" \\\n'
            f"  -d '{quoted}'"
        )


def format_answer(record: object) -> str:
    """Empty if it is too long for a page."""
    pieces, length = [], 0
    for piece in iter_json_pieces(record):
        pieces.append(piece)
        length += len(piece)
        if length > MAX_ANSWER_BYTES:
            return ""
    return msgspec.json.format(b"".join(pieces), indent=2).decode()


def format_json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


# API calls that several screens show, or that are about more than one line.


def record_call(record: AuditRecord | Refusal) -> ApiCall:
    """A record as the log shows it to the reader (admin/visible_audit_log.py)."""
    return ApiCall(
        path="activity",
        body={"action": "get", "data": {"record_id": record.record_id}},
        record=activity_entry(record),
    )


def session_call(session: GameSession, application_id: int, *, administers: bool) -> ApiCall:
    about = {"application_id": application_id} if application_id else {}
    return ApiCall(
        path="gameSession",
        body={"action": "get", **about, "data": {"ref": session_ref(session.gsid)}},
        record=session_entry(session, whole=administers),
    )


def readable_schema_call(authenticated: AuthenticatedRequest, model: ApplicationModel) -> ApiCall | None:
    """None for those who may change the schema but not read it: the call would be refused."""
    return schema_call(model) if may_read_schema(authenticated) else None


def schema_call(model: ApplicationModel) -> ApiCall:
    return ApiCall(
        path="meta/schema",
        body={"action": "get", "application_id": model.application.application_id},
        record=whole_schema(model),
    )


def project_call(project: Project) -> ApiCall:
    return ApiCall(
        path="project",
        body={"action": "get", "data": {"id": project.project_id}},
        record=project_record(project),
    )


def group_call(group: Group) -> ApiCall:
    return ApiCall(
        path="group",
        body={"action": "get", "group_id": group.group_id, "data": {"project_id": group.project_id}},
        record=groups_listed([group]),
    )


def settings_call(part: SettingsPart, **more: int) -> ApiCall:
    """`more`: what the page asked for beside the part."""
    data = {"part": part.__struct_config__.tag, **more}
    return ApiCall(path="settings", body={"action": "get", "data": data}, record=part)
