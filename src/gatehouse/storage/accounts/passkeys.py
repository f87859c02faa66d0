"""Passkeys and their challenges."""

from collections.abc import Sequence

from msgspec.structs import asdict
from sqlalchemy import BigInteger, bindparam, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.accounts.model import EnabledMethods
from gatehouse.accounts.second_factors.model import (
    MAX_PASSKEYS,
    FactorMissing,
    Passkey,
    PasskeyRefused,
    PasskeyTaken,
    TooManyPasskeys,
)
from gatehouse.audit.model import AuditRecord
from gatehouse.mail.model import OutboxMail
from gatehouse.storage.accounts.identities import refuse_without_sign_in_method
from gatehouse.storage.accounts.second_factors import bump_user_version, finish_adding_factor, finish_removing_factor
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.installation import PASSKEY_HOST, are_there_passkeys, read_value, set_value, set_value_once
from gatehouse.storage.runner import SqlStore, read, write
from gatehouse.storage.single_use import put_single_use, take_single_use
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.accounts import passkeys

_THIS_PASSKEY = passkeys.c.credential_id == bindparam("named")
_COUNTER = bindparam("counter", type_=BigInteger)  # 0 from an authenticator without a counter
_PASSKEYS_OF_USER = passkeys.c.user_id == bindparam("of")

PASSKEY_BY_ID = Statement(lambda: select(passkeys).where(_THIS_PASSKEY))
PASSKEYS_OF_USER = Statement(
    lambda: select(passkeys).where(_PASSKEYS_OF_USER).order_by(passkeys.c.created_at, passkeys.c.credential_id)
)
COUNT_PASSKEYS = Statement(lambda: select(func.count().label("held")).select_from(passkeys).where(_PASSKEYS_OF_USER))
INSERT_PASSKEY = Statement(lambda: insert(passkeys).on_conflict_do_nothing().returning(passkeys.c.user_id))
USE_PASSKEY = Statement(
    lambda: (
        update(passkeys)
        .where(_THIS_PASSKEY, or_(passkeys.c.sign_count < _COUNTER, passkeys.c.sign_count + _COUNTER == 0))
        .values(sign_count=_COUNTER, used_at=bindparam("now"))
        .returning(passkeys.c.user_id)
    )
)
RENAME_PASSKEY = Statement(
    lambda: (
        update(passkeys)
        .where(_THIS_PASSKEY, _PASSKEYS_OF_USER)
        .values(name=bindparam("to"))
        .returning(passkeys.c.user_id)
    )
)
DROP_PASSKEY = Statement(
    lambda: delete(passkeys).where(_THIS_PASSKEY, _PASSKEYS_OF_USER).returning(passkeys.c.user_id)
)


def put_challenge(kind: str, digest: bytes, *, now: int, expires_at: int) -> Verb[None]:
    # A subject of its own, so that the challenge of a second tab does not end the first one's.
    yield from put_single_use(kind, digest, subject=digest.hex(), details={}, now=now, expires_at=expires_at)


def take_challenge(kind: str, digest: bytes, now: int) -> Verb[bool]:
    return (yield from take_single_use(kind, digest, now)) is not None


def find_passkey(credential_id: bytes) -> Verb[Passkey | None]:
    rows = yield PASSKEY_BY_ID(named=credential_id)
    return _passkey_from_row(rows[0]) if rows else None


def passkeys_of(user_id: str) -> Verb[Sequence[Passkey]]:
    rows = yield PASSKEYS_OF_USER(of=user_id)
    return [_passkey_from_row(row) for row in rows]


def add_passkey(
    passkey: Passkey, codes: Sequence[bytes], entry: AuditRecord, mails: Sequence[OutboxMail], *, host: str
) -> Verb[bool]:
    yield from bump_user_version(passkey.user_id)
    yield from claim_passkey_host(host)
    if (yield COUNT_PASSKEYS(of=passkey.user_id))[0].held >= MAX_PASSKEYS:
        raise TooManyPasskeys
    if not (yield INSERT_PASSKEY(**asdict(passkey))):
        raise PasskeyTaken
    return (yield from finish_adding_factor(passkey.user_id, codes, entry, mails))


def claim_passkey_host(host: str) -> Verb[None]:
    """Store the host with the first passkey; refuse another one, of other settings, while there are passkeys."""
    if (yield from set_value_once(PASSKEY_HOST, host)) or (yield from read_value(PASSKEY_HOST)) == host:
        return
    if (yield from are_there_passkeys()):
        raise PasskeyRefused(f"passkeys.rp_id is {host} here, but there are passkeys of another host")
    yield from set_value(PASSKEY_HOST, host)


def use_passkey(credential_id: bytes, sign_count: int, suspicion: AuditRecord, now: int) -> Verb[bool]:
    if (yield USE_PASSKEY(named=credential_id, counter=sign_count, now=now)):
        return True
    if (yield PASSKEY_BY_ID(named=credential_id)):  # not one that was removed in the meantime
        yield from add_audit_record(suspicion)
    return False


def rename_passkey(user_id: str, credential_id: bytes, name: str, entry: AuditRecord) -> Verb[None]:
    if not (yield RENAME_PASSKEY(of=user_id, named=credential_id, to=name)):
        raise FactorMissing
    yield from add_audit_record(entry)


def remove_passkey(
    user_id: str,
    credential_id: bytes,
    entry: AuditRecord,
    mails: Sequence[OutboxMail],
    *,
    methods: EnabledMethods,
) -> Verb[None]:
    yield from bump_user_version(user_id)
    if not (yield DROP_PASSKEY(of=user_id, named=credential_id)):
        raise FactorMissing
    yield from refuse_without_sign_in_method(user_id, methods)
    yield from finish_removing_factor(user_id, entry, mails)


class PasskeyStorage(SqlStore):
    put_challenge = write(put_challenge)
    take_challenge = write(take_challenge)
    find_passkey = read(find_passkey)
    passkeys_of_user = read(passkeys_of)
    add_passkey = write(add_passkey)
    use_passkey = write(use_passkey)
    rename_passkey = write(rename_passkey)
    remove_passkey = write(remove_passkey)


def _passkey_from_row(row: Row) -> Passkey:
    fields = row._asdict()
    return Passkey(**{**fields, "transports": tuple(fields["transports"])})
