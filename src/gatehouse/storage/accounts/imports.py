"""Storage of imported accounts, a batch in one transaction (accounts/importing/model.py: BatchFunction)."""

from collections.abc import Mapping, Sequence
from functools import partial

from sqlalchemy import insert, literal_column, or_, select

from gatehouse.accounts.bans.model import VerifiedContacts
from gatehouse.accounts.importing.model import (
    IMPORT_KEY,
    AccountCandidate,
    ExistingAccount,
    ImportOutcome,
    StoredNames,
    Verdict,
)
from gatehouse.accounts.model import Identity, User, service_tag
from gatehouse.storage.accounts.ban_copies import ANY_DIGEST, BanCopies
from gatehouse.storage.accounts.provided_labels import copy_kept_tags
from gatehouse.storage.accounts.users import ADD_TAG, insert_users, username_owners
from gatehouse.storage.audit import add_audit_records
from gatehouse.storage.rows import column_values
from gatehouse.storage.runner import Runner, SqlStore
from gatehouse.storage.statements import InStringList, Row, Statement, Verb
from gatehouse.storage.tables.accounts import identities, user_ids, users
from gatehouse.storage.tables.invitations import imported_people

_EXISTING = select(users.c.user_id, users.c.login_key, users.c.shared_key, users.c.meta)
EXISTING_BY_ID = Statement(lambda: _EXISTING.where(InStringList(users.c.user_id, "ids")))
EXISTING_BY_LOGIN = Statement(
    lambda: _EXISTING.where(
        or_(InStringList(users.c.login_key, "login_keys"), InStringList(users.c.shared_key, "login_keys"))
    )
)
EXISTING_BY_IDENTITY = Statement(
    lambda: (
        _EXISTING.add_columns(identities.c.issuer, identities.c.subject)
        .join(identities, identities.c.user_id == users.c.user_id)
        .where(InStringList(identities.c.issuer, "issuers"), InStringList(identities.c.subject, "subjects"))
    )
)
PHONE_OWNERS = Statement(
    lambda: select(users.c.phone, users.c.user_id).where(
        InStringList(users.c.phone, "phones"),
        users.c.phone_verified.is_(True),
        users.c.phone != literal_column("''"),  # as the index says
    )
)
USED_IDS = Statement(lambda: select(user_ids.c.user_id).where(InStringList(user_ids.c.user_id, "ids")))
ADD_IDENTITY = Statement(lambda: insert(identities))
ADD_IMPORTED = Statement(lambda: insert(imported_people))


def judge_candidates(
    bans: BanCopies, candidates: Sequence[AccountCandidate], import_id: str
) -> Verb[Sequence[Verdict]]:
    people = [candidate.user for candidate in candidates]
    ids = sorted(user.user_id for user in people)
    by_id = yield EXISTING_BY_ID(ids=ids)
    by_login = yield EXISTING_BY_LOGIN(login_keys=sorted(user.login_key for user in people if user.login_key))
    linked = [identity for candidate in candidates for identity in candidate.identities]
    by_identity = (
        (
            yield EXISTING_BY_IDENTITY(
                issuers=sorted({identity.issuer for identity in linked}),
                subjects=sorted({identity.subject for identity in linked}),
            )
        )
        if linked
        else []
    )
    used = yield USED_IDS(ids=ids)
    phones = sorted({user.phone for user in people if user.phone_verified})
    by_phone = (yield PHONE_OWNERS(phones=phones)) if phones else []
    names = StoredNames(
        by_id={row.user_id: _existing(row) for row in by_id},
        by_login={
            **{row.shared_key: _existing(row) for row in by_login},
            **{row.login_key: _existing(row) for row in by_login},
        },
        by_identity={(row.issuer, row.subject): _existing(row) for row in by_identity},
        used_ids=frozenset(row.user_id for row in used),
        username_owners=(yield from username_owners([user.username for user in people if user.username])),
        phone_owners={row.phone: row.user_id for row in by_phone},
        banned=(yield from _find_banned(bans, candidates)),
    )
    return [names.judge(candidate, import_id) for candidate in candidates]


def _find_banned(bans: BanCopies, candidates: Sequence[AccountCandidate]) -> Verb[Mapping[str, str]]:
    if not candidates or not (yield ANY_DIGEST()):
        return {}
    digests = {
        candidate.user.user_id: bans.digests_of(candidate.identities, _verified_contacts(candidate.user))
        for candidate in candidates
    }
    return (yield from bans.find_banned(digests, candidates[0].record.at))


def _verified_contacts(user: User) -> VerifiedContacts:
    return VerifiedContacts(
        address=user.login_key if user.email_verified else None,
        phone=user.phone if user.phone and user.phone_verified else None,
    )


def import_candidates(
    bans: BanCopies, candidates: Sequence[AccountCandidate], import_id: str
) -> Verb[Sequence[Verdict]]:
    verdicts = yield from judge_candidates(bans, candidates, import_id)
    new = [
        candidate
        for candidate, verdict in zip(candidates, verdicts, strict=True)
        if verdict.outcome is ImportOutcome.IMPORTED
    ]
    if new:
        # A name taken since it was looked up fails the batch, which is then judged again.
        yield from insert_users([candidate.user for candidate in new])
        yield from _insert_identities([identity for candidate in new for identity in candidate.identities])
        yield ADD_IMPORTED.bulk(
            [
                {"user_id": candidate.user.user_id, "import_id": import_id}
                for candidate in new
                if candidate.user.password_hash is None and candidate.user.login is not None
            ]
        )
        yield from add_audit_records(candidate.record for candidate in new)
        if (yield ANY_DIGEST()):
            for candidate in new:
                yield from bans.apply_to(candidate.user.user_id, candidate.record.at)
    return verdicts


def _insert_identities(linked: Sequence[Identity]) -> Verb[None]:
    yield ADD_IDENTITY.bulk([column_values(identity) for identity in linked])
    tags = {(identity.user_id, service_tag(identity.provider)) for identity in linked}
    yield ADD_TAG.bulk([{"user_id": user_id, "tag": tag} for user_id, tag in sorted(tags)])
    yield from copy_kept_tags(linked)


def _existing(row: Row) -> ExistingAccount:
    return ExistingAccount(user_id=row.user_id, login_key=row.login_key, import_id=str(row.meta.get(IMPORT_KEY, "")))


class ImportStorage(SqlStore):
    def __init__(self, runner: Runner, bans: BanCopies) -> None:
        super().__init__(runner)
        self._bans = bans

    async def judge_candidates(self, candidates: Sequence[AccountCandidate], import_id: str) -> Sequence[Verdict]:
        return await self.runner.snapshot_read(partial(judge_candidates, self._bans, candidates, import_id))

    async def import_candidates(self, candidates: Sequence[AccountCandidate], import_id: str) -> Sequence[Verdict]:
        return await self.runner.write(partial(import_candidates, self._bans, candidates, import_id), heavy=True)
