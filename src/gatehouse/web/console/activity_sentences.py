"""An audit record as a sentence with names: "Jonas Weber signed in to Sky Raiders".

The texts are `sentence.<event>`. An event may have more forms, of which the first that fits is used:
`<event>_own` when people do it to their own account, `<event>_gained` and `<event>_lost` for roles of a person,
`<event>_to` when the record names an application or client, `<event>_from` the guest that became an account,
`<event>_named` what was changed.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from markupsafe import Markup, escape

from gatehouse.admin.activity import NamedIds, RecordNames
from gatehouse.audit.model import AuditRecord, Details
from gatehouse.gamesessions.model import short_gsid
from gatehouse.oauth.model import CLIENT_SUBJECT
from gatehouse.web.console.activity_text import (
    REFERENCE_KINDS,
    AuditReference,
    DetailLine,
    DetailValue,
    changed_name,
    event_meaning,
    parse_application_subject,
)
from gatehouse.web.pages.template_filters import date_of
from gatehouse.web.pages.translations import Translator

APPLICATION_FIELDS: Final = ("application_id", "app_id")
CLIENT_FIELDS: Final = ("client", "client_id")
COMMAND_LINE: Final = "cli:"  # before the name of the operating system's user
CLIENT_EVENTS: Final = ("client.", "token.")  # of which the subject is a client
ICONS: Final = {  # by the first word of an event; the rest has `DEFAULT_ICON`
    **dict.fromkeys(("session", "login", "site", "grant", "device"), "log-in"),
    **dict.fromkeys(("game", "game_session"), "gamepad-2"),
    **dict.fromkeys(("user", "account", "identity"), "user"),
    **dict.fromkeys(("password", "factor", "key", "access_key", "token", "service_token"), "key-round"),
    **dict.fromkeys(("role", "schema", "user_schema", "consent"), "shield"),
    **dict.fromkeys(("application", "client"), "layout-grid"),
    **dict.fromkeys(("project", "group"), "folder"),
    **dict.fromkeys(("installation", "setup", "provision", "service_account"), "settings"),
    "webhook": "webhook",
    "audit": "triangle-alert",
}
DEFAULT_ICON: Final = "activity"


def icon_of(event: str) -> str:
    return ICONS.get(event.partition(".")[0], DEFAULT_ICON)


def ids_in(records: Sequence[AuditRecord]) -> NamedIds:
    """The ids of which the sentences need the names."""
    texts = {text for record in records for text in (record.actor, record.subject)}
    applications = {number for record in records if (number := _application_of(record.details))}
    return NamedIds(
        people={text for text in texts if text.isascii() and text.isdigit()},
        applications=applications | {number for text in texts if (number := parse_application_subject(text))},
        projects=_subjects(texts, "project"),
        groups=_subjects(texts, "group"),
        clients={client for record in records if (client := client_of(record))}
        | {text.removeprefix(CLIENT_SUBJECT) for text in texts if text.startswith(CLIENT_SUBJECT)},
    )


def _subjects(texts: set[str], kind: str) -> set[str]:
    return {text.removeprefix(f"{kind} ") for text in texts if text.startswith(f"{kind} ")}


def _application_of(details: Details) -> int:
    values = (details.get(name) for name in APPLICATION_FIELDS)
    return next((value for value in values if isinstance(value, int) and not isinstance(value, bool) and value), 0)


def client_of(record: AuditRecord) -> str:
    if record.event.startswith(CLIENT_EVENTS):
        return record.subject
    values = (record.details.get(name) for name in CLIENT_FIELDS)
    return next((value for value in values if isinstance(value, str)), "")


def target_of(record: AuditRecord, names: RecordNames) -> str:
    """The name of the application or client that the details name; its id when it was deleted."""
    number, client = _application_of(record.details), client_of(record)
    if number:
        return names.applications.get(number, str(number))
    return names.clients.get(client, client) if client else str(record.details.get("site") or "")


def reference_of(text: str, names: RecordNames) -> AuditReference:
    kind, _, rest = text.partition(" ")
    if kind in REFERENCE_KINDS and rest:
        number = parse_application_subject(text)
        known = names.applications.get(number) or (names.projects if kind == "project" else names.groups).get(rest)
        return AuditReference(kind=kind, id=rest, name=known or "")
    if text in names.people:
        return AuditReference(kind="person", id=names.current_ids.get(text, text), name=names.people[text])
    client_id = text.removeprefix(CLIENT_SUBJECT)
    if text.startswith(CLIENT_SUBJECT) or text in names.clients:
        return AuditReference(kind="client", id=client_id, name=names.clients.get(client_id, ""))
    return AuditReference(kind="text", id=short_gsid(text))


def sentence_of(
    t: Translator, record: AuditRecord, names: RecordNames, lines: Sequence[DetailLine] = (), zone: str = ""
) -> Markup | str:
    """The record as a sentence, with dates in the reader's zone; an event that has none is told by its meaning."""
    gained, lost = _role_changes(lines)
    guest = (record.personal or {}).get("guest", "")
    target, name = target_of(record, names), changed_name(record.details) or guest
    forms = {
        "_own": record.actor == record.subject,
        "_gained": gained and not lost,
        "_lost": lost and not gained,
        "_to": target,
        "_from": guest,
        "_named": name,
        "": True,
    }
    keys = (f"{record.event}{form}" for form, fits in forms.items() if fits)
    known = next((key for key in keys if t.knows(f"sentence.{key}")), "")
    if not known:
        return event_meaning(record.event)
    return t(
        f"sentence.{known}",
        actor=bold_name(t, reference_of(record.actor, names)),
        subject=bold_name(t, reference_of(record.subject, names)),
        target=_bold(target or t("activity.unnamed")),
        count=len(gained or lost),
        name=_bold(_role_names(t, gained or lost, zone) or name or t("activity.unnamed")),
    )


def _role_names(t: Translator, roles: Sequence[DetailValue], zone: str) -> Markup:
    """The names of roles, each with the day on which it ends."""
    return Markup(", ").join(
        Markup("{} {} {}").format(role.text, t("access.until"), date_of(t, role.until, zone))
        if role.until
        else role.text
        for role in roles
    )


def _role_changes(lines: Sequence[DetailLine]) -> tuple[list[DetailValue], list[DetailValue]]:
    """The roles that a person got and lost."""
    gained: list[DetailValue] = []
    lost: list[DetailValue] = []
    for line in lines:
        if line.kind == "roles" and line.before is not None:
            gained += [role for role in line.after if role not in line.before]
            lost += [role for role in line.before if role not in line.after]
    return gained, lost


def bold_name(t: Translator, one: AuditReference) -> Markup:
    return _bold(one.name or next(_names_in_words(t, one)))


def _names_in_words(t: Translator, one: AuditReference) -> Iterator[str]:
    """What to call something that has no name."""
    if one.id.startswith(COMMAND_LINE):
        yield t("actor.cli")
    if one.kind == "text" and t.knows(f"actor.{one.id}"):
        yield t(f"actor.{one.id}")
    if one.kind == "text" and one.id.isascii() and one.id.isdigit():
        yield t("activity.unknown_person", id=one.id)
    yield one.id if one.kind == "text" and one.id else t(f"activity.unknown_{one.kind}", id=one.id)


def _bold(text: str) -> Markup:
    return Markup("<bdi>{}</bdi>").format(escape(text))
