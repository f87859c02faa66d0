"""What `gatehouse doctor` finds in the database."""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import partial

from gatehouse.app.house import DAY, master_keys
from gatehouse.app.instance_key import INSTANCE_KEY, has_head, refuse_wrong_master_key
from gatehouse.app.readiness import CLOCKS_MAY_DIFFER
from gatehouse.app.rewrapping import left_elsewhere
from gatehouse.audit.head import HeadBox, problems_at_end
from gatehouse.cli.findings import Finding, bad, ok, warn
from gatehouse.cli.output import moment
from gatehouse.kernel.clock import Clock
from gatehouse.keys.errors import Tampered, WrongMasterKey
from gatehouse.keys.keyring import opened
from gatehouse.keys.model import SigningKey, State, state
from gatehouse.keys.rotation import LINES
from gatehouse.keys.sealing import MasterKeys
from gatehouse.settings import Loaded, Settings
from gatehouse.storage.inspection import postgres_state, reserved_rules, sqlite_state
from gatehouse.storage.migrations import HEAD
from gatehouse.storage.opening import Storage
from gatehouse.storage.sqlite_file import SYNCHRONOUS_FULL

RESERVED_TOLD = 20  # rules with a reserved name that are listed
UNSEALED_FOR = 60  # seconds after which a record should have found its place


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    loaded: Loaded
    storage: Storage
    masters: MasterKeys
    clock: Clock

    @property
    def settings(self) -> Settings:
        return self.loaded.settings


Examination = Callable[[Patient], AsyncIterator[Finding]]


async def about_schema(patient: Patient) -> AsyncIterator[Finding]:
    held = await patient.storage.runner.revision()
    if held < HEAD:
        yield bad("schema", f"schema revision {held}, but {HEAD} is required: back up, then run `gatehouse migrate`")
    elif held > HEAD:
        yield bad(
            "schema", f"schema revision {held} is newer than this Gatehouse supports ({HEAD}): upgrade Gatehouse"
        )
    else:
        yield ok("schema", f"schema revision {held}")


async def about_database(patient: Patient) -> AsyncIterator[Finding]:
    on_sqlite = patient.settings.database.url.is_sqlite
    for finding in await (sqlite_findings(patient) if on_sqlite else postgres_findings(patient)):
        yield finding


async def sqlite_findings(patient: Patient) -> list[Finding]:
    found = await patient.storage.runner.survey(sqlite_state)
    problems = [bad("database", f"SQLite reports damage: {line}; restore a backup") for line in found.damage]
    if found.journal_mode != "wal" or found.synchronous != SYNCHRONOUS_FULL:
        problems.append(
            bad(
                "database",
                f"SQLite runs with journal_mode {found.journal_mode} and synchronous {found.synchronous} and "
                "can lose committed writes on power loss: put the file on a local disk",
            )
        )
    problems += indices(found.missing_indices)
    return problems or [ok("database", "SQLite, journal_mode wal, synchronous full, integrity ok")]


async def postgres_findings(patient: Patient) -> list[Finding]:
    found = await patient.storage.runner.survey(postgres_state)
    problems = [
        bad("database", f"PostgreSQL runs with {name} off and can lose committed writes in a crash: turn it on")
        for name, value in (
            ("fsync", found.fsync),
            ("synchronous_commit", found.synchronous_commit),
            ("full_page_writes", found.full_page_writes),
        )
        if value == "off"
    ]
    problems += indices(found.missing_indices)
    if found.rewritable:
        problems.append(
            warn(
                "database",
                f"this database role can change {' and '.join(found.rewritable)}: use a role that cannot "
                "change audit records (deploy/postgresql-grants.sql)",
            )
        )
    return problems or [ok("database", f"PostgreSQL {found.version}, durable, audit records are write-protected")]


def indices(missing: frozenset[str]) -> list[Finding]:
    names = ", ".join(sorted(missing))
    return [bad("database", f"missing indexes: {names}; restore a backup")] if missing else []


async def about_clock(patient: Patient) -> AsyncIterator[Finding]:
    theirs = await patient.storage.runner.time()
    if theirs is None:
        return
    apart = abs(theirs - patient.clock.now())
    if apart > CLOCKS_MAY_DIFFER:
        yield bad("clock", f"the clocks of this machine and the database differ by {apart} seconds: run NTP on both")
    else:
        yield ok("clock", f"{apart} seconds difference to the database")


async def about_master_key(patient: Patient) -> AsyncIterator[Finding]:
    try:
        await refuse_wrong_master_key(patient.storage, patient.masters)
    except (WrongMasterKey, Tampered) as error:
        yield bad("master key", f"it does not decrypt this database ({error}): configure the right key")
        return
    left = await left_elsewhere(patient.storage, patient.masters)
    for table, count in left.items():
        yield warn(
            "master key",
            f"{count:,} secrets in {table} are encrypted with another key: run `gatehouse key rewrap`",
        )
    if not left and patient.settings.security.previous_master_keys:
        yield warn("master key", "the previous key is no longer used: remove it from the settings")
    elif not left:
        yield ok("master key", f"{patient.masters.primary_id} encrypts everything")


async def about_signing_keys(patient: Patient) -> AsyncIterator[Finding]:
    now = patient.clock.now()
    live = [key for key in (await patient.storage.keys.load()).keys if state(key, now) is not State.RETIRED]
    problems = [*damaged_keys(live, patient.masters), *unsigned_lines(live, now), *old_keys(live, now, patient)]
    for problem in problems:
        yield problem
    if not problems:
        counts = {kind: sum(state(key, now) is kind for key in live) for kind in State}
        yield ok("signing keys", ", ".join(f"{count} {kind}" for kind, count in counts.items() if count))


def damaged_keys(live: list[SigningKey], masters: MasterKeys) -> Iterator[Finding]:
    for key in live:
        try:
            opened(key, masters)
        except (Tampered, WrongMasterKey) as error:
            yield bad("signing keys", f"{key.kid} cannot be used ({error}): restore it from a backup")


def unsigned_lines(live: list[SigningKey], now: int) -> Iterator[Finding]:
    signing = {key.line for key in live if state(key, now) is State.SIGNING}
    for line in LINES:
        if line not in signing:
            yield bad("signing keys", f"no {line.alg} key for {line.purpose}: start the service to create one")


def old_keys(live: list[SigningKey], now: int, patient: Patient) -> Iterator[Finding]:
    due = (patient.settings.keys.rotate_days + 1) * DAY
    for key in live:
        if not key.signs_until and now - max(key.signs_from, key.created_at) > due:
            yield warn("signing keys", f"{key.kid} is due for rotation: the service rotates it while it is running")


async def about_audit(patient: Patient) -> AsyncIterator[Finding]:
    waiting = await patient.storage.audit.unsealed(1)
    end = await patient.storage.audit.chain_end()
    head = end.seal
    key = await patient.storage.installation.fact(INSTANCE_KEY)
    if end.head is None and (key is None or not has_head(patient.masters, key)):
        yield warn("audit log", "it has no head yet: the service creates one when it starts")
        return
    problems = problems_at_end(HeadBox(patient.masters).open(end.head), end)
    for problem in problems:
        yield bad("audit log", f"{problem}: run `gatehouse audit verify`")
    if problems:
        return
    if waiting and patient.clock.now() - waiting[0].at > UNSEALED_FOR:
        since = moment(waiting[0].at)
        yield warn("audit log", f"unsealed records since {since}: the service seals them while it is running")
    elif head is None:
        yield ok("audit log", "nothing is sealed yet")
    else:
        yield ok("audit log", f"{head.place:,} records sealed, the last at {moment(head.at)}")


async def about_setup(patient: Patient) -> AsyncIterator[Finding]:
    if await patient.storage.accounts.setup_is_closed():
        yield ok("setup", "closed")
    else:
        yield warn("setup", "there is no administrator yet: open the setup link or run `gatehouse admin create`")


async def about_rules(patient: Patient) -> AsyncIterator[Finding]:
    found = await patient.storage.runner.survey(partial(reserved_rules, RESERVED_TOLD))
    for line in found:
        yield warn("rules", f"{line}: the name is reserved and cannot be saved again; rename it")
    if not found:
        yield ok("rules", "no reserved names")


EXAMINATIONS: tuple[Examination, ...] = (
    about_database,
    about_clock,
    about_master_key,
    about_signing_keys,
    about_audit,
    about_setup,
    about_rules,
)


async def examine(loaded: Loaded, storage: Storage, clock: Clock) -> AsyncIterator[Finding]:
    """The schema first: with another one than the code knows nothing else can be asked."""
    from apsw import Error as SQLiteError
    from asyncpg import PostgresError

    from gatehouse.kernel.errors import GatehouseError

    patient = Patient(loaded=loaded, storage=storage, masters=master_keys(loaded.settings), clock=clock)
    async for finding in about_schema(patient):
        yield finding
        if finding.level != "ok":
            return
    for examination in EXAMINATIONS:
        try:
            async for finding in examination(patient):
                yield finding
        except (GatehouseError, SQLiteError, PostgresError) as error:
            topic = examination.__name__.removeprefix("about_").replace("_", " ")
            yield bad(topic, f"check failed: {error}")
