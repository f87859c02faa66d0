"""Keeps passkeys and their challenges (accounts/second_factors/store.py)."""

from collections.abc import Sequence
from dataclasses import asdict

from sqlalchemy import BigInteger, bindparam, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.accounts.second_factors.errors import FactorMissing, PasskeyTaken, TooManyPasskeys
from gatehouse.accounts.second_factors.model import PASSKEYS_MOST, Passkey
from gatehouse.audit.model import Record
from gatehouse.mail.model import Mail
from gatehouse.storage.audit import record
from gatehouse.storage.once import put, take
from gatehouse.storage.runner import Stored, act, look
from gatehouse.storage.second_factors import added, removed, touch
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.accounts import passkeys

_THIS = passkeys.c.credential_id == bindparam("named")
_COUNTER = bindparam("counter", type_=BigInteger)  # 0 from an authenticator that does not count
_MINE = passkeys.c.user_id == bindparam("of")

PASSKEY = Statement(select(passkeys).where(_THIS))
PASSKEYS = Statement(select(passkeys).where(_MINE).order_by(passkeys.c.created_at, passkeys.c.credential_id))
COUNT = Statement(select(func.count().label("held")).select_from(passkeys).where(_MINE))
ADD = Statement(insert(passkeys).on_conflict_do_nothing().returning(passkeys.c.user_id))
USE = Statement(
    update(passkeys)
    .where(_THIS, or_(passkeys.c.sign_count < _COUNTER, passkeys.c.sign_count + _COUNTER == 0))
    .values(sign_count=_COUNTER, used_at=bindparam("now"))
    .returning(passkeys.c.user_id)
)
RENAME = Statement(update(passkeys).where(_THIS, _MINE).values(name=bindparam("to")).returning(passkeys.c.user_id))
REMOVE = Statement(delete(passkeys).where(_THIS, _MINE).returning(passkeys.c.user_id))


def put_challenge(kind: str, digest: bytes, *, now: int, expires_at: int) -> Verb[None]:
    # A subject of its own: the challenge of a second tab must not end the first one's.
    yield from put(kind, digest, subject=digest.hex(), details={}, now=now, expires_at=expires_at)


def take_challenge(kind: str, digest: bytes, now: int) -> Verb[bool]:
    return (yield from take(kind, digest, now)) is not None


def passkey(credential_id: bytes) -> Verb[Passkey | None]:
    rows = yield PASSKEY(named=credential_id)
    return _passkey(rows[0]) if rows else None


def passkeys_of(user_id: str) -> Verb[Sequence[Passkey]]:
    rows = yield PASSKEYS(of=user_id)
    return [_passkey(row) for row in rows]


def add_passkey(passkey: Passkey, codes: Sequence[bytes], entry: Record, mails: Sequence[Mail]) -> Verb[bool]:
    yield from touch(passkey.user_id)
    if (yield COUNT(of=passkey.user_id))[0].held >= PASSKEYS_MOST:
        raise TooManyPasskeys
    if not (yield ADD(**asdict(passkey))):
        raise PasskeyTaken
    return (yield from added(passkey.user_id, codes, entry, mails))


def use_passkey(credential_id: bytes, sign_count: int, suspicion: Record, now: int) -> Verb[bool]:
    if (yield USE(named=credential_id, counter=sign_count, now=now)):
        return True
    if (yield PASSKEY(named=credential_id)):  # not one that was removed meanwhile
        yield from record(suspicion)
    return False


def rename_passkey(user_id: str, credential_id: bytes, name: str, entry: Record) -> Verb[None]:
    if not (yield RENAME(of=user_id, named=credential_id, to=name)):
        raise FactorMissing
    yield from record(entry)


def remove_passkey(user_id: str, credential_id: bytes, entry: Record, mails: Sequence[Mail]) -> Verb[None]:
    yield from touch(user_id)
    if not (yield REMOVE(of=user_id, named=credential_id)):
        raise FactorMissing
    yield from removed(user_id, entry, mails)


class PasskeyStorage(Stored):
    put_challenge = act(put_challenge)
    take_challenge = act(take_challenge)
    passkey = look(passkey)
    passkeys = look(passkeys_of)
    add_passkey = act(add_passkey)
    use_passkey = act(use_passkey)
    rename_passkey = act(rename_passkey)
    remove_passkey = act(remove_passkey)


def _passkey(row: Row) -> Passkey:
    fields = row._asdict()
    return Passkey(**{**fields, "transports": tuple(fields["transports"])})
