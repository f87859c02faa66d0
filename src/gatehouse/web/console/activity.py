"""Activity: the audit log, filtered, with what stood there before beside what stands there since."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.activity import FOREVER, PAGE, Activity, ActivityStore, Looked, Spot
from gatehouse.admin.model.finding import FindingStore
from gatehouse.admin.model.names import NamedApplication, NameStore
from gatehouse.admin.model.paging import EXPORT_MOST, SEARCH_LONGEST
from gatehouse.admin.seen_log import RecordNotFound, SeenLog, cut_at, shown
from gatehouse.audit.chain import is_authentic, keeps_its_commitment
from gatehouse.audit.events import Event
from gatehouse.audit.head import HeadBox, problems_at_end
from gatehouse.audit.model import Record, Seal
from gatehouse.kernel.errors import BadInput
from gatehouse.web.console.activity_words import (
    IMPORTANT,
    Line,
    Named,
    applications_in,
    lines,
    meaning,
    named,
    people_in,
    thing,
)
from gatehouse.web.console.api_calls import record_call
from gatehouse.web.console.desk import ConsoleDesk, Guest
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.listing import csv_file
from gatehouse.web.console.places import Entry
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.parse import read_query
from gatehouse.web.responses import NO_STORE

HERE: Final = Entry.ACTIVITY
GROUPS: Final = tuple(dict.fromkeys(event.partition(".")[0] for event in Event))
OFFERED_MOST: Final = 500  # applications to choose from
CHUNK: Final = 1_000  # records of a file read at a time
SHOW_RECORD: Final = "gatehouse audit show --record"
VERIFY: Final = "gatehouse audit verify"
RECORD_ID: Final = 32  # letters


class ActivityQuery(msgspec.Struct, frozen=True, kw_only=True):
    group: str = ""
    actor: str = ""
    subject: str = ""
    application_id: str = ""
    since: str = ""  # a day
    until: str = ""  # a day, included
    q: str = ""
    after: str = ""
    format: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A record in words."""

    record: Record
    actor: Named
    subject: Named
    lines: tuple[Line, ...]
    application: str = ""  # the name of the one its details name
    authentic: bool = True
    address: str = ""

    @property
    def meaning(self) -> str:
        return meaning(self.record.event)

    @property
    def thing(self) -> str:
        """The name of what was changed, unless the subject is that."""
        name = thing(self.record.details)
        return "" if name == self.subject.name else name

    @property
    def important(self) -> bool:
        return any(event == self.record.event and event.meaning.endswith(f"{IMPORTANT}.") for event in Event)

    @property
    def changes(self) -> Sequence[Line]:
        return [line for line in self.lines if line.before is not None]

    @property
    def facts(self) -> Sequence[Line]:
        return [line for line in self.lines if line.before is None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityContext(PageContext):
    template = "console/activity/list.html"

    found: Sequence[Told]
    query: ActivityQuery
    kept: str  # the filter, as the query of an address
    older: str  # the address of what is older; empty when that is all
    examined: bool
    cut_at: int  # of so many things only, of more that he may see; 0 when it is about all of them
    is_filtered: bool
    administers: bool
    groups: Sequence[str]
    applications: Sequence[NamedApplication]
    seal: Seal | None
    log_problems: Sequence[str]  # as far as the end of the log shows


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryContext(PageContext):
    template = "console/activity/entry.html"

    told: Told
    administers: bool
    command: str  # that tells the same
    call: ApiCall


class ActivityScreens:
    def __init__(
        self,
        *,
        log: SeenLog,
        store: ActivityStore,
        names: NameStore,
        finding: FindingStore,
        desk: ConsoleDesk,
        mac_key: bytes,
        box: HeadBox,
    ) -> None:
        """`mac_key`: what records are authenticated with, to see that none was changed since."""
        self._log = log
        self._store = store
        self._names = names
        self._finding = finding
        self._desk = desk
        self._mac_key = mac_key
        self._box = box

    async def list(self, request: Request, guest: Guest) -> Response:
        query = read_query(request, ActivityQuery)
        looked = await self._looked(guest, query)
        if query.format:
            return await self._file(guest, query, looked)
        found = await self._found(looked, query)
        end = await self._store.chain_end() if guest.rights.administers else None
        context = ActivityContext(
            found=await self._told(found.records, guest),
            query=query,
            kept=kept(query),
            older=f"?{kept(query)}after={written(found.after)}" if found.after else "",
            examined=found.examined,
            cut_at=cut_at(looked.subjects),
            is_filtered=bool(kept(query)),
            administers=guest.rights.administers,
            groups=GROUPS,
            applications=await self._finding.seen(guest.sight, OFFERED_MOST),
            seal=end.seal if end else None,
            log_problems=problems_at_end(self._box.open(end.head), end) if end else (),
        )
        return self._desk.show(request, guest, HERE, context)

    async def show(self, request: Request, guest: Guest) -> Response:
        record = await self._log.record(guest.standing, guest.sight, request.path_params["record_id"])
        if not isinstance(record, Record):
            raise RecordNotFound
        (told,) = await self._told([record], guest)
        context = EntryContext(
            told=told,
            administers=guest.rights.administers,
            command=f"{SHOW_RECORD} {record.record_id}\n{VERIFY}",
            call=record_call(shown(record, guest.rights)),
        )
        return self._desk.show(request, guest, HERE, context)

    async def _found(self, looked: Looked, query: ActivityQuery) -> Activity:
        """What was typed is first taken for an id: that is found however old it is; else it is looked for."""
        text = query.q.strip()[:SEARCH_LONGEST]
        if not text or looked.subject or looked.actor or looked.subjects is not None:
            return await self._store.activity(replace(looked, text=text), PAGE)
        one = await self._store.one(text) if len(text) == RECORD_ID else None
        if one is not None:
            return Activity(records=[one])
        names = (text, *(f"{kind} {text}" for kind in ("application", "project", "group")))
        exact = await self._store.activity(replace(looked, names=names), PAGE)
        return exact if exact.records else await self._store.activity(replace(looked, text=text), PAGE)

    async def _looked(self, guest: Guest, query: ActivityQuery) -> Looked:
        return Looked(
            events=tuple(event.value for event in Event if event.partition(".")[0] == query.group),
            actor=query.actor.strip(),
            subject=query.subject.strip(),
            subjects=await self._log.subjects(guest.standing, guest.sight, query.subject.strip()),
            application_id=number(query.application_id),
            since=day(query.since),
            until=day(query.until, days=1) or FOREVER,
            after=read_spot(query.after),
        )

    async def _told(self, records: Sequence[Record], guest: Guest) -> Sequence[Told]:
        people = await self._names.people(people_in(records))
        applications = await self._finding.applications(applications_in(records))
        nicks = {user_id: one.nick for user_id, one in people.items()}
        return [self._one(record, nicks, applications, guest) for record in records]

    def _one(self, record: Record, nicks: Mapping[str, str], applications: Mapping[int, str], guest: Guest) -> Told:
        cut = shown(record, guest.rights)
        number_told = cut.details.get("application_id")
        return Told(
            record=cut,
            actor=named(cut.actor, nicks, applications),
            subject=named(cut.subject, nicks, applications),
            lines=lines({name: value for name, value in cut.details.items() if name != "application_id"}),
            application=applications.get(number_told, str(number_told)) if isinstance(number_told, int) else "",
            authentic=is_authentic(record, self._mac_key) and keeps_its_commitment(record),
            address=(cut.personal or {}).get("address", ""),
        )

    async def _file(self, guest: Guest, query: ActivityQuery, looked: Looked) -> Response:
        records: list[Record] = []
        looked = replace(looked, text=query.q.strip()[:SEARCH_LONGEST], after=None)
        while len(records) < EXPORT_MOST:
            found = await self._store.activity(looked, min(CHUNK, EXPORT_MOST - len(records)))
            records += found.records
            if found.after is None or found.examined:
                break
            looked = replace(looked, after=found.after)
        cut = [shown(record, guest.rights) for record in records]
        return csv_file("activity", COLUMNS, cut) if query.format == "csv" else json_lines(cut)

    def screens(self) -> Sequence[Screen]:
        desk = self._desk
        return [
            desk.shown("/activity", self.list),
            desk.shown("/activity/{record_id}", self.show),
        ]


COLUMNS: Final = {
    "at": lambda record: f"{datetime.fromtimestamp(record.at, UTC):%Y-%m-%dT%H:%M:%SZ}",
    "event": lambda record: record.event,
    "actor": lambda record: record.actor,
    "subject": lambda record: record.subject,
    "details": lambda record: "; ".join(f"{name}: {value}" for name, value in record.details.items()),
    "request_id": lambda record: record.request_id,
    "record_id": lambda record: record.record_id,
    "place": lambda record: record.place,
}


def json_lines(records: Sequence[Record]) -> Response:
    """Without the personal part: a file is not reached by an erasure."""
    told = (
        {
            "at": record.at,
            "event": record.event,
            "actor": record.actor,
            "subject": record.subject,
            "details": record.details,
            "request_id": record.request_id,
            "record_id": record.record_id,
            "place": record.place,
        }
        for record in records
    )
    headers = {**NO_STORE, "Content-Disposition": 'attachment; filename="activity.jsonl"'}
    return Response(msgspec.json.Encoder().encode_lines(told), 200, headers, media_type="application/jsonl")


def kept(query: ActivityQuery) -> str:
    """The filter without the page, ready for something to follow."""
    names = [name for name in query.__struct_fields__ if name not in ("after", "format")]
    given = {name: getattr(query, name) for name in names if getattr(query, name)}
    return f"{urlencode(given)}&" if given else ""


def written(spot: Spot | None) -> str:
    return "" if spot is None else f"{spot.at}.{spot.record_id}"


def read_spot(text: str) -> Spot | None:
    at, _, record_id = text.partition(".")
    return Spot(at=number(at), record_id=record_id) if text else None


def number(text: str) -> int:
    stripped = text.strip()
    if not stripped:
        return 0
    if not (stripped.isascii() and stripped.isdigit() and len(stripped) <= 18):  # noqa: PLR2004 - 64 bits
        raise BadInput("application_id: choose an application from the list")
    return int(stripped)


def day(text: str, *, days: int = 0) -> int:
    """The first second of a day, in UTC; 0 for none."""
    if not text:
        return 0
    try:
        start = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
        return int((start + timedelta(days=days)).timestamp())
    except (ValueError, OverflowError) as error:
        raise BadInput("From and To: enter a date such as 2026-01-31") from error
