"""Storage of what people accepted (accounts/terms/acceptance.py)."""

from collections.abc import Mapping, Sequence

from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import insert

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.terms.model import AcceptedVersion
from gatehouse.audit.model import AuditRecord
from gatehouse.storage.accounts.users import LOCK_USER
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.runner import SqlStore, read, write
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import accepted_terms, users

COUNTRY_OF_USER = Statement(lambda: select(users.c.country).where(users.c.user_id == bindparam("of")))
ACCEPTED_BY_USER = Statement(
    lambda: (
        select(accepted_terms.c.document, accepted_terms.c.version, accepted_terms.c.accepted_at)
        .where(accepted_terms.c.user_id == bindparam("of"))
        .order_by(accepted_terms.c.accepted_at, accepted_terms.c.document)
    )
)
ACCEPT = Statement(lambda: insert(accepted_terms).on_conflict_do_nothing())


def terms_of_user(user_id: str) -> Verb[tuple[str, Sequence[AcceptedVersion]]]:
    rows = yield COUNTRY_OF_USER(of=user_id)
    if not rows:
        raise UserNotFound
    return rows[0].country, (yield from accepted_by_user(user_id))


def accepted_by_user(user_id: str) -> Verb[Sequence[AcceptedVersion]]:
    return [AcceptedVersion(**row._asdict()) for row in (yield ACCEPTED_BY_USER(of=user_id))]


def accept_terms(user_id: str, versions: Mapping[str, str], record: AuditRecord) -> Verb[None]:
    if not (yield LOCK_USER(of=user_id)):  # erased meanwhile: nothing about the person is stored again
        raise UserNotFound
    for document, version in versions.items():
        yield ACCEPT(user_id=user_id, document=document, version=version, accepted_at=record.at)
    yield from add_audit_record(record)


class TermsStorage(SqlStore):
    terms_of_user = read(terms_of_user)
    accept_terms = write(accept_terms)
