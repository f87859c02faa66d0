"""Reads what the console shows of the installation itself (admin/model/settings.py)."""

from sqlalchemy import func, select, text

from gatehouse.admin.model.paging import Page, Wanted
from gatehouse.admin.model.settings import DatabaseFacts, OutboxLine
from gatehouse.storage.admin.searching import Listing
from gatehouse.storage.runner import Stored, survey
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.mail import outbox

OUTBOX = Listing(
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
SQLITE_PAGES = Statement(text("PRAGMA page_count"))
SQLITE_PAGE = Statement(text("PRAGMA page_size"))
SQLITE_VERSION = Statement(text("SELECT sqlite_version()"))
POSTGRES = Statement(text("SELECT current_setting('server_version'), pg_database_size(current_database())"))


def listed(wanted: Wanted) -> Verb[Page[OutboxLine]]:
    return OUTBOX.page(wanted, lambda row: OutboxLine(**row._asdict()))


def sqlite() -> Verb[DatabaseFacts]:
    pages, size = (yield SQLITE_PAGES())[0][0], (yield SQLITE_PAGE())[0][0]
    return DatabaseFacts(version=(yield SQLITE_VERSION())[0][0], size=pages * size)


def postgres() -> Verb[DatabaseFacts]:
    ((version, size),) = yield POSTGRES()
    return DatabaseFacts(version=version, size=size)


class InstallationReads(Stored):
    outbox = survey(listed)
    sqlite = survey(sqlite)
    postgres = survey(postgres)
