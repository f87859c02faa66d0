"""The installation as the console shows it: its settings, its outbox, its database."""

from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import func, select, text

from gatehouse.admin.paging import Page, PagedList, PageRequest
from gatehouse.storage.runner import SqlStore, snapshot_read
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.outgoing import outbox


class SettingListItem(Struct, frozen=True, kw_only=True):
    name: str
    value: str  # a secret's is masked
    unit: str
    meaning: str
    stored: bool  # administrators may change it while the service runs
    changeable: bool  # and neither file nor environment fixes it
    control: str  # of a form: flag, choice, number, list, secret, image, text
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 0
    source: str  # default, dev, file …, environment, flag, database

    @property
    def is_secret(self) -> bool:
        return self.control == "secret"

    @property
    def is_in_database(self) -> bool:
        return self.source == "database"

    def matches(self, search: str) -> bool:
        """Whether the setting contains the text, ignoring case."""
        return search.lower() in f"{self.name} {self.value} {self.meaning} {self.source}".lower()


class SettingGroup(Struct, frozen=True, kw_only=True):
    """Related settings; the texts are `settings.policy_<name>`."""

    name: str
    lines: Sequence[SettingListItem]


class MailServer(Struct, frozen=True, kw_only=True):
    """How email is sent; without a host none is sent."""

    host: str
    port: int
    security: str
    username: str
    sender: str
    is_shown: bool  # printed to the log


class OutboxListItem(Struct, frozen=True, kw_only=True):
    """An email that was not sent yet; its recipient stays encrypted."""

    mail_id: str
    template: str
    created_at: int
    tries: int
    next_try_at: int  # 0: failed
    trouble: str


class DatabaseFacts(Struct, frozen=True, kw_only=True):
    version: str
    size: int  # bytes


OUTBOX_LIST = PagedList(
    select(
        outbox.c.mail_id,
        outbox.c.template,
        outbox.c.created_at,
        outbox.c.tries,
        outbox.c.next_try_at,
        outbox.c.trouble,
    ).order_by(outbox.c.created_at.desc(), outbox.c.mail_id),
    counted=select(func.count().label("total")).select_from(outbox),
    searched=False,
)
SQLITE_PAGE_COUNT = Statement(lambda: text("PRAGMA page_count"))
SQLITE_PAGE_SIZE = Statement(lambda: text("PRAGMA page_size"))
SQLITE_VERSION = Statement(lambda: text("SELECT sqlite_version()"))
POSTGRES_FACTS = Statement(
    lambda: text("SELECT current_setting('server_version'), pg_database_size(current_database())")
)


def list_outbox(page_request: PageRequest) -> Verb[Page[OutboxListItem]]:
    """Return waiting and failed emails, the newest first."""
    return OUTBOX_LIST.read_page(page_request, lambda row: OutboxListItem(**row._asdict()))


def sqlite_facts() -> Verb[DatabaseFacts]:
    """Return the version and size of the SQLite file."""
    pages, size = (yield SQLITE_PAGE_COUNT())[0][0], (yield SQLITE_PAGE_SIZE())[0][0]
    return DatabaseFacts(version=(yield SQLITE_VERSION())[0][0], size=pages * size)


def postgres_facts() -> Verb[DatabaseFacts]:
    """Return the version and size of the PostgreSQL database."""
    ((version, size),) = yield POSTGRES_FACTS()
    return DatabaseFacts(version=version, size=size)


class InstallationStore(SqlStore):
    outbox = snapshot_read(list_outbox)
    sqlite_facts = snapshot_read(sqlite_facts)
    postgres_facts = snapshot_read(postgres_facts)
