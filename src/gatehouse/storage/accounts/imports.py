"""Storage of imported accounts, a batch in one transaction (accounts/importing/model.py: BatchFunction)."""

from collections.abc import Iterable, Sequence

from sqlalchemy import insert, select

from gatehouse.accounts.importing.model import (
    IMPORT_KEY,
    AccountCandidate,
    ExistingAccount,
    ImportOutcome,
    StoredNames,
    Verdict,
)
from gatehouse.accounts.model import Identity, User, service_tag
from gatehouse.kernel.digests import sha256
from gatehouse.storage.accounts.users import ADD_PURCHASE, ADD_TAG, insert_values, username_owners
from gatehouse.storage.audit import INSERT_EVENT, event_values
from gatehouse.storage.rows import column_values
from gatehouse.storage.runner import SqlStore, heavy_write, snapshot_read
from gatehouse.storage.statements import InStringList, Row, Statement, Verb
from gatehouse.storage.tables.accounts import identities, totp_factors, user_ids, usernames, users

_EXISTING = select(users.c.user_id, users.c.login_key, users.c.meta)
EXISTING_BY_ID = Statement(_EXISTING.where(InStringList(users.c.user_id, "ids")))
EXISTING_BY_LOGIN = Statement(_EXISTING.where(InStringList(users.c.login_key, "login_keys")))
EXISTING_BY_IDENTITY = Statement(
    _EXISTING.add_columns(identities.c.issuer, identities.c.subject)
    .join(identities, identities.c.user_id == users.c.user_id)
    .where(InStringList(identities.c.issuer, "issuers"), InStringList(identities.c.subject, "subjects"))
)
USED_IDS = Statement(select(user_ids.c.user_id).where(InStringList(user_ids.c.user_id, "ids")))
# Without ON CONFLICT: a name taken since it was looked up fails the batch, which is then judged again.
ADD_ID = Statement(insert(user_ids))
ADD_USER = Statement(insert(users))
ADD_USERNAME = Statement(insert(usernames))
ADD_TOTP = Statement(insert(totp_factors))
ADD_IDENTITY = Statement(insert(identities))


def judge_candidates(candidates: Sequence[AccountCandidate], import_id: str) -> Verb[Sequence[Verdict]]:
    people = [one.user for one in candidates]
    ids = sorted(user.user_id for user in people)
    by_id = yield EXISTING_BY_ID(ids=ids)
    by_login = yield EXISTING_BY_LOGIN(login_keys=sorted(user.login_key for user in people if user.login_key))
    linked = [identity for one in candidates for identity in one.identities]
    by_identity = (
        (
            yield EXISTING_BY_IDENTITY(
                issuers=sorted({one.issuer for one in linked}), subjects=sorted({one.subject for one in linked})
            )
        )
        if linked
        else []
    )
    used = yield USED_IDS(ids=ids)
    names = StoredNames(
        by_id={row.user_id: _existing(row) for row in by_id},
        by_login={row.login_key: _existing(row) for row in by_login},
        by_identity={(row.issuer, row.subject): _existing(row) for row in by_identity},
        used_ids=frozenset(row.user_id for row in used),
        username_owners=(yield from username_owners([user.username for user in people if user.username])),
    )
    return [names.judge(one, import_id) for one in candidates]


def import_candidates(candidates: Sequence[AccountCandidate], import_id: str) -> Verb[Sequence[Verdict]]:
    verdicts = yield from judge_candidates(candidates, import_id)
    new = [
        one for one, verdict in zip(candidates, verdicts, strict=True) if verdict.outcome is ImportOutcome.IMPORTED
    ]
    if new:
        yield from _insert_users([one.user for one in new])
        yield from _insert_identities([identity for one in new for identity in one.identities])
        yield INSERT_EVENT.bulk([event_values(one.record) for one in new])
    return verdicts


def _insert_users(people: Sequence[User]) -> Verb[None]:
    """Insert what `insert_user` inserts, for many accounts at once."""
    yield ADD_ID.bulk([{"user_id": user.user_id} for user in people])
    yield ADD_USER.bulk([insert_values(user) for user in people])
    yield ADD_USERNAME.bulk(
        [{"digest": sha256(user.username).hex(), "user_id": user.user_id} for user in people if user.username]
    )
    yield ADD_TAG.bulk([{"user_id": user.user_id, "tag": tag} for user in people for tag in sorted(user.tags)])
    yield ADD_PURCHASE.bulk(
        [{"user_id": user.user_id, "purchase": name} for user in people for name in sorted(user.purchases)]
    )
    yield ADD_TOTP.bulk(list(_totp_rows(people)))


def _insert_identities(linked: Sequence[Identity]) -> Verb[None]:
    yield ADD_IDENTITY.bulk([column_values(one) for one in linked])
    tags = {(one.user_id, service_tag(one.provider)) for one in linked}
    yield ADD_TAG.bulk([{"user_id": user_id, "tag": tag} for user_id, tag in sorted(tags)])


def _totp_rows(people: Iterable[User]) -> Iterable[dict[str, object]]:
    for user in people:
        if user.sealed_totp is not None:
            yield {
                "user_id": user.user_id,
                "sealed_secret": user.sealed_totp,
                "confirmed_at": user.reg_time,
                "last_step": 0,
            }


def _existing(row: Row) -> ExistingAccount:
    return ExistingAccount(user_id=row.user_id, login_key=row.login_key, import_id=str(row.meta.get(IMPORT_KEY, "")))


class ImportStorage(SqlStore):
    judge_candidates = snapshot_read(judge_candidates)
    import_candidates = heavy_write(import_candidates)
