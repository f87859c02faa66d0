"""Second factors from setup to removal, on both databases."""

import asyncio

import pytest
from msgspec.structs import replace

from gatehouse.accounts.errors import UserChanged, UserNotFound
from gatehouse.accounts.second_factors.email_codes import EMAIL_CODE_LIFETIME
from gatehouse.accounts.second_factors.model import (
    MAX_EMAIL_CODE_TRIES,
    EmailNotVerified,
    EnrollmentGone,
    Factor,
    FactorExists,
    FactorMissing,
    SecondFactorWrong,
)
from gatehouse.accounts.second_factors.totp import ENROLLMENT_LIFETIME
from gatehouse.kernel.errors import TooMany
from gatehouse.storage.accounts.users import update_user
from gatehouse.storage.database import Storage
from tests.support.builders import ORIGIN, a_record, a_user
from tests.support.second_factors import SecondFactorSetup, code_at, second_factor_setup, wrong_code

NONE = "7k2m9-x0q1z"  # a recovery code of no account


@pytest.fixture
def factor_setup(storage: Storage) -> SecondFactorSetup:
    return second_factor_setup(storage)


# -- TOTP ---------------------------------------------------------------------------------------------


async def test_a_secret_counts_for_nothing_until_it_is_confirmed(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.create_person()
    enrolment = await factor_setup.totp.begin_enrollment(user)
    assert await factor_setup.totp.pending_enrollment(user) == enrolment
    assert await factor_setup.reload(user) == user
    assert enrolment.uri.startswith(f"otpauth://totp/Gatehouse:{user.user_id}%40studio.example?secret=")
    assert len(enrolment.secret) == 32
    assert enrolment.secret not in repr(enrolment)


async def test_the_first_code_makes_it_a_factor_and_brings_recovery_codes(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.create_person()
    codes = await factor_setup.totp.confirm_enrollment(
        user, factor_setup.code_of(await factor_setup.totp.begin_enrollment(user)), origin=ORIGIN
    )
    after = await factor_setup.reload(user)
    assert after.system_tags >= {"2step", "2step_totp"}
    assert len(set(codes)) == 10
    factors = await factor_setup.second_factors.load_factors(after)
    assert (factors.methods, factors.totp_since, factors.recovery_left) == (
        (Factor.TOTP,),
        factor_setup.clock.now(),
        10,
    )
    assert await factor_setup.events(user) == ["factor.added"]
    assert [message.to for message in await factor_setup.new_messages()] == [user.login]
    assert await factor_setup.totp.pending_enrollment(user) is None


async def test_a_wrong_code_confirms_nothing_and_can_be_mended(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.create_person()
    enrolment = await factor_setup.totp.begin_enrollment(user)
    with pytest.raises(SecondFactorWrong):
        await factor_setup.totp.confirm_enrollment(user, wrong_code(factor_setup.code_of(enrolment)), origin=ORIGIN)
    assert (await factor_setup.reload(user)).sealed_totp is None
    assert await factor_setup.new_messages() == []
    assert await factor_setup.totp.confirm_enrollment(user, factor_setup.code_of(enrolment), origin=ORIGIN)


async def test_an_enrolment_ends_after_its_time_and_with_the_next_one(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.create_person()
    first = await factor_setup.totp.begin_enrollment(user)
    second = await factor_setup.totp.begin_enrollment(user)
    with pytest.raises(SecondFactorWrong):
        await factor_setup.totp.confirm_enrollment(user, factor_setup.code_of(first), origin=ORIGIN)
    await factor_setup.clock.advance(ENROLLMENT_LIFETIME)
    with pytest.raises(EnrollmentGone):
        await factor_setup.totp.confirm_enrollment(user, factor_setup.code_of(second), origin=ORIGIN)


async def test_many_beginning_at_once_end_with_one_secret(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.create_person()
    started = await asyncio.gather(*(factor_setup.totp.begin_enrollment(user) for _ in range(8)))
    assert await factor_setup.totp.pending_enrollment(user) in started


async def test_an_enrolment_is_confirmed_once(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.create_person()
    code = factor_setup.code_of(await factor_setup.totp.begin_enrollment(user))
    answers = await asyncio.gather(
        *(factor_setup.totp.confirm_enrollment(user, code, origin=ORIGIN) for _ in range(8)), return_exceptions=True
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["EnrollmentGone"] * 7 + ["tuple"]


async def test_only_the_checked_totp_secret_is_confirmed(factor_setup: SecondFactorSetup, storage: Storage) -> None:
    user = await factor_setup.create_person()
    await factor_setup.totp.begin_enrollment(user)
    store = storage.second_factors
    with pytest.raises(EnrollmentGone):
        await store.confirm_totp(
            user.user_id, b"another", 1, [], entry=a_record(), mails=(), now=factor_setup.clock.now()
        )
    assert await factor_setup.totp.pending_enrollment(user) is not None


async def test_lg_11_a_code_is_accepted_once(factor_setup: SecondFactorSetup) -> None:
    user, app = await factor_setup.with_totp()
    code = code_at(app, factor_setup.clock)
    assert await factor_setup.second_factors.verify(user, code, origin=ORIGIN) is Factor.TOTP
    with pytest.raises(SecondFactorWrong):
        await factor_setup.second_factors.verify(user, code, origin=ORIGIN)


async def test_lg_11_the_code_that_confirmed_the_secret_is_spent(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.create_person()
    code = factor_setup.code_of(await factor_setup.totp.begin_enrollment(user))
    await factor_setup.totp.confirm_enrollment(user, code, origin=ORIGIN)
    with pytest.raises(SecondFactorWrong):
        await factor_setup.second_factors.verify(await factor_setup.reload(user), code, origin=ORIGIN)


async def test_lg_11_the_previous_step_is_accepted_once_and_not_after_the_current_one(
    factor_setup: SecondFactorSetup,
) -> None:
    user, app = await factor_setup.with_totp()
    previous, current = code_at(app, factor_setup.clock, steps=-1), code_at(app, factor_setup.clock)
    assert await factor_setup.second_factors.verify(user, previous, origin=ORIGIN) is Factor.TOTP
    assert await factor_setup.second_factors.verify(user, current, origin=ORIGIN) is Factor.TOTP
    for code in (previous, current):
        with pytest.raises(SecondFactorWrong):
            await factor_setup.second_factors.verify(user, code, origin=ORIGIN)


@pytest.mark.parametrize("steps", [-2, 1, 2])
async def test_lg_11_older_and_coming_steps_are_refused(factor_setup: SecondFactorSetup, steps: int) -> None:
    user, app = await factor_setup.with_totp()
    with pytest.raises(SecondFactorWrong):
        await factor_setup.second_factors.verify(user, code_at(app, factor_setup.clock, steps=steps), origin=ORIGIN)


async def test_lg_11_every_refusal_has_the_same_words(factor_setup: SecondFactorSetup) -> None:
    anna, app = await factor_setup.with_totp()
    _, others = await factor_setup.with_totp()
    now = code_at(app, factor_setup.clock)
    wide = "".join(chr(ord(digit) + 0xFEE0) for digit in now)
    refusals = [
        wrong_code(now),
        code_at(others, factor_setup.clock),
        now[:5],
        f"{now}0",
        f"-{now}",
        wide,
        "",
        "abcdef",
        NONE,
    ]
    words = set()
    for otp in refusals:
        with pytest.raises(SecondFactorWrong) as caught:
            await factor_setup.second_factors.verify(anna, otp, origin=ORIGIN)
        words.add((type(caught.value), caught.value.public))
    assert len(words) == 1
    assert await factor_setup.second_factors.verify(anna, now, origin=ORIGIN) is Factor.TOTP


async def test_a_code_of_a_secret_that_was_replaced_meanwhile_is_refused(factor_setup: SecondFactorSetup) -> None:
    before, app = await factor_setup.with_totp()
    await factor_setup.totp.confirm_enrollment(
        before, factor_setup.code_of(await factor_setup.totp.begin_enrollment(before)), origin=ORIGIN
    )
    await factor_setup.clock.advance(60)
    with pytest.raises(SecondFactorWrong):
        await factor_setup.second_factors.verify(before, code_at(app, factor_setup.clock), origin=ORIGIN)


async def test_removing_totp_is_told_and_takes_the_recovery_codes_along(factor_setup: SecondFactorSetup) -> None:
    user, app = await factor_setup.with_totp()
    await factor_setup.new_messages()
    await factor_setup.totp.remove(user, origin=ORIGIN)
    after = await factor_setup.reload(user)
    assert not after.has_second_factor
    assert (await factor_setup.second_factors.load_factors(after)).recovery_left == 0
    assert await factor_setup.events(user) == ["factor.added", "factor.removed"]
    assert len(await factor_setup.new_messages()) == 1
    with pytest.raises(SecondFactorWrong):  # also for a caller who read the account before
        await factor_setup.second_factors.verify(user, code_at(app, factor_setup.clock), origin=ORIGIN)
    with pytest.raises(FactorMissing):
        await factor_setup.totp.remove(user, origin=ORIGIN)
    assert len(await factor_setup.new_messages()) == 0


# -- codes by e-mail ----------------------------------------------------------------------------------


async def test_a_mailed_code_proves_its_owner_once(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.with_email_code()
    assert user.system_tags >= {"2step", "2step_email"}
    code = await factor_setup.mailed_code(user)
    assert await factor_setup.second_factors.verify(user, code, Factor.EMAIL, origin=ORIGIN) is Factor.EMAIL
    with pytest.raises(SecondFactorWrong):
        await factor_setup.second_factors.verify(user, code, Factor.EMAIL, origin=ORIGIN)


async def test_a_mailed_code_ends_after_ten_minutes(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.with_email_code()
    code = await factor_setup.mailed_code(user)
    await factor_setup.clock.advance(EMAIL_CODE_LIFETIME)
    assert not await factor_setup.email_codes.spend(user, code)
    code = await factor_setup.mailed_code(user)
    await factor_setup.clock.advance(EMAIL_CODE_LIFETIME - 1)
    assert await factor_setup.email_codes.spend(user, code)


async def test_a_new_code_ends_the_one_before(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.with_email_code()
    first = await factor_setup.mailed_code(user)
    second = await factor_setup.mailed_code(user)
    while second == first:
        second = await factor_setup.mailed_code(user)
    assert not await factor_setup.email_codes.spend(user, first)
    assert await factor_setup.email_codes.spend(user, second)


async def test_a_code_survives_four_wrong_tries_and_dies_of_the_fifth(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.with_email_code()
    for tries, survives in ((MAX_EMAIL_CODE_TRIES - 1, True), (MAX_EMAIL_CODE_TRIES, False)):
        code = await factor_setup.mailed_code(user)
        for _ in range(tries):
            assert not await factor_setup.email_codes.spend(user, wrong_code(code))
        assert await factor_setup.email_codes.spend(user, code) is survives


async def test_a_mailed_code_is_one_users_and_one_addresss(factor_setup: SecondFactorSetup) -> None:
    anna, bob = await factor_setup.with_email_code(), await factor_setup.with_email_code()
    code = await factor_setup.mailed_code(anna)
    assert not await factor_setup.email_codes.spend(bob, code)
    assert not await factor_setup.email_codes.spend(replace(anna, login="new@studio.example"), code)
    assert await factor_setup.email_codes.spend(anna, code)


async def test_codes_go_to_verified_addresses_and_are_switched_on_once(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.create_person()
    with pytest.raises(EmailNotVerified):
        await factor_setup.email_codes.enable(replace(user, email_verified=False), origin=ORIGIN)
    with pytest.raises(FactorMissing):
        await factor_setup.email_codes.send(user, origin=ORIGIN)
    assert len(await factor_setup.email_codes.enable(user, origin=ORIGIN)) == 10
    with pytest.raises(FactorExists):
        await factor_setup.email_codes.enable(user, origin=ORIGIN)
    assert await factor_setup.events(user) == ["factor.added"]


async def test_a_code_under_way_ends_with_the_factor(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.with_email_code()
    code = await factor_setup.mailed_code(user)
    await factor_setup.email_codes.disable(user, origin=ORIGIN)
    assert not await factor_setup.email_codes.spend(user, code)
    assert not (await factor_setup.reload(user)).has_second_factor
    assert await factor_setup.events(user) == ["factor.added", "factor.removed"]
    with pytest.raises(FactorMissing):
        await factor_setup.email_codes.disable(user, origin=ORIGIN)


async def test_six_digits_are_tried_as_totp_and_then_as_a_mailed_code(factor_setup: SecondFactorSetup) -> None:
    user, app = await factor_setup.with_totp()
    await factor_setup.email_codes.enable(user, origin=ORIGIN)
    user = await factor_setup.reload(user)
    mailed = await factor_setup.mailed_code(user)
    with pytest.raises(SecondFactorWrong):
        await factor_setup.second_factors.verify(user, mailed, Factor.TOTP, origin=ORIGIN)
    assert await factor_setup.second_factors.verify(user, mailed, origin=ORIGIN) is Factor.EMAIL
    assert (
        await factor_setup.second_factors.verify(user, code_at(app, factor_setup.clock), origin=ORIGIN) is Factor.TOTP
    )


# -- recovery codes -----------------------------------------------------------------------------------


async def test_a_recovery_code_stands_in_once_and_is_told(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.create_person()
    first, second, *_ = await factor_setup.totp.confirm_enrollment(
        user, factor_setup.code_of(await factor_setup.totp.begin_enrollment(user)), origin=ORIGIN
    )
    user = await factor_setup.reload(user)
    await factor_setup.new_messages()
    typed = first.upper().replace("-", " ")
    assert (
        await factor_setup.second_factors.verify(user, typed, origin=ORIGIN, device="Firefox, Linux")
        is Factor.RECOVERY
    )
    with pytest.raises(SecondFactorWrong):
        await factor_setup.second_factors.verify(user, first, origin=ORIGIN)
    assert (await factor_setup.second_factors.load_factors(user)).recovery_left == 9
    assert await factor_setup.events(user) == ["factor.added", "factor.recovery_code_used"]
    (message,) = await factor_setup.new_messages()
    assert "Firefox, Linux" in message.text
    assert await factor_setup.second_factors.verify(user, second, Factor.RECOVERY, origin=ORIGIN) is Factor.RECOVERY


async def test_a_recovery_code_is_its_owners(factor_setup: SecondFactorSetup) -> None:
    anna, bob = await factor_setup.create_person(), await factor_setup.with_email_code()
    code, *_ = await factor_setup.totp.confirm_enrollment(
        anna, factor_setup.code_of(await factor_setup.totp.begin_enrollment(anna)), origin=ORIGIN
    )
    assert not await factor_setup.recovery.spend(bob, code, origin=ORIGIN)
    assert await factor_setup.recovery.spend(anna, code, origin=ORIGIN)


async def test_new_codes_replace_all_of_the_old_ones(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.create_person()
    old = await factor_setup.totp.confirm_enrollment(
        user, factor_setup.code_of(await factor_setup.totp.begin_enrollment(user)), origin=ORIGIN
    )
    await factor_setup.recovery.spend(user, old[0], origin=ORIGIN)
    new = await factor_setup.recovery.renew(user, origin=ORIGIN)
    assert (await factor_setup.second_factors.load_factors(user)).recovery_left == 10
    assert [await factor_setup.recovery.spend(user, code, origin=ORIGIN) for code in old] == [False] * 10
    assert [await factor_setup.recovery.spend(user, code, origin=ORIGIN) for code in new] == [True] * 10
    assert (await factor_setup.events(user)).count("factor.recovery_codes_made") == 1


async def test_recovery_codes_require_a_second_factor(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.create_person()
    with pytest.raises(FactorMissing):
        await factor_setup.recovery.renew(user, origin=ORIGIN)
    assert (await factor_setup.second_factors.load_factors(user)).recovery_left == 0
    assert await factor_setup.events(user) == []


async def test_a_second_factor_brings_codes_only_when_none_are_left(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.create_person()
    codes = await factor_setup.email_codes.enable(user, origin=ORIGIN)
    enrolment = await factor_setup.totp.begin_enrollment(user)
    assert await factor_setup.totp.confirm_enrollment(user, factor_setup.code_of(enrolment), origin=ORIGIN) == ()
    assert await factor_setup.recovery.spend(user, codes[0], origin=ORIGIN)
    for code in codes[1:]:
        await factor_setup.recovery.spend(user, code, origin=ORIGIN)
    enrolment = await factor_setup.totp.begin_enrollment(user)
    assert len(await factor_setup.totp.confirm_enrollment(user, factor_setup.code_of(enrolment), origin=ORIGIN)) == 10


async def test_codes_stay_as_long_as_one_factor_does(factor_setup: SecondFactorSetup) -> None:
    user, _ = await factor_setup.with_totp()
    await factor_setup.email_codes.enable(user, origin=ORIGIN)
    user, authenticator = await factor_setup.with_passkey(user)
    await factor_setup.totp.remove(user, origin=ORIGIN)
    await factor_setup.email_codes.disable(user, origin=ORIGIN)
    assert (await factor_setup.second_factors.load_factors(user)).recovery_left == 10
    (passkey,) = await factor_setup.passkeys.of_user(user.user_id)
    assert passkey.credential_id == authenticator.credential_id
    await factor_setup.passkeys.remove(user, passkey.passkey_id, origin=ORIGIN)
    assert (await factor_setup.second_factors.load_factors(user)).recovery_left == 0


# -- guesses ------------------------------------------------------------------------------------------


async def test_lg_13_wrong_codes_are_counted_until_a_right_one(factor_setup: SecondFactorSetup) -> None:
    user, app = await factor_setup.with_totp()
    for _ in range(9):
        with pytest.raises(SecondFactorWrong):
            await factor_setup.second_factors.verify(
                user, wrong_code(code_at(app, factor_setup.clock)), origin=ORIGIN
            )
    await factor_setup.second_factors.verify(user, code_at(app, factor_setup.clock), origin=ORIGIN)
    await factor_setup.clock.advance(30)
    for _ in range(9):
        with pytest.raises(SecondFactorWrong):
            await factor_setup.second_factors.verify(
                user, wrong_code(code_at(app, factor_setup.clock)), origin=ORIGIN
            )


async def test_lg_13_ten_wrong_codes_of_any_kind_lock_every_kind_for_a_while(factor_setup: SecondFactorSetup) -> None:
    user, app = await factor_setup.with_totp()
    for n in range(10):
        otp = wrong_code(code_at(app, factor_setup.clock)) if n % 2 else NONE
        with pytest.raises(SecondFactorWrong):
            await factor_setup.second_factors.verify(user, otp, origin=ORIGIN)
    # A person with the right password reads the account again, but does not clear the count.
    user = await factor_setup.reload(user)
    for otp in (code_at(app, factor_setup.clock), NONE):
        with pytest.raises(TooMany) as caught:
            await factor_setup.second_factors.verify(user, otp, origin=ORIGIN)
        assert caught.value.retry_after == 30
    await factor_setup.clock.advance(30)
    assert (
        await factor_setup.second_factors.verify(user, code_at(app, factor_setup.clock), origin=ORIGIN) is Factor.TOTP
    )


async def test_lg_13_many_guesses_at_once_do_not_outrun_the_count(factor_setup: SecondFactorSetup) -> None:
    user, app = await factor_setup.with_totp()
    guess = wrong_code(code_at(app, factor_setup.clock))
    answers = await asyncio.gather(
        *(factor_setup.second_factors.verify(user, guess, origin=ORIGIN) for _ in range(30)), return_exceptions=True
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["SecondFactorWrong"] * 10 + ["TooMany"] * 20


async def test_another_account_is_not_locked_with_it(factor_setup: SecondFactorSetup) -> None:
    user, app = await factor_setup.with_totp()
    for _ in range(10):
        with pytest.raises(SecondFactorWrong):
            await factor_setup.second_factors.verify(await factor_setup.create_person(), "000000", origin=ORIGIN)
    assert (
        await factor_setup.second_factors.verify(user, code_at(app, factor_setup.clock), origin=ORIGIN) is Factor.TOTP
    )


# -- with the rest of the account ---------------------------------------------------------------------


async def test_lg_20_a_reset_removes_everything_and_ends_what_was_issued(factor_setup: SecondFactorSetup) -> None:
    user, _ = await factor_setup.with_totp()
    await factor_setup.email_codes.enable(user, origin=ORIGIN)
    user, _ = await factor_setup.with_passkey(user)
    await factor_setup.totp.begin_enrollment(user)
    await factor_setup.new_messages()
    await factor_setup.second_factors.reset(user, origin=ORIGIN)
    after = await factor_setup.reload(user)
    assert not after.has_second_factor
    assert after.rev > user.rev
    assert (await factor_setup.second_factors.load_factors(after)).accepted_factors == ()
    assert await factor_setup.totp.pending_enrollment(after) is None
    assert "factor.all_removed" in await factor_setup.events(user)
    assert len(await factor_setup.new_messages()) == 3
    with pytest.raises(UserNotFound):
        await factor_setup.second_factors.reset(a_user(), origin=ORIGIN)


async def test_a_save_of_the_account_that_was_read_before_undoes_no_factor(
    factor_setup: SecondFactorSetup, storage: Storage
) -> None:
    before = await factor_setup.create_person()
    await factor_setup.totp.confirm_enrollment(
        before, factor_setup.code_of(await factor_setup.totp.begin_enrollment(before)), origin=ORIGIN
    )
    with pytest.raises(UserChanged):
        await storage.runner.write(lambda: update_user(before))
    assert (await factor_setup.reload(before)).has_second_factor
    before = await factor_setup.reload(before)
    await factor_setup.totp.remove(before, origin=ORIGIN)
    with pytest.raises(UserChanged):  # nor does it restore one that was removed
        await storage.runner.write(lambda: update_user(before))


async def test_codes_go_when_a_save_of_the_account_takes_its_last_factor(
    factor_setup: SecondFactorSetup, storage: Storage
) -> None:
    user, _ = await factor_setup.with_totp()
    await storage.runner.write(lambda: update_user(replace(user, sealed_totp=None)))
    assert (await factor_setup.second_factors.load_factors(user)).recovery_left == 0
    user, _ = await factor_setup.with_totp()
    await storage.runner.write(lambda: update_user(replace(user, nick="Other")))
    assert (await factor_setup.second_factors.load_factors(user)).recovery_left == 10


async def test_the_factor_used_last_is_asked_for_first(factor_setup: SecondFactorSetup) -> None:
    user, app = await factor_setup.with_totp()
    user, _ = await factor_setup.with_passkey(user)
    assert (await factor_setup.second_factors.load_factors(user)).methods == (Factor.TOTP, Factor.PASSKEY)
    await factor_setup.clock.advance(60)
    await factor_setup.second_factors.verify(user, code_at(app, factor_setup.clock), origin=ORIGIN)
    assert (await factor_setup.second_factors.load_factors(user)).methods == (Factor.TOTP, Factor.PASSKEY)


async def test_no_factor_is_added_to_an_unknown_account(factor_setup: SecondFactorSetup) -> None:
    no_one = a_user(email_verified=True, password_hash="hash")
    with pytest.raises(UserNotFound):
        await factor_setup.email_codes.enable(no_one, origin=ORIGIN)
    with pytest.raises(UserNotFound):
        await factor_setup.totp.confirm_enrollment(
            no_one, factor_setup.code_of(await factor_setup.totp.begin_enrollment(no_one)), origin=ORIGIN
        )
    assert await factor_setup.new_messages() == []
