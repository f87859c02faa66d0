"""Reads the outbox and the facts of the database (admin/settings.py)."""

from sqlalchemy import func, select, text

from gatehouse.admin.paging import Page, PageRequest
from gatehouse.admin.settings import DatabaseFacts, OutboxListItem
from gatehouse.storage.admin.paging import PagedList
from gatehouse.storage.runner import SqlStore, snapshot_read
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.outgoing import outbox

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
SQLITE_PAGE_COUNT = Statement(text("PRAGMA page_count"))
SQLITE_PAGE_SIZE = Statement(text("PRAGMA page_size"))
SQLITE_VERSION = Statement(text("SELECT sqlite_version()"))
POSTGRES_FACTS = Statement(text("SELECT current_setting('server_version'), pg_database_size(current_database())"))


def list_outbox(page_request: PageRequest) -> Verb[Page[OutboxListItem]]:
    return OUTBOX_LIST.read_page(page_request, lambda row: OutboxListItem(**row._asdict()))


def sqlite_facts() -> Verb[DatabaseFacts]:
    pages, size = (yield SQLITE_PAGE_COUNT())[0][0], (yield SQLITE_PAGE_SIZE())[0][0]
    return DatabaseFacts(version=(yield SQLITE_VERSION())[0][0], size=pages * size)


def postgres_facts() -> Verb[DatabaseFacts]:
    ((version, size),) = yield POSTGRES_FACTS()
    return DatabaseFacts(version=version, size=size)


class InstallationReadStorage(SqlStore):
    outbox = snapshot_read(list_outbox)
    sqlite_facts = snapshot_read(sqlite_facts)
    postgres_facts = snapshot_read(postgres_facts)
