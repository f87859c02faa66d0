"""Passkeys from end to end with a soft authenticator, on both databases."""

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
def bench(storage: Storage) -> SecondFactorSetup:
    return second_factor_setup(storage)


async def sign_in(
    bench: SecondFactorSetup, authenticator: Authenticator, user: User | None = None, **lies: Any
) -> Passkey:
    options = await bench.passkeys.sign_in_options(browser=BROWSER, user=user)
    answer = authenticator.get(options, **lies)
    return await bench.passkeys.authenticate(answer, browser=BROWSER, origin=ORIGIN, user=user)


async def test_a_passkey_is_kept_as_it_was_made(bench: SecondFactorSetup) -> None:
    user, authenticator = await bench.with_passkey()
    (kept,) = await bench.passkeys.of_user(user.user_id)
    assert (kept.credential_id, kept.user_id, kept.name) == (authenticator.credential_id, user.user_id, "Laptop")
    assert (kept.transports, kept.sign_count) == (("internal", "hybrid"), 0)
    assert (kept.created_at, kept.used_at) == (bench.clock.now(), 0)
    assert user.passkeys == 1
    assert user.system_tags >= {"2step", "2step_passkey"}
    assert await bench.events(user) == ["factor.added"]
    assert len(await bench.new_messages()) == 1


async def test_the_first_passkey_brings_recovery_codes_and_the_second_none(bench: SecondFactorSetup) -> None:
    user = await bench.create_person()
    assert len(await bench.register(user, Authenticator(BASE_URL))) == 10
    assert await bench.register(user, Authenticator(BASE_URL)) == ()
    assert (await bench.reload(user)).passkeys == 2


async def test_a_passkey_signs_in_without_a_password(bench: SecondFactorSetup) -> None:
    user, authenticator = await bench.with_passkey()
    await bench.clock.advance(100)
    proved = await sign_in(bench, authenticator)
    assert proved.user_id == user.user_id
    (kept,) = await bench.passkeys.of_user(user.user_id)
    assert (kept.sign_count, kept.used_at) == (1, bench.clock.now())


async def test_a_passkey_is_a_second_factor(bench: SecondFactorSetup) -> None:
    user, authenticator = await bench.with_passkey()
    options = json.loads(await bench.passkeys.sign_in_options(browser=BROWSER, user=user))
    assert [one["id"] for one in options["allowCredentials"]] == [to_base64url(authenticator.credential_id)]
    assert (await sign_in(bench, authenticator, user)).user_id == user.user_id
    # An authenticator that was named to need not say whose it is.
    assert (await sign_in(bench, authenticator, user, user_handle=None)).user_id == user.user_id
    assert (await bench.second_factors.load_factors(user)).methods == (Factor.PASSKEY,)


async def test_an_authenticator_that_does_not_count_signs_in_again_and_again(bench: SecondFactorSetup) -> None:
    user = await bench.create_person()
    authenticator = Authenticator(BASE_URL, counts=False)
    await bench.register(user, authenticator)
    for _ in range(3):
        assert (await sign_in(bench, authenticator)).user_id == user.user_id


# -- what is refused ----------------------------------------------------------------------------------

LIES: list[dict[str, Any]] = [
    {"origin": "https://id.studio.example"},  # without its port it is another origin
    {"origin": "http://id.studio.example:8443"},
    {"origin": "https://evil.example"},
    {"rp_id": "studio.example"},
    {"challenge": to_base64url(bytes(32))},
    {"challenge": ""},
    {"user_verified": False},
    {"cross_origin": True},
]


@pytest.mark.parametrize("lie", [*LIES, {"kind": "webauthn.get"}])
async def test_a_registration_with_a_lie_in_it_is_refused(bench: SecondFactorSetup, lie: dict[str, Any]) -> None:
    user = await bench.create_person()
    with pytest.raises(PasskeyRefused):
        await bench.register(user, Authenticator(BASE_URL), **lie)
    assert await bench.reload(user) == user
    assert await bench.new_messages() == []


@pytest.mark.parametrize("passwordless", [True, False])
@pytest.mark.parametrize("lie", [*LIES, {"kind": "webauthn.create"}, {"user_handle": b"1000000009"}])
async def test_a_sign_in_with_a_lie_in_it_is_refused(
    bench: SecondFactorSetup,
    lie: dict[str, Any],
    passwordless: bool,  # noqa: FBT001
) -> None:
    user, authenticator = await bench.with_passkey()
    with pytest.raises(PasskeyRefused) as caught:
        await sign_in(bench, authenticator, None if passwordless else user, **lie)
    assert caught.value.public == PasskeyRefused.public
    (kept,) = await bench.passkeys.of_user(user.user_id)
    assert (kept.sign_count, kept.used_at) == (0, 0)


async def test_an_answer_is_good_once(bench: SecondFactorSetup) -> None:
    user, authenticator = await bench.with_passkey()
    answer = authenticator.get(await bench.passkeys.sign_in_options(browser=BROWSER))
    answers = await asyncio.gather(
        *(bench.passkeys.authenticate(answer, browser=BROWSER, origin=ORIGIN) for _ in range(6)),
        return_exceptions=True,
    )
    assert sorted(type(one).__name__ for one in answers) == ["Passkey", *["PasskeyRefused"] * 5]
    assert await bench.events(user) == ["factor.added"]  # a replay is no sign of a copy


async def test_a_registration_is_good_once(bench: SecondFactorSetup) -> None:
    user = await bench.create_person()
    options = await bench.passkeys.registration_options(user, browser=BROWSER)
    for authenticator, refused in ((Authenticator(BASE_URL), False), (Authenticator(BASE_URL), True)):
        answer = authenticator.create(options)
        if refused:
            with pytest.raises(PasskeyRefused):
                await bench.passkeys.register(user, answer, name="Key", browser=BROWSER, origin=ORIGIN)
        else:
            await bench.passkeys.register(user, answer, name="Key", browser=BROWSER, origin=ORIGIN)


async def test_a_challenge_ends_after_five_minutes(bench: SecondFactorSetup) -> None:
    _, authenticator = await bench.with_passkey()
    options = await bench.passkeys.sign_in_options(browser=BROWSER)
    await bench.clock.advance(CHALLENGE_LIFETIME)
    with pytest.raises(PasskeyRefused):
        await bench.passkeys.authenticate(authenticator.get(options), browser=BROWSER, origin=ORIGIN)


async def test_a_challenge_is_answered_by_the_browser_that_got_it_and_others_do_not_burn_it(
    bench: SecondFactorSetup,
) -> None:
    user, authenticator = await bench.with_passkey()
    answer = authenticator.get(await bench.passkeys.sign_in_options(browser=BROWSER))
    with pytest.raises(PasskeyRefused):
        await bench.passkeys.authenticate(answer, browser=OTHER_BROWSER, origin=ORIGIN)
    with pytest.raises(PasskeyRefused):  # nor does it turn a passwordless answer into a second factor
        await bench.passkeys.authenticate(answer, browser=BROWSER, origin=ORIGIN, user=user)
    assert await bench.passkeys.authenticate(answer, browser=BROWSER, origin=ORIGIN)


async def test_two_tabs_of_one_browser_both_sign_in(bench: SecondFactorSetup) -> None:
    _, authenticator = await bench.with_passkey()
    tabs = [await bench.passkeys.sign_in_options(browser=BROWSER) for _ in range(2)]
    for options in tabs:
        assert await bench.passkeys.authenticate(authenticator.get(options), browser=BROWSER, origin=ORIGIN)


async def test_a_challenge_for_one_ceremony_is_no_good_in_the_other(bench: SecondFactorSetup) -> None:
    user, authenticator = await bench.with_passkey()
    asked = json.loads(await bench.passkeys.registration_options(user, browser=BROWSER))
    signed = authenticator.get(json.dumps({"challenge": asked["challenge"], "rpId": asked["rp"]["id"]}))
    with pytest.raises(PasskeyRefused):
        await bench.passkeys.authenticate(signed, browser=BROWSER, origin=ORIGIN, user=user)


async def test_someone_elses_passkey_is_no_second_factor(bench: SecondFactorSetup) -> None:
    anna, _ = await bench.with_passkey()
    _, mallory = await bench.with_passkey()
    for lie in ({}, {"user_handle": anna.user_id.encode()}, {"user_handle": None}):
        with pytest.raises(PasskeyRefused):
            await sign_in(bench, mallory, anna, **lie)


async def test_without_a_password_a_passkey_says_whose_it_is_and_says_true(bench: SecondFactorSetup) -> None:
    anna, _ = await bench.with_passkey()
    _, mallory = await bench.with_passkey()
    for handle in (None, b"", anna.user_id.encode()):
        with pytest.raises(PasskeyRefused):
            await sign_in(bench, mallory, user_handle=handle)


async def test_a_signature_of_another_key_is_refused(bench: SecondFactorSetup) -> None:
    user, authenticator = await bench.with_passkey()
    forger = Authenticator(BASE_URL)
    forger.credential_id = authenticator.credential_id
    forger.user_handle = user.user_id.encode()
    with pytest.raises(PasskeyRefused):
        await sign_in(bench, forger)


async def test_an_unknown_passkey_is_refused_like_any_other(bench: SecondFactorSetup) -> None:
    stranger = Authenticator(BASE_URL)
    stranger.user_handle = b"1000000009"
    with pytest.raises(PasskeyRefused):
        await sign_in(bench, stranger)


@pytest.mark.parametrize("counter", [0, 3, 5])
async def test_a_counter_that_does_not_go_up_is_refused_and_recorded(bench: SecondFactorSetup, counter: int) -> None:
    user, authenticator = await bench.with_passkey()
    authenticator.counter = 4
    await sign_in(bench, authenticator)
    with pytest.raises(PasskeyRefused):
        await sign_in(bench, authenticator, counter=counter)
    assert await bench.events(user) == ["factor.added", "factor.passkey_suspected"]
    (kept,) = await bench.passkeys.of_user(user.user_id)
    assert kept.sign_count == 5
    assert await sign_in(bench, authenticator, counter=9)


# -- the list -----------------------------------------------------------------------------------------


async def test_a_credential_belongs_to_one_account(bench: SecondFactorSetup) -> None:
    _, authenticator = await bench.with_passkey()
    other = await bench.create_person()
    with pytest.raises(PasskeyTaken):
        await bench.register(other, authenticator)
    assert await bench.reload(other) == other
    assert (await bench.second_factors.load_factors(other)).recovery_left == 0


async def test_an_account_has_at_most_twenty(bench: SecondFactorSetup) -> None:
    user = await bench.create_person()
    for _ in range(MAX_PASSKEYS):
        await bench.register(user, Authenticator(BASE_URL))
    with pytest.raises(TooManyPasskeys):
        await bench.register(user, Authenticator(BASE_URL))
    assert (await bench.reload(user)).passkeys == MAX_PASSKEYS


async def test_a_passkey_is_renamed_by_its_owner_only(bench: SecondFactorSetup) -> None:
    user, _ = await bench.with_passkey()
    other = await bench.create_person()
    (kept,) = await bench.passkeys.of_user(user.user_id)
    with pytest.raises(FactorMissing):
        await bench.passkeys.rename(other, kept.passkey_id, "Mine", origin=ORIGIN)
    with pytest.raises(BadPasskeyName):
        await bench.passkeys.rename(user, kept.passkey_id, "\u202eevil", origin=ORIGIN)
    await bench.passkeys.rename(user, kept.passkey_id, " Old laptop ", origin=ORIGIN)
    (renamed,) = await bench.passkeys.of_user(user.user_id)
    assert renamed.name == "Old laptop"
    assert await bench.events(user) == ["factor.added", "factor.passkey_renamed"]


async def test_a_removed_passkey_is_dead(bench: SecondFactorSetup) -> None:
    user, authenticator = await bench.with_passkey()
    other = await bench.create_person()
    (kept,) = await bench.passkeys.of_user(user.user_id)
    with pytest.raises(FactorMissing):
        await bench.passkeys.remove(other, kept.passkey_id, origin=ORIGIN)
    await bench.passkeys.remove(user, kept.passkey_id, origin=ORIGIN)
    with pytest.raises(PasskeyRefused):
        await sign_in(bench, authenticator)
    with pytest.raises(FactorMissing):
        await bench.passkeys.remove(user, kept.passkey_id, origin=ORIGIN)
    assert (await bench.reload(user)).passkeys == 0
    assert await bench.events(user) == ["factor.added", "factor.removed"]
