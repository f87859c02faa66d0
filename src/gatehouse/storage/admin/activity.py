"""Reads the audit log for the console (admin/model/activity.py).

A page is put together from what single values of an index lead to (the newest about one subject, by one actor, of
one event), and each of these looks at a bounded number of records: the log may have any size.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Select,
    Subquery,
    Text,
    TextClause,
    and_,
    bindparam,
    func,
    or_,
    select,
    text,
)

from gatehouse.admin.model.activity import EXAMINED_MOST, Activity, Belongings, Looked, Refusals, Spot
from gatehouse.audit.model import Record
from gatehouse.storage.admin.searching import ESCAPE, anywhere
from gatehouse.storage.audit import EVENT_BY_ID, chain_end, refusal_of
from gatehouse.storage.runner import Stored, look, survey
from gatehouse.storage.statements import AnyOf, Row, Statement, Verb
from gatehouse.storage.tables.applications import applications
from gatehouse.storage.tables.audit import BY_OTHERS, RARE, audit_events, audit_refusals
from gatehouse.storage.tables.projects import groups

ALL_DAY: Final = frozenset({"game.confirmed", "grant.made", "login.done", "session.ended", "session.opened"})


def _flag(name: str) -> ColumnElement[bool]:
    return bindparam(name, type_=Boolean())


def _number(name: str) -> ColumnElement[int]:
    return bindparam(name, type_=BigInteger())


def _like(column: ColumnElement[str], name: str) -> ColumnElement[bool]:
    return func.lower(column).like(bindparam(name, type_=Text()), escape=ESCAPE)


def _wanted(seen: Subquery) -> ColumnElement[bool]:
    """What else is asked for, of the records that an index led to."""
    words = (seen.c.record_id, seen.c.subject, seen.c.actor, seen.c.request_id, seen.c.details)
    here = bindparam("application", type_=Text())
    return and_(
        or_(_flag("any_event"), AnyOf(seen.c.event, "events")),
        or_(_flag("any_actor"), seen.c.actor == bindparam("by", type_=Text())),
        or_(_flag("any_subject"), seen.c.subject == bindparam("about", type_=Text())),
        or_(_flag("any_text"), *(_like(word, "text") for word in words)),
        or_(_flag("any_application"), seen.c.subject == here, *(_like(seen.c.details, f"app{n}") for n in range(4))),
    )


def _newest(*led_by: ColumnElement[bool] | TextClause) -> Select[Any]:
    at, record_id = audit_events.c.at, audit_events.c.record_id
    return (
        select(audit_events)
        .where(
            *led_by,
            at >= _number("since"),
            at <= _number("newest"),
            or_(at < _number("newest"), record_id < bindparam("before", type_=Text())),
        )
        .order_by(at.desc(), record_id.desc())
    )


class Way:
    """One way into the log: the statement for a page of what is wanted, and how far it looked."""

    def __init__(self, *led_by: ColumnElement[bool] | TextClause) -> None:
        seen = _newest(*led_by).limit(_number("scan")).subquery()  # not all that the index leads to
        newest_first = (seen.c.at.desc(), seen.c.record_id.desc())
        page = select(seen).where(_wanted(seen)).order_by(*newest_first).limit(_number("most"))
        self.page: Final = Statement(page)
        self.last: Final = Statement(_newest(*led_by).limit(1).offset(_number("scan")))


_KEY: Final = bindparam("led", type_=Text())
EVERYTHING = Way()
ABOUT = Way(audit_events.c.subject == _KEY)
BY_OTHER = Way(audit_events.c.actor == _KEY, text(BY_OTHERS))
RARE_EVENT = Way(audit_events.c.event == _KEY, text(RARE))


@dataclass(frozen=True, slots=True)
class Lead:
    way: Way
    led: str = ""

    def keyed(self, params: Mapping[str, object]) -> Mapping[str, object]:
        return {**params, "led": self.led} if self.led else params


def activity(looked: Looked, limit: int) -> Verb[Activity]:
    """From each way its newest; what is older than where one of them stopped looking belongs to a later page."""
    leads = list(_leads(looked))
    shared = {**_shared(looked), "scan": _share(looked, limit, len(leads))}
    params = {**_params(looked, limit), **shared}
    found: dict[str, Row] = {}
    horizon: Spot | None = None
    for lead in leads:
        rows = yield lead.way.page(**lead.keyed(params))
        found |= {row.record_id: row for row in rows}
        if len(rows) > limit:
            stopped: Spot | None = _spot(rows[-1])
        else:  # where nothing is left out, fewer than could be are all
            stopped = (yield from _stopped(lead, shared)) if _leaves_out(looked) else None
        horizon = max((one for one in (horizon, stopped) if one), default=None)
    newest = sorted(found.values(), key=_spot, reverse=True)
    kept = [row for row in newest if horizon is None or _spot(row) > horizon][:limit]
    full = len(kept) == limit
    after = _spot(kept[-1]) if full and (len(newest) > limit or horizon) else _just_before(horizon)
    return Activity(records=[_record(row) for row in kept], after=after, examined=not full and after is not None)


def _share(looked: Looked, limit: int, leads: int) -> int:
    """How many records each way looks at: somebody's many subjects share what one page may cost."""
    return EXAMINED_MOST if looked.subjects is None else max(limit + 1, EXAMINED_MOST // max(leads, 1))


def _leaves_out(looked: Looked) -> bool:
    """Whether a way may lead to records that are not wanted."""
    return bool(looked.events or looked.actor or looked.text or looked.application_id)


def _just_before(horizon: Spot | None) -> Spot | None:
    """The record at the horizon was not looked at: the next page begins with it."""
    return None if horizon is None else Spot(at=horizon.at, record_id=f"{horizon.record_id}g")


def _stopped(lead: Lead, shared: Mapping[str, object]) -> Verb[Spot | None]:
    """Where it gave up looking; None when it came to the end."""
    rows = yield lead.way.last(**lead.keyed(shared))
    return _spot(rows[0]) if rows else None


def _leads(looked: Looked) -> Iterator[Lead]:
    """The fewest records that surely have all that is wanted among them."""
    if looked.subject:
        yield from (Lead(ABOUT, one) for one in (looked.subject,) if _is_seen(looked, one))
    elif looked.subjects is not None:
        yield from (Lead(ABOUT, one) for one in looked.subjects)
    elif looked.names:
        yield from (Lead(way, one) for one in looked.names for way in (ABOUT, BY_OTHER))
    elif looked.actor:
        yield Lead(BY_OTHER, looked.actor)
        yield Lead(ABOUT, looked.actor)  # what he did to himself
    elif looked.events and ALL_DAY.isdisjoint(looked.events):
        yield from (Lead(RARE_EVENT, one) for one in looked.events)
    else:
        yield Lead(EVERYTHING)


def _is_seen(looked: Looked, subject: str) -> bool:
    return looked.subjects is None or subject in looked.subjects


def _shared(looked: Looked) -> Mapping[str, object]:
    end = looked.until - 1
    start = looked.after if looked.after and looked.after.at <= end else None
    # "g" comes after every hexadecimal digit: nothing of that second is left out.
    return {
        "since": looked.since,
        "newest": start.at if start else end,
        "before": start.record_id if start else "g",
    }


def _params(looked: Looked, limit: int) -> Mapping[str, object]:
    number = looked.application_id
    marks = [f'"{name}":{number}{end}' for name in ("application_id", "app_id") for end in (",", "}")]
    return {
        "most": limit + 1,
        "any_event": not looked.events,
        "events": list(looked.events),
        "any_actor": not looked.actor,
        "by": looked.actor,
        "any_subject": not looked.subject,
        "about": looked.subject,
        "any_text": not looked.text,
        "text": anywhere(looked.text),
        "any_application": not number,
        "application": f"application {number}",
        **{f"app{place}": anywhere(mark) for place, mark in enumerate(marks)},
    }


def one(record_id: str) -> Verb[Record | None]:
    rows = yield EVENT_BY_ID(record_id=record_id)
    return _record(rows[0]) if rows else None


_AFTER: Final = _number("after")
REFUSALS = Statement(
    select(audit_refusals)
    .where(or_(_AFTER == 0, audit_refusals.c.position < _AFTER))
    .order_by(audit_refusals.c.position.desc())
    .limit(_number("most"))
)


def refusals(after: int, limit: int) -> Verb[Refusals]:
    rows = yield REFUSALS(after=after, most=limit + 1)
    kept = rows[:limit]
    return Refusals(rows=[refusal_of(row) for row in kept], after=kept[-1].position if len(rows) > limit else 0)


OF_APPLICATIONS = Statement(
    select(applications.c.application_id)
    .where(AnyOf(applications.c.project_id, "projects"))
    .order_by(applications.c.application_id)
)
OF_GROUPS = Statement(
    select(groups.c.project_id, groups.c.group_id)
    .where(AnyOf(groups.c.project_id, "projects"))
    .order_by(groups.c.group_id)
)


def belongings(project_ids: Collection[str]) -> Verb[Belongings]:
    of_applications = yield OF_APPLICATIONS(projects=sorted(project_ids))
    of_groups = yield OF_GROUPS(projects=sorted(project_ids))
    return Belongings(
        applications=[row.application_id for row in of_applications],
        groups=[(row.project_id, row.group_id) for row in of_groups],
    )


def _spot(row: Row) -> Spot:
    return Spot(at=row.at, record_id=row.record_id)


def _record(row: Row) -> Record:
    return Record(**row._asdict())


class ActivityStorage(Stored):
    activity = survey(activity)
    one = look(one)
    chain_end = look(chain_end)
    belongings = survey(belongings)
    refusals = survey(refusals)
