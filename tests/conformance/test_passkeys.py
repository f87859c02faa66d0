"""Passkeys from end to end with a software authenticator, on both databases."""

import asyncio
import json
from typing import Any

import pytest

from gatehouse.accounts.model import User
from gatehouse.accounts.second_factors.ceremony import CHALLENGE_LIFETIME
from gatehouse.accounts.second_factors.model import (
    MAX_PASSKEYS,
    BadPasskeyName,
    Factor,
    FactorMissing,
    Passkey,
    PasskeyRefused,
    PasskeyTaken,
    TooManyPasskeys,
)
from gatehouse.storage.database import Storage
from tests.support.authenticator import Authenticator, to_base64url
from tests.support.builders import ORIGIN
from tests.support.second_factors import BASE_URL, BROWSER, SecondFactorSetup, second_factor_setup

OTHER_BROWSER = bytes([1]) * 32


@pytest.fixture
def factor_setup(storage: Storage) -> SecondFactorSetup:
    return second_factor_setup(storage)


async def sign_in(
    factor_setup: SecondFactorSetup, authenticator: Authenticator, user: User | None = None, **lies: Any
) -> Passkey:
    options = await factor_setup.passkeys.sign_in_options(browser=BROWSER, user=user)
    answer = authenticator.get(options, **lies)
    return await factor_setup.passkeys.authenticate(answer, browser=BROWSER, origin=ORIGIN, user=user)


async def test_a_passkey_is_kept_as_it_was_made(factor_setup: SecondFactorSetup) -> None:
    user, authenticator = await factor_setup.with_passkey()
    (stored_passkey,) = await factor_setup.passkeys.of_user(user.user_id)
    assert (stored_passkey.credential_id, stored_passkey.user_id, stored_passkey.name) == (
        authenticator.credential_id,
        user.user_id,
        "Laptop",
    )
    assert (stored_passkey.transports, stored_passkey.sign_count) == (("internal", "hybrid"), 0)
    assert (stored_passkey.created_at, stored_passkey.used_at) == (factor_setup.clock.now(), 0)
    assert user.passkeys == 1
    assert user.system_tags >= {"2step", "2step_passkey"}
    assert await factor_setup.events(user) == ["factor.added"]
    assert len(await factor_setup.new_messages()) == 1


async def test_the_first_passkey_brings_recovery_codes_and_the_second_none(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.create_person()
    assert len(await factor_setup.register(user, Authenticator(BASE_URL))) == 10
    assert await factor_setup.register(user, Authenticator(BASE_URL)) == ()
    assert (await factor_setup.reload(user)).passkeys == 2


async def test_a_passkey_signs_in_without_a_password(factor_setup: SecondFactorSetup) -> None:
    user, authenticator = await factor_setup.with_passkey()
    await factor_setup.clock.advance(100)
    proved = await sign_in(factor_setup, authenticator)
    assert proved.user_id == user.user_id
    (stored_passkey,) = await factor_setup.passkeys.of_user(user.user_id)
    assert (stored_passkey.sign_count, stored_passkey.used_at) == (1, factor_setup.clock.now())


async def test_a_passkey_is_a_second_factor(factor_setup: SecondFactorSetup) -> None:
    user, authenticator = await factor_setup.with_passkey()
    options = json.loads(await factor_setup.passkeys.sign_in_options(browser=BROWSER, user=user))
    assert [credential["id"] for credential in options["allowCredentials"]] == [
        to_base64url(authenticator.credential_id)
    ]
    assert (await sign_in(factor_setup, authenticator, user)).user_id == user.user_id
    # An authenticator that was given the credential id need not send the user handle.
    assert (await sign_in(factor_setup, authenticator, user, user_handle=None)).user_id == user.user_id
    assert (await factor_setup.second_factors.load_factors(user)).methods == (Factor.PASSKEY,)


async def test_an_authenticator_that_does_not_count_signs_in_again_and_again(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.create_person()
    authenticator = Authenticator(BASE_URL, counts=False)
    await factor_setup.register(user, authenticator)
    for _ in range(3):
        assert (await sign_in(factor_setup, authenticator)).user_id == user.user_id


# -- refusals -----------------------------------------------------------------------------------------

LIES: list[dict[str, Any]] = [
    {"origin": "https://id.studio.example"},  # without its port it is a different origin
    {"origin": "http://id.studio.example:8443"},
    {"origin": "https://evil.example"},
    {"rp_id": "studio.example"},
    {"challenge": to_base64url(bytes(32))},
    {"challenge": ""},
    {"user_verified": False},
    {"cross_origin": True},
]


@pytest.mark.parametrize("lie", [*LIES, {"kind": "webauthn.get"}])
async def test_a_registration_with_a_lie_in_it_is_refused(
    factor_setup: SecondFactorSetup, lie: dict[str, Any]
) -> None:
    user = await factor_setup.create_person()
    with pytest.raises(PasskeyRefused):
        await factor_setup.register(user, Authenticator(BASE_URL), **lie)
    assert await factor_setup.reload(user) == user
    assert await factor_setup.new_messages() == []


@pytest.mark.parametrize("passwordless", [True, False])
@pytest.mark.parametrize("lie", [*LIES, {"kind": "webauthn.create"}, {"user_handle": b"1000000009"}])
async def test_a_sign_in_with_a_lie_in_it_is_refused(
    factor_setup: SecondFactorSetup,
    lie: dict[str, Any],
    passwordless: bool,  # noqa: FBT001
) -> None:
    user, authenticator = await factor_setup.with_passkey()
    with pytest.raises(PasskeyRefused) as caught:
        await sign_in(factor_setup, authenticator, None if passwordless else user, **lie)
    assert caught.value.public == PasskeyRefused.public
    (stored_passkey,) = await factor_setup.passkeys.of_user(user.user_id)
    assert (stored_passkey.sign_count, stored_passkey.used_at) == (0, 0)


async def test_an_answer_is_good_once(factor_setup: SecondFactorSetup) -> None:
    user, authenticator = await factor_setup.with_passkey()
    answer = authenticator.get(await factor_setup.passkeys.sign_in_options(browser=BROWSER))
    answers = await asyncio.gather(
        *(factor_setup.passkeys.authenticate(answer, browser=BROWSER, origin=ORIGIN) for _ in range(6)),
        return_exceptions=True,
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["Passkey", *["PasskeyRefused"] * 5]
    assert await factor_setup.events(user) == ["factor.added"]  # a replay is not evidence of a copy


async def test_a_registration_is_good_once(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.create_person()
    options = await factor_setup.passkeys.registration_options(user, browser=BROWSER)
    for authenticator, is_refused in ((Authenticator(BASE_URL), False), (Authenticator(BASE_URL), True)):
        answer = authenticator.create(options)
        if is_refused:
            with pytest.raises(PasskeyRefused):
                await factor_setup.passkeys.register(user, answer, name="Key", browser=BROWSER, origin=ORIGIN)
        else:
            await factor_setup.passkeys.register(user, answer, name="Key", browser=BROWSER, origin=ORIGIN)


async def test_a_challenge_ends_after_five_minutes(factor_setup: SecondFactorSetup) -> None:
    _, authenticator = await factor_setup.with_passkey()
    options = await factor_setup.passkeys.sign_in_options(browser=BROWSER)
    await factor_setup.clock.advance(CHALLENGE_LIFETIME)
    with pytest.raises(PasskeyRefused):
        await factor_setup.passkeys.authenticate(authenticator.get(options), browser=BROWSER, origin=ORIGIN)


async def test_a_challenge_is_answered_by_the_browser_that_got_it_and_others_do_not_burn_it(
    factor_setup: SecondFactorSetup,
) -> None:
    user, authenticator = await factor_setup.with_passkey()
    answer = authenticator.get(await factor_setup.passkeys.sign_in_options(browser=BROWSER))
    with pytest.raises(PasskeyRefused):
        await factor_setup.passkeys.authenticate(answer, browser=OTHER_BROWSER, origin=ORIGIN)
    with pytest.raises(PasskeyRefused):  # nor does it turn a passwordless response into a second factor
        await factor_setup.passkeys.authenticate(answer, browser=BROWSER, origin=ORIGIN, user=user)
    assert await factor_setup.passkeys.authenticate(answer, browser=BROWSER, origin=ORIGIN)


async def test_two_tabs_of_one_browser_both_sign_in(factor_setup: SecondFactorSetup) -> None:
    _, authenticator = await factor_setup.with_passkey()
    tabs = [await factor_setup.passkeys.sign_in_options(browser=BROWSER) for _ in range(2)]
    for options in tabs:
        assert await factor_setup.passkeys.authenticate(authenticator.get(options), browser=BROWSER, origin=ORIGIN)


async def test_a_challenge_for_one_ceremony_is_no_good_in_the_other(factor_setup: SecondFactorSetup) -> None:
    user, authenticator = await factor_setup.with_passkey()
    body = json.loads(await factor_setup.passkeys.registration_options(user, browser=BROWSER))
    signed = authenticator.get(json.dumps({"challenge": body["challenge"], "rpId": body["rp"]["id"]}))
    with pytest.raises(PasskeyRefused):
        await factor_setup.passkeys.authenticate(signed, browser=BROWSER, origin=ORIGIN, user=user)


async def test_someone_elses_passkey_is_no_second_factor(factor_setup: SecondFactorSetup) -> None:
    anna, _ = await factor_setup.with_passkey()
    _, mallory = await factor_setup.with_passkey()
    for lie in ({}, {"user_handle": anna.user_id.encode()}, {"user_handle": None}):
        with pytest.raises(PasskeyRefused):
            await sign_in(factor_setup, mallory, anna, **lie)


async def test_passwordless_passkey_sign_in_requires_the_matching_user_handle(
    factor_setup: SecondFactorSetup,
) -> None:
    anna, _ = await factor_setup.with_passkey()
    _, mallory = await factor_setup.with_passkey()
    for handle in (None, b"", anna.user_id.encode()):
        with pytest.raises(PasskeyRefused):
            await sign_in(factor_setup, mallory, user_handle=handle)


async def test_a_signature_of_another_key_is_refused(factor_setup: SecondFactorSetup) -> None:
    user, authenticator = await factor_setup.with_passkey()
    forger = Authenticator(BASE_URL)
    forger.credential_id = authenticator.credential_id
    forger.user_handle = user.user_id.encode()
    with pytest.raises(PasskeyRefused):
        await sign_in(factor_setup, forger)


async def test_an_unknown_passkey_is_refused_like_any_other(factor_setup: SecondFactorSetup) -> None:
    unknown_authenticator = Authenticator(BASE_URL)
    unknown_authenticator.user_handle = b"1000000009"
    with pytest.raises(PasskeyRefused):
        await sign_in(factor_setup, unknown_authenticator)


@pytest.mark.parametrize("counter", [0, 3, 5])
async def test_a_counter_that_does_not_go_up_is_refused_and_recorded(
    factor_setup: SecondFactorSetup, counter: int
) -> None:
    user, authenticator = await factor_setup.with_passkey()
    authenticator.counter = 4
    await sign_in(factor_setup, authenticator)
    with pytest.raises(PasskeyRefused):
        await sign_in(factor_setup, authenticator, counter=counter)
    assert await factor_setup.events(user) == ["factor.added", "factor.passkey_suspected"]
    (stored_passkey,) = await factor_setup.passkeys.of_user(user.user_id)
    assert stored_passkey.sign_count == 5
    assert await sign_in(factor_setup, authenticator, counter=9)


# -- the list -----------------------------------------------------------------------------------------


async def test_a_credential_belongs_to_one_account(factor_setup: SecondFactorSetup) -> None:
    _, authenticator = await factor_setup.with_passkey()
    other = await factor_setup.create_person()
    with pytest.raises(PasskeyTaken):
        await factor_setup.register(other, authenticator)
    assert await factor_setup.reload(other) == other
    assert (await factor_setup.second_factors.load_factors(other)).recovery_left == 0


async def test_an_account_has_at_most_twenty(factor_setup: SecondFactorSetup) -> None:
    user = await factor_setup.create_person()
    for _ in range(MAX_PASSKEYS):
        await factor_setup.register(user, Authenticator(BASE_URL))
    with pytest.raises(TooManyPasskeys):
        await factor_setup.register(user, Authenticator(BASE_URL))
    assert (await factor_setup.reload(user)).passkeys == MAX_PASSKEYS


async def test_a_passkey_is_renamed_by_its_owner_only(factor_setup: SecondFactorSetup) -> None:
    user, _ = await factor_setup.with_passkey()
    other = await factor_setup.create_person()
    (stored_passkey,) = await factor_setup.passkeys.of_user(user.user_id)
    with pytest.raises(FactorMissing):
        await factor_setup.passkeys.rename(other, stored_passkey.passkey_id, "Mine", origin=ORIGIN)
    with pytest.raises(BadPasskeyName):
        await factor_setup.passkeys.rename(user, stored_passkey.passkey_id, "\u202eevil", origin=ORIGIN)
    await factor_setup.passkeys.rename(user, stored_passkey.passkey_id, " Old laptop ", origin=ORIGIN)
    (renamed,) = await factor_setup.passkeys.of_user(user.user_id)
    assert renamed.name == "Old laptop"
    assert await factor_setup.events(user) == ["factor.added", "factor.passkey_renamed"]


async def test_a_removed_passkey_is_dead(factor_setup: SecondFactorSetup) -> None:
    user, authenticator = await factor_setup.with_passkey()
    other = await factor_setup.create_person()
    (stored_passkey,) = await factor_setup.passkeys.of_user(user.user_id)
    with pytest.raises(FactorMissing):
        await factor_setup.passkeys.remove(other, stored_passkey.passkey_id, origin=ORIGIN)
    await factor_setup.passkeys.remove(user, stored_passkey.passkey_id, origin=ORIGIN)
    with pytest.raises(PasskeyRefused):
        await sign_in(factor_setup, authenticator)
    with pytest.raises(FactorMissing):
        await factor_setup.passkeys.remove(user, stored_passkey.passkey_id, origin=ORIGIN)
    assert (await factor_setup.reload(user)).passkeys == 0
    assert await factor_setup.events(user) == ["factor.added", "factor.removed"]
