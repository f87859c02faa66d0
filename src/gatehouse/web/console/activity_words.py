"""What an audit record tells, in words: what stood there before, what stands there since, of whom and by whom.

The log keeps differences as short texts of Python values (audit/differences.py); they are read back here. What was
too long to be kept whole is shown as it is.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gatehouse.audit.events import Event
from gatehouse.audit.model import Details, Record
from gatehouse.gamesessions.model import GSID, short_gsid
from gatehouse.permissions.explanation.wording import moment
from gatehouse.permissions.model.rule import PROJECT_ACCESS, Section

ARROW: Final = " -> "
NOTHING: Final = "nothing"
YES, NO = "yes", "no"  # the words are `activity.is_<it>`
NAMES: Final = ("role", "title", "name", "comment", "kid", "factor")  # of details, the dearest first
IMPORTANT: Final = "; high"  # how the log's table marks what somebody should look at
PREFIXES: Final = ("application", "project", "group")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing that a record tells. Without `before` nothing was there to be changed: it is a plain fact."""

    name: str
    kind: str = "field"  # field, rule or roles
    place: str = ""  # the project it is about, for what is held in one
    before: tuple[str, ...] | None = None
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Somebody or something that a record names."""

    kind: str  # person, application, project, group or text
    id: str
    name: str = ""


def meaning(event: str) -> str:
    """What happened, as the log's own table says it: about somebody, not to him as his account page does."""
    known = next((one.meaning for one in Event if one == event), event)
    return known.removesuffix(".").removesuffix(IMPORTANT)


def thing(details: Details) -> str:
    """The name of what was changed, where the subject is only what it belongs to."""
    told = (details.get(name) for name in NAMES)
    return next((value for value in told if isinstance(value, str) and ARROW not in value), "")


def lines(details: Details) -> tuple[Line, ...]:
    return tuple(_line(name, value) for name, value in details.items() if value is not None)


def _line(name: str, value: object) -> Line:
    kind, shown, place = _what(name)
    if not isinstance(value, str) or ARROW not in value:
        return Line(name=shown, kind=kind, place=place, after=_plain(name, value))
    before, _, after = value.partition(ARROW)
    return Line(name=shown, kind=kind, place=place, before=tuple(_pieces(before)), after=tuple(_pieces(after)))


def _plain(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, bool):
        return (YES if value else NO,)
    text = str(value)
    return (short_gsid(text) if name == "gsid" or GSID.fullmatch(text) else text,)


def _what(name: str) -> tuple[str, str, str]:
    """`private_data.projectAccess.mind_games.private_data.user.kick.value` is the rule user.kick in mind_games."""
    place, path = "", name.removeprefix("meta.")
    head = f"{Section.PRIVATE}.{PROJECT_ACCESS}."
    if path.startswith(head):
        place, _, path = path.removeprefix(head).partition(".")
    if path in ("roles", ""):
        return "roles", path, place
    section, _, rule = path.partition(".")
    if section in set(Section) and rule:
        return "rule", rule.removesuffix(".value"), place
    return "field", path, place


def _pieces(text: str) -> Iterator[str]:
    if text == NOTHING:
        return
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        yield text
        return
    yield from _words(value, text)


def _words(value: object, text: str) -> Iterator[str]:
    match value:
        case bool():
            yield YES if value else NO
        case list() | tuple() | set():
            for one in value:
                yield from _words(one, str(one))
        case {"name": str(name), **more}:
            yield f"{name}{_until(more)}"
        case {"value": bool(said), **more}:
            yield YES if said else NO
            if more.get("params"):
                yield str(more["params"])
            if end := _until(more):
                yield end.strip()
        case dict():
            yield from (f"{name}: {', '.join(_words(one, str(one)))}" for name, one in value.items())
        case _:
            yield text if not isinstance(value, str) else value


def _until(more: Mapping[object, object]) -> str:
    end = more.get("expired")
    return f" until {moment(end)}" if isinstance(end, int) and end else ""


def named(text: str, nicks: Mapping[str, str], applications: Mapping[int, str]) -> Named:
    kind, _, rest = text.partition(" ")
    if kind in PREFIXES and rest:
        number = application_number(text)
        return Named(kind=kind, id=rest, name=applications.get(number, "") if number else "")
    if text in nicks:
        return Named(kind="person", id=text, name=nicks[text])
    return Named(kind="text", id=short_gsid(text))


def application_number(text: str) -> int:
    """Of `application 50001`; 0 for anything else."""
    kind, _, rest = text.partition(" ")
    return int(rest) if kind == "application" and rest.isascii() and rest.isdigit() else 0


def people_in(records: Sequence[Record]) -> set[str]:
    return {name for one in records for name in (one.actor, one.subject) if name.isascii() and name.isdigit()}


def applications_in(records: Sequence[Record]) -> set[int]:
    found = {application_number(name) for one in records for name in (one.actor, one.subject)}
    told = {value for one in records if isinstance(value := one.details.get("application_id"), int)}
    return (found | told) - {0}
