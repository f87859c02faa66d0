"""The details of an audit record in words: the values before and after a change.

The log keeps differences as short texts of Python values (audit/recorder.py); they are read back here. What was
too long to be kept whole is shown as it is.
"""

import ast
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import Details
from gatehouse.gamesessions.model import GSID_PATTERN, short_gsid
from gatehouse.permissions.model.rules import PROJECT_ACCESS, RuleSection

ARROW: Final = " -> "
NOTHING: Final = "nothing"
YES, NO = "yes", "no"  # the texts are `activity.is_<it>`
NAME_FIELDS: Final = ("role", "title", "name", "comment", "kid", "factor")  # of details, the most telling first
HIGH_SEVERITY_MARK: Final = "; high"  # how the log's table marks what needs attention
TIME_FIELDS: Final = ("until",)  # Unix seconds
REFERENCE_KINDS: Final = ("application", "project", "group")


class DetailValue(Struct, frozen=True):
    """A value in words; a role or permission may have an end, which each reader sees in their language and zone."""

    text: str
    until: int = 0
    name: str = ""  # of the member of an object that it is


class DetailLine(Struct, frozen=True, kw_only=True):
    """One line of a record. Without `before` it is a fact, not a change."""

    name: str
    kind: str = "field"  # field, rule or roles
    place: str = ""  # the project it is about, for what is held in one
    before: tuple[DetailValue, ...] | None = None
    after: tuple[DetailValue, ...] = ()


class AuditReference(Struct, frozen=True, kw_only=True):
    """A person or thing that a record names."""

    kind: str  # person, application, project, group, client or text
    id: str
    name: str = ""


def event_meaning(event: str) -> str:
    """What happened, as the log's own table says it: about a person, not to them as their account page does."""
    known = next((one.meaning for one in AuditEvent if one == event), event)
    return known.removesuffix(".").removesuffix(HIGH_SEVERITY_MARK)


def changed_name(details: Details) -> str:
    """The name of what was changed, where the subject is only what it belongs to."""
    names = (details.get(name) for name in NAME_FIELDS)
    return next((value for value in names if isinstance(value, str) and ARROW not in value), "")


def detail_lines(details: Details) -> tuple[DetailLine, ...]:
    return tuple(_detail_line(name, value) for name, value in details.items() if value is not None)


def _detail_line(name: str, value: object) -> DetailLine:
    kind, shown, place = _parse_name(name)
    if not isinstance(value, str) or ARROW not in value:
        return DetailLine(name=shown, kind=kind, place=place, after=_plain_value(name, value))
    before, _, after = value.partition(ARROW)
    return DetailLine(
        name=shown, kind=kind, place=place, before=tuple(_parse_value(before)), after=tuple(_parse_value(after))
    )


def _plain_value(name: str, value: object) -> tuple[DetailValue]:
    if isinstance(value, bool):
        return (_truth(value),)
    if name in TIME_FIELDS and isinstance(value, int) and value:
        return (DetailValue("", value),)
    text = str(value)
    return (DetailValue(short_gsid(text) if name == "gsid" or GSID_PATTERN.fullmatch(text) else text),)


def _parse_name(name: str) -> tuple[str, str, str]:
    """`private_data.projectAccess.mind_games.private_data.user.kick.value` is the rule user.kick in mind_games."""
    place, path = "", name.removeprefix("meta.")
    head = f"{RuleSection.PRIVATE}.{PROJECT_ACCESS}."
    if path.startswith(head):
        place, _, path = path.removeprefix(head).partition(".")
    if path in ("roles", ""):
        return "roles", path, place
    section, _, rule = path.partition(".")
    if section in set(RuleSection) and rule:
        return "rule", rule.removesuffix(".value"), place
    return "field", path, place


def _parse_value(text: str) -> Iterator[DetailValue]:
    if text == NOTHING:
        return
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        yield DetailValue(text)
        return
    yield from _value_texts(value, text)


def _value_texts(value: object, text: str) -> Iterator[DetailValue]:
    match value:
        case bool():
            yield _truth(value)
        case list() | tuple() | set():
            for one in value:
                yield from _value_texts(one, str(one))
        case {"name": str(name), **more}:
            yield DetailValue(name, _until(more))
        case {"value": bool(said), **more}:
            yield _truth(said)
            if more.get("params"):
                yield DetailValue(str(more["params"]))
            yield from [DetailValue("", end)] if (end := _until(more)) else []
        case dict():
            yield from (
                DetailValue(found.text, found.until, f"{name}.{found.name}" if found.name else str(name))
                for name, one in value.items()
                for found in tuple(_value_texts(one, str(one))) or (DetailValue(""),)
            )
        case _:
            yield DetailValue(text if not isinstance(value, str) else value)


def _truth(value: bool) -> DetailValue:  # noqa: FBT001 - the value that is told
    return DetailValue(YES if value else NO)


def _until(more: Mapping[object, object]) -> int:
    end = more.get("expired")
    return end if isinstance(end, int) else 0


def parse_application_subject(text: str) -> int:
    """Of `application 50001`; 0 for anything else."""
    kind, _, rest = text.partition(" ")
    return int(rest) if kind == "application" and rest.isascii() and rest.isdigit() else 0
