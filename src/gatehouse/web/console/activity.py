"""Activity: the audit log, filtered, with the values before and after each change."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from markupsafe import Markup
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.activity import (
    FOREVER,
    PAGE,
    ActivityCursor,
    ActivityFilter,
    ActivityStore,
    RecordNames,
)
from gatehouse.admin.paging import EXPORT_MOST, SEARCH_LONGEST
from gatehouse.admin.visible_audit_log import RecordNotFound, VisibleAuditLog, redact_record, truncated_at
from gatehouse.audit.chain import is_authentic, matches_commitment
from gatehouse.audit.continuous_verification import RECORDS_FOR_A_PAGE, ContinuousVerifier, VerifiedLog
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.head import HeadCodec, problems_at_end
from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.errors import BadInput
from gatehouse.kernel.times import zone_of
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.web.console.activity_runs import MIN_RUN, ActivityLines, ActivityRun, read_full_page
from gatehouse.web.console.activity_sentences import (
    APPLICATION_FIELDS,
    bold_name,
    icon_of,
    ids_in,
    reference_of,
    sentence_of,
    target_of,
)
from gatehouse.web.console.activity_text import HIGH_SEVERITY_MARK, AuditReference, DetailLine, detail_lines
from gatehouse.web.console.combobox import ComboboxKind, ComboboxOption
from gatehouse.web.console.frame import ApiCall, record_call
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.lookup import Lookup
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.refusals import RefusalDescriber, RefusalView
from gatehouse.web.console.view import (
    EXPECTED_ERRORS,
    AdminRequest,
    ConsoleRoute,
    ConsoleView,
    FormProblem,
    problem_from,
)
from gatehouse.web.http.responses import NO_STORE
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.translations import Translator

ENTRY: Final = ConsoleEntry.ACTIVITY
EVENT_GROUPS: Final = tuple(dict.fromkeys(event.partition(".")[0] for event in AuditEvent))
FIELDS: Final = {
    "actor": ComboboxKind.PERSON,
    "subject": ComboboxKind.PERSON,
    "application_id": ComboboxKind.APPLICATION,
}
EXPORT_CHUNK: Final = 1_000  # records of a file read at a time
SHOW_RECORD_COMMAND: Final = "gatehouse audit show --record"
VERIFY_COMMAND: Final = "gatehouse audit verify"
LOGGED_ID: Final = re.compile(r"[0-9]+|[a-z_]+ [^ ]+", re.ASCII)  # an actor or subject as records have it
RECORD_ID_LENGTH: Final = 32  # characters


class ActivityQuery(ListQuery, frozen=True, kw_only=True):
    group: str = ""
    actor: str = ""
    subject: str = ""
    application_id: str = ""
    since: str = ""  # a day
    until: str = ""  # a day, included
    after: str = ""
    each: str = ""  # "1": no line for several records


class RecordView(msgspec.Struct, frozen=True, kw_only=True):
    """A record as the page shows it."""

    record: AuditRecord
    actor: AuditReference
    subject: AuditReference
    sentence: Markup | str
    lines: tuple[DetailLine, ...]
    application: str = ""  # the name of the one its details name
    authentic: bool = True
    address: str = ""
    count: int = 1  # of a run, which the sentence is about
    each: str = ""  # the address of its records, one by one

    @property
    def icon(self) -> str:
        return icon_of(self.record.event)

    @property
    def important(self) -> bool:
        return any(
            event == self.record.event and event.meaning.endswith(f"{HIGH_SEVERITY_MARK}.") for event in AuditEvent
        )

    @property
    def changes(self) -> Sequence[DetailLine]:
        return [line for line in self.lines if line.before is not None]

    @property
    def facts(self) -> Sequence[DetailLine]:
        return [line for line in self.lines if line.before is None]


class ActivityContext(PageContext, frozen=True, kw_only=True):
    template = "console/activity/list.html"

    found: Sequence[RecordView]
    kept: str  # the filter, as the query of an address
    older: str  # the address of what is older; empty when that is all
    examined: bool
    cut_at: int  # how many of the visible things it covers; 0 for all of them
    is_filtered: bool
    administers: bool
    groups: Sequence[str]
    picked: Mapping[str, ComboboxOption]
    problem: FormProblem | None = None
    is_live: bool  # the newest records: the page is kept up to date
    verified: VerifiedLog
    sealed: int  # how many records there are to verify
    log_problems: Sequence[str]


class ActivityEntryContext(PageContext, frozen=True, kw_only=True):
    template = "console/activity/entry.html"

    entry: RecordView
    administers: bool
    command: str  # that shows the same
    call: ApiCall


class RecordDescriber:
    """Records as pages show them, to a reader with their rights and time zone.

    `mac_key`: what records are authenticated with, to see that none was changed since.
    """

    def __init__(self, *, store: ActivityStore, mac_key: bytes) -> None:
        self._store = store
        self._mac_key = mac_key

    async def describe_runs(
        self, runs: Sequence[ActivityRun], kept: str, admin: AdminRequest, t: Translator
    ) -> Sequence[RecordView]:
        """The lines of a page; `kept` is its filter, as the query of an address."""
        pairs = [(run, record) for run in runs for record in (run.first[:1] if run.is_one_line else run.first)]
        views = await self.describe([record for _, record in pairs], admin, t)
        return [
            replace(view, **self._run_members(run, view, kept, t)) if run.count >= MIN_RUN else view
            for (run, _), view in zip(pairs, views, strict=True)
        ]

    def _run_members(self, run: ActivityRun, view: RecordView, kept: str, t: Translator) -> dict[str, object]:
        # "g" sorts after every hexadecimal digit, so the page begins with the record itself.
        start = ActivityCursor(at=view.record.at, record_id=f"{view.record.record_id}g")
        actor = bold_name(t, view.actor)
        return {
            "count": run.count,
            "sentence": t(f"sentence.{view.record.event}_run", actor=actor, count=run.count),
            "each": f"?{kept}each=1&after={format_cursor(start)}",
        }

    async def describe(
        self, records: Sequence[AuditRecord], admin: AdminRequest, t: Translator
    ) -> Sequence[RecordView]:
        names = await self._store.record_names(ids_in(records))
        return [self._describe_one(record, names, admin, t) for record in records]

    def _describe_one(
        self, record: AuditRecord, names: RecordNames, admin: AdminRequest, t: Translator
    ) -> RecordView:
        cut = redact_record(record, admin.rights)
        lines = detail_lines({name: value for name, value in cut.details.items() if name not in APPLICATION_FIELDS})
        return RecordView(
            record=cut,
            actor=reference_of(cut.actor, names),
            subject=reference_of(cut.subject, names),
            sentence=sentence_of(t, cut, names, lines, admin.zone),
            lines=lines,
            application=target_of(cut, names),
            authentic=is_authentic(record, self._mac_key) and matches_commitment(record),
            address=(cut.personal or {}).get("address", ""),
        )


class LogState(msgspec.Struct, frozen=True, kw_only=True):
    """How far the log is verified, and everything that is wrong with it."""

    verified: VerifiedLog = msgspec.field(default_factory=VerifiedLog)
    sealed: int = 0
    problems: Sequence[str] = ()


class LogVerification:
    def __init__(self, *, store: ActivityStore, verifier: ContinuousVerifier, head_codec: HeadCodec) -> None:
        self._store = store
        self._verifier = verifier
        self._head_codec = head_codec

    async def state(self) -> LogState:
        """Verify what was sealed since the last time, up to a limit, and return the state."""
        await self._verifier.run_once(RECORDS_FOR_A_PAGE)
        verified, end = self._verifier.result, await self._store.chain_end()
        head = self._head_codec.decode(end)
        return LogState(
            verified=verified,
            sealed=head.place - head.begins + 1 if head else 0,
            problems=tuple(dict.fromkeys((*problems_at_end(head, end), *verified.problems))),
        )


class ActivityScreens:
    def __init__(
        self,
        *,
        log: VisibleAuditLog,
        store: ActivityStore,
        describer: RecordDescriber,
        lookup: Lookup,
        view: ConsoleView,
        verification: LogVerification,
    ) -> None:
        self._log = log
        self._store = store
        self._describer = describer
        self._lookup = lookup
        self._view = view
        self._verification = verification

    async def _list(
        self, request: Request, admin: AdminRequest, typed: ActivityQuery
    ) -> ActivityContext | CsvFile[AuditRecord] | Response:
        problem: FormProblem | None = None
        query = typed
        try:
            query = await self._lookup.resolve(admin, typed, lookup_fields(typed))
            looked = await self._filter(admin, query)
        except EXPECTED_ERRORS as error:
            problem = problem_from(error)
            looked = await self._filter(admin, ActivityQuery())
        if query.format:
            return await self._export(admin, query, looked)
        found = ActivityLines(runs=()) if problem else await self._search(looked, query)
        state = await self._verification.state() if admin.rights.administers else LogState()
        return ActivityContext(
            found=await self._describer.describe_runs(found.runs, query.kept, admin, self._view.words(request)),
            picked=await self._lookup.describe(admin, typed, FIELDS),
            problem=problem,
            kept=query.kept,
            older=f"?{query.kept}after={format_cursor(found.after)}" if found.after else "",
            examined=found.examined,
            cut_at=truncated_at(looked.subjects),
            is_filtered=bool(query.kept),
            administers=admin.rights.administers,
            groups=EVENT_GROUPS,
            is_live=not query.after,
            verified=state.verified,
            sealed=state.sealed,
            log_problems=state.problems,
        )

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        record = await self._log.record(admin.authenticated, admin.visibility, request.path_params["record_id"])
        if not isinstance(record, AuditRecord):
            raise RecordNotFound
        (entry,) = await self._describer.describe([record], admin, self._view.words(request))
        context = ActivityEntryContext(
            entry=entry,
            administers=admin.rights.administers,
            command=f"{SHOW_RECORD_COMMAND} {record.record_id}\n{VERIFY_COMMAND}",
            call=record_call(redact_record(record, admin.rights)),
        )
        return self._view.render(request, admin, ENTRY, context)

    async def _search(self, activity_filter: ActivityFilter, query: ActivityQuery) -> ActivityLines:
        """Search: the text is first looked up as an id, which is found at any age; otherwise it is searched for."""
        text = query.q.strip()[:SEARCH_LONGEST]
        if not text or activity_filter.subject or activity_filter.actor or activity_filter.subjects is not None:
            return await self._read_lines(replace(activity_filter, text=text), query)
        one = await self._store.find_record(text) if len(text) == RECORD_ID_LENGTH else None
        if one is not None:
            return ActivityLines(runs=[ActivityRun(first=[one])])
        names = (text, *(f"{kind} {text}" for kind in ("application", "project", "group")))
        exact = await self._read_lines(replace(activity_filter, names=names), query)
        return exact if exact.runs else await self._read_lines(replace(activity_filter, text=text), query)

    async def _read_lines(self, activity_filter: ActivityFilter, query: ActivityQuery) -> ActivityLines:
        return await read_full_page(self._store.activity, activity_filter, collapses=not query.each)

    async def _filter(self, admin: AdminRequest, query: ActivityQuery) -> ActivityFilter:
        return ActivityFilter(
            events=tuple(event.value for event in AuditEvent if event.partition(".")[0] == query.group),
            actor=query.actor.strip(),
            subject=query.subject.strip(),
            subjects=await self._log.subjects(admin.authenticated, admin.visibility, query.subject.strip()),
            application_id=parse_number(query.application_id),
            since=parse_moment(query.since, admin.zone),
            until=parse_moment(query.until, admin.zone, is_end=True) or FOREVER,
            after=parse_cursor(query.after),
        )

    async def _export(
        self, admin: AdminRequest, query: ActivityQuery, activity_filter: ActivityFilter
    ) -> CsvFile[AuditRecord] | Response:
        records: list[AuditRecord] = []
        activity_filter = replace(activity_filter, text=query.q.strip()[:SEARCH_LONGEST], after=None)
        while len(records) < EXPORT_MOST:
            found = await self._store.activity(activity_filter, min(EXPORT_CHUNK, EXPORT_MOST - len(records)))
            records += found.records
            if found.after is None or found.examined:
                break
            activity_filter = replace(activity_filter, after=found.after)
        cut = [redact_record(record, admin.rights) for record in records]
        if query.is_file:
            return CsvFile(name="activity", columns=RECORD_COLUMNS, rows=cut)
        return json_lines_response(cut)

    def routes(self) -> Sequence[ConsoleRoute]:
        view = self._view
        return [
            *ListScreen(view=view, path="/activity", query=ActivityQuery, page=self._list).routes(),
            view.page("/activity/{record_id}", self.show),
        ]


RECORD_COLUMNS: Final = {
    "at": lambda record: f"{datetime.fromtimestamp(record.at, UTC):%Y-%m-%dT%H:%M:%SZ}",
    "event": lambda record: record.event,
    "actor": lambda record: record.actor,
    "subject": lambda record: record.subject,
    "details": lambda record: "; ".join(f"{name}: {value}" for name, value in record.details.items()),
    "request_id": lambda record: record.request_id,
    "record_id": lambda record: record.record_id,
    "place": lambda record: record.place,
}


def json_lines_response(records: Sequence[AuditRecord]) -> Response:
    """Return the records as JSON lines, without the personal part: an erasure does not reach a file."""
    entries = (
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
    return Response(msgspec.json.Encoder().encode_lines(entries), 200, headers, media_type="application/jsonl")


def format_cursor(cursor: ActivityCursor | None) -> str:
    return "" if cursor is None else f"{cursor.at}.{cursor.record_id}"


def parse_cursor(text: str) -> ActivityCursor | None:
    at, _, record_id = text.partition(".")
    return ActivityCursor(at=parse_number(at), record_id=record_id) if text else None


def lookup_fields(query: ActivityQuery) -> Mapping[str, ComboboxKind]:
    """Those that are names: the log also has IDs of erased accounts and of things ("project chess_club")."""
    return {name: kind for name, kind in FIELDS.items() if not LOGGED_ID.fullmatch(getattr(query, name).strip())}


def parse_number(text: str) -> int:
    stripped = text.strip()
    if not stripped:
        return 0
    if not (stripped.isascii() and stripped.isdigit() and len(stripped) <= 18):  # noqa: PLR2004 - 64 bits
        raise BadInput("application_id: choose an application from the list").on_screen("choose_listed_application")
    return int(stripped)


def parse_moment(text: str, zone: str, *, is_end: bool = False) -> int:
    """Return the start of a day or minute in the reader's zone, or its end; 0 for none."""
    if not text:
        return 0
    has_clock = "T" in text
    try:
        start = datetime.strptime(text, "%Y-%m-%dT%H:%M" if has_clock else "%Y-%m-%d").replace(tzinfo=zone_of(zone))
        length = timedelta(minutes=1) if has_clock else timedelta(days=1)
        return int((start + length if is_end else start).timestamp())
    except (ValueError, OverflowError) as error:
        raise BadInput("From and To: enter a time such as 2026-01-31T15:00").on_screen("from_to") from error


# Activity, what was refused: requests that were not allowed, with the reason, which their callers did not see.


# An erasure does not reach a file, so the file has no client addresses.
REFUSAL_COLUMNS: Final = {
    **{name: RECORD_COLUMNS[name] for name in ("at", "event", "subject", "request_id", "record_id")},
    "reason": lambda refusal: refusal.reason,
}


class RefusalsQuery(ListQuery, frozen=True, kw_only=True):
    after: int = 0


class RefusalsContext(PageContext, frozen=True, kw_only=True):
    template = "console/activity/refusals.html"

    lines: Sequence[RefusalView]
    is_first: bool
    after: int  # where older ones begin; 0 when these were all


class RefusalScreens:
    def __init__(self, *, store: ActivityStore, describer: RefusalDescriber, view: ConsoleView) -> None:
        self._store = store
        self._describer = describer
        self._view = view

    async def _list(self, request: Request, admin: AdminRequest, query: RefusalsQuery) -> RefusalsContext:
        """For administrators: these are attempts, not changes of a project."""
        require_operation(admin.rights, Operation.ADMINISTER)
        found = await self._store.refusals(
            0 if query.is_file else query.after, EXPORT_MOST if query.is_file else PAGE
        )
        rows = [redact_record(row, admin.rights) for row in found.rows]
        return RefusalsContext(
            lines=await self._describer.describe(rows, self._view.words(request)),
            is_first=not query.after,
            after=found.after,
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        return ListScreen(
            view=self._view,
            path="/activity/refusals",
            query=RefusalsQuery,
            page=self._list,
            file=lambda page: CsvFile(
                name="refusals", columns=REFUSAL_COLUMNS, rows=[line.refusal for line in page.lines]
            ),
        ).routes()
