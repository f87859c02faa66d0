"""Single-use second factors are used once between processes too, on both databases (R-12)."""

from collections import Counter

import pytest

from gatehouse.accounts.phones.model import NewPhoneCode, PhonePurpose
from gatehouse.accounts.second_factors.model import MAX_EMAIL_CODE_TRIES, MAX_PASSKEYS
from gatehouse.audit.events import AuditEvent
from gatehouse.mail.model import Channel
from gatehouse.storage.database import Storage
from tests.support import racers
from tests.support.builders import NOW, PASSKEY_HOST, a_passkey, a_record, a_user
from tests.support.mail import a_mail
from tests.support.racers import PHONE_RACERS, RACED_PHONE, RACED_USER, WON, race

TRIES = 20  # four processes, five attempts each
LOST = "SecondFactorWrong"


async def an_account(storage: Storage, **fields: object) -> None:
    await storage.accounts.create_user(a_user(user_id=RACED_USER, **fields), a_record())


async def test_lg_11_one_totp_step_is_accepted_once(storage: Storage, migrated_url: str) -> None:
    await an_account(storage, sealed_totp=b"sealed")
    assert race(racers.spend_totp_step, migrated_url) == {WON: 1, LOST: TRIES - 1}


async def test_recovery_code_is_used_once_and_recorded_once(storage: Storage, migrated_url: str) -> None:
    await an_account(storage, sealed_totp=b"sealed")
    await storage.second_factors.replace_recovery_codes(
        RACED_USER, [b"code", b"other"], a_record(AuditEvent.RECOVERY_CODES_MADE), ()
    )
    assert race(racers.use_recovery_code, migrated_url) == {WON: 1, LOST: TRIES - 1}
    events = Counter(record.event for record in await storage.audit.unsealed_records(100))
    assert events["factor.recovery_code_used"] == 1
    assert (await storage.second_factors.factor_overview(RACED_USER)).recovery_left == 1


async def test_email_code_is_redeemed_once(storage: Storage, migrated_url: str) -> None:
    await storage.second_factors.put_email_code(RACED_USER, b"right", (), now=NOW, expires_at=NOW + 600)
    assert race(racers.try_right_email_code, migrated_url) == {WON: 1, LOST: TRIES - 1}


@pytest.mark.parametrize(("racing", "survives"), [(MAX_EMAIL_CODE_TRIES - 1, True), (MAX_EMAIL_CODE_TRIES, False)])
async def test_every_wrong_attempt_at_an_email_code_is_counted(
    storage: Storage,
    migrated_url: str,
    racing: int,
    survives: bool,  # noqa: FBT001
) -> None:
    await storage.second_factors.put_email_code(RACED_USER, b"right", (), now=NOW, expires_at=NOW + 600)
    assert race(racers.try_wrong_email_code, migrated_url, racers=racing, each=1) == {LOST: racing}
    assert await storage.second_factors.try_email_code(RACED_USER, b"right", NOW) is survives


async def put_phone_code(storage: Storage, user_id: str, purpose: PhonePurpose) -> None:
    code = NewPhoneCode(
        user_id=user_id,
        purpose=purpose,
        phone=RACED_PHONE,
        code=b"right",
        number_key="number",
        network="",
        created_at=NOW,
    )
    await storage.phones.put_phone_code(code, a_mail(channel=Channel.TEXT), a_record(), messages_a_day=100)


async def test_pn_06_code_by_text_message_is_redeemed_once(storage: Storage, migrated_url: str) -> None:
    await an_account(storage, phone=RACED_PHONE, phone_verified=True, phone_code=True)
    await put_phone_code(storage, RACED_USER, PhonePurpose.SIGN_IN)
    assert race(racers.try_right_phone_code, migrated_url) == {WON: 1, "GONE": TRIES - 1}


async def test_pn_04_two_accounts_that_verify_one_number_at_once_end_in_one(
    storage: Storage, migrated_url: str
) -> None:
    """The second one is told that the number is taken, and gets no error of the database."""
    for n, user_id in enumerate(PHONE_RACERS):
        await storage.accounts.create_user(a_user(user_id=user_id, login=f"{n}@studio.example"), a_record())
        await put_phone_code(storage, user_id, PhonePurpose.VERIFY)
    assert race(racers.verify_one_number, migrated_url) == {WON: 1, "TAKEN": 1, "GONE": TRIES - 2}


async def test_passkey_challenge_is_used_once(storage: Storage, migrated_url: str) -> None:
    await storage.passkeys.put_challenge("passkey-sign-in", b"digest", now=NOW, expires_at=NOW + 300)
    assert race(racers.take_challenge, migrated_url) == {WON: 1, LOST: TRIES - 1}


async def test_passkey_counter_value_is_accepted_once(storage: Storage, migrated_url: str) -> None:
    await an_account(storage)
    await storage.passkeys.add_passkey(
        a_passkey(user_id=RACED_USER), [], a_record(AuditEvent.FACTOR_ADDED), (), host=PASSKEY_HOST
    )
    assert race(racers.use_passkey, migrated_url) == {WON: 1, LOST: TRIES - 1}
    events = Counter(record.event for record in await storage.audit.unsealed_records(100))
    assert events["factor.passkey_suspected"] == TRIES - 1


async def test_twenty_passkeys_at_most(storage: Storage, migrated_url: str) -> None:
    await an_account(storage)
    for n in range(MAX_PASSKEYS - 3):
        await storage.passkeys.add_passkey(
            a_passkey(user_id=RACED_USER, credential_id=bytes([n])), [b"c"], a_record(), (), host=PASSKEY_HOST
        )
    assert race(racers.add_passkey, migrated_url) == {WON: 3, "TooManyPasskeys": TRIES - 3}
    assert (await storage.accounts.user(RACED_USER)).passkeys == MAX_PASSKEYS


async def test_the_first_factor_of_many_at_once_brings_the_codes(storage: Storage, migrated_url: str) -> None:
    await an_account(storage)
    assert race(racers.add_passkey, migrated_url) == {WON: TRIES}
    assert (
        await storage.second_factors.factor_overview(RACED_USER)
    ).recovery_left == 1  # each sent one; only the first one's is stored
