"""Identifying callers: every rule about credentials at permission endpoints (R1, R2, R6; checklist section 7)."""

from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from msgspec.structs import replace

from gatehouse.kernel.addresses import parse_address
from gatehouse.kernel.errors import TooMany
from gatehouse.keys.key_objects import public_pem
from gatehouse.keys.keyring import Keyring, OpenedKey
from gatehouse.keys.model import Algorithm, KeyPurpose
from gatehouse.permissions.authentication.callers import Caller
from gatehouse.permissions.authentication.credentials import (
    ABOUT_APPLICATION,
    DEFAULT_POLICY,
    EXCHANGE_JWT,
    RECORD_GET,
    RECORD_SAVE,
    ROLES_OF_RECORD_GET,
    USER_INFO,
    CredentialPolicy,
    RequestCredentials,
)
from gatehouse.permissions.authentication.vouching import CallerKind
from gatehouse.permissions.errors import WrongCredentials
from gatehouse.tokens.claims import GeneratedServiceClaims, InvalidToken, factor_digest
from tests.support.callers import (
    CLIENT,
    DAY,
    FACTOR,
    KEY,
    OTHER,
    OTHER_KEY,
    PERSON,
    REVISION,
    ROBOT,
    CallerSetup,
    RequestSigner,
    a_project,
    a_robot,
    caller_setup,
    credentials_from_client,
)
from tests.support.keys import NOW, key_of
from tests.support.tokens import APPLICATION, application_private_key, forge

ALL_NEEDS = [DEFAULT_POLICY, ABOUT_APPLICATION, USER_INFO, RECORD_GET, ROLES_OF_RECORD_GET, RECORD_SAVE]
WITHOUT_KEYS = [DEFAULT_POLICY, ABOUT_APPLICATION, USER_INFO, RECORD_SAVE]


@pytest.fixture
async def callers() -> AsyncIterator[CallerSetup]:
    async with caller_setup() as opened:
        yield opened


async def identify_caller(
    callers: CallerSetup,
    credentials: RequestCredentials,
    need: CredentialPolicy = RECORD_GET,
    about: int | None = APPLICATION,
) -> Caller:
    return await callers.authenticator.identify(credentials, need, application_id=about)


async def expect_refusal(
    callers: CallerSetup,
    kind: type[Exception],
    credentials: RequestCredentials,
    need: CredentialPolicy = RECORD_GET,
    about: int | None = APPLICATION,
) -> None:
    with pytest.raises(kind):
        await identify_caller(callers, credentials, need, about)


# JWT and factor


async def test_a_jwt_with_its_factor_is_its_owner(callers: CallerSetup) -> None:
    caller = await identify_caller(
        callers, credentials_from_client(bearer=await callers.user_jwt(), factor=FACTOR), DEFAULT_POLICY
    )
    assert (caller.by, caller.user_id, caller.name) == (CallerKind.FACTOR, PERSON, PERSON)
    assert (caller.vouching_application_id, caller.audience, caller.expired) == (None, None, False)
    assert str(caller.address) == CLIENT
    assert callers.permissions.asked == [(PERSON, {1, APPLICATION})]


async def test_facts_are_read_once_for_all_the_request_is_about(callers: CallerSetup) -> None:
    credentials = credentials_from_client(bearer=await callers.user_jwt(), factor=FACTOR)
    await callers.authenticator.identify(credentials, DEFAULT_POLICY, also=[7, 8])
    assert callers.permissions.asked == [(PERSON, {1, 7, 8})]


@pytest.mark.parametrize("need", ALL_NEEDS)
@pytest.mark.parametrize("jwt", ["", "garbage", "..", "a.b.c", "a" * 100_000])
async def test_pa_01_no_empty_and_broken_tokens_are_refused(
    callers: CallerSetup, need: CredentialPolicy, jwt: str
) -> None:
    await expect_refusal(callers, InvalidToken, credentials_from_client(bearer=jwt, factor=FACTOR), need)
    await expect_refusal(callers, InvalidToken, credentials_from_client(jwt=jwt, factor=FACTOR), need)


@pytest.mark.parametrize("factor", ["", "another device", FACTOR.upper(), f"{FACTOR} ", "x" * 1_000_000, "\udcff"])
async def test_pa_02_a_jwt_needs_its_own_factor(callers: CallerSetup, factor: str) -> None:
    await expect_refusal(
        callers, InvalidToken, credentials_from_client(bearer=await callers.user_jwt(), factor=factor), DEFAULT_POLICY
    )


@pytest.mark.parametrize("factor", ["", "None", FACTOR])
async def test_pa_02_a_jwt_without_fac_passes_no_factor_check(callers: CallerSetup, factor: str) -> None:
    jwt = await callers.user_jwt(fac=None)
    await expect_refusal(callers, InvalidToken, credentials_from_client(bearer=jwt, factor=factor), DEFAULT_POLICY)
    caller = await identify_caller(
        callers, credentials_from_client(bearer=jwt, factor=factor, service_jwt=await callers.service_jwt())
    )
    assert caller.by is CallerKind.SERVICE_JWT


async def test_a_factor_of_more_than_any_login_takes_is_no_factor(callers: CallerSetup) -> None:
    jwt = await callers.user_jwt(fac=factor_digest("x" * 1_025, "salt"))
    await expect_refusal(
        callers, InvalidToken, credentials_from_client(bearer=jwt, factor="x" * 1_025), DEFAULT_POLICY
    )


async def test_pa_03_the_header_decides_and_the_body_is_not_looked_at(callers: CallerSetup) -> None:
    mallory = await callers.user_jwt(uid=ROBOT, sub=ROBOT)
    both = credentials_from_client(bearer=await callers.user_jwt(), jwt=mallory, factor=FACTOR)
    assert (await identify_caller(callers, both, DEFAULT_POLICY)).user_id == PERSON
    assert callers.permissions.asked == [(PERSON, {1, APPLICATION})]


@pytest.mark.parametrize(
    "change", [{"rev": REVISION + 1}, {"rev": REVISION - 1}, {"blocked": True}], ids=["later", "earlier", "blocked"]
)
async def test_a_jwt_counts_while_its_account_says_so(callers: CallerSetup, change: dict[str, Any]) -> None:
    credentials = credentials_from_client(bearer=await callers.user_jwt(), factor=FACTOR)
    await identify_caller(callers, credentials, DEFAULT_POLICY)
    callers.change_facts(**change)
    await expect_refusal(callers, InvalidToken, credentials, DEFAULT_POLICY)
    await expect_refusal(callers, InvalidToken, replace(credentials, service_jwt=await callers.service_jwt()))


async def test_a_jwt_of_no_one_is_refused(callers: CallerSetup) -> None:
    del callers.permissions.facts_of[PERSON]
    await expect_refusal(
        callers, InvalidToken, credentials_from_client(bearer=await callers.user_jwt(), factor=FACTOR), DEFAULT_POLICY
    )


async def test_a_remembered_jwt_ends_when_it_ends(callers: CallerSetup) -> None:
    credentials = credentials_from_client(bearer=await callers.user_jwt(exp=NOW + 60), factor=FACTOR)
    await identify_caller(callers, credentials, DEFAULT_POLICY)
    await callers.tokens.clock.advance(59)
    await identify_caller(callers, credentials, DEFAULT_POLICY)
    await callers.tokens.clock.advance(1)
    await expect_refusal(callers, InvalidToken, credentials, DEFAULT_POLICY)


async def test_a_remembered_jwt_is_refused_once_its_key_is_distrusted(callers: CallerSetup) -> None:
    credentials = credentials_from_client(bearer=await callers.user_jwt(), factor=FACTOR)
    await identify_caller(callers, credentials, DEFAULT_POLICY)
    callers.tokens.store.replace_keys(
        replace(key_of(KeyPurpose.TOKENS, Algorithm.RS256), signs_until=NOW, verifies_until=NOW)
    )
    await callers.tokens.keyring.reload()
    await expect_refusal(callers, InvalidToken, credentials, DEFAULT_POLICY)


@pytest.mark.parametrize("reloads", [False, True], ids=["unknown here", "reloaded by another request"])
async def test_key_distrusted_while_the_facts_are_read_is_refused(
    callers: CallerSetup, monkeypatch: pytest.MonkeyPatch, *, reloads: bool
) -> None:
    """It was trusted when the JWT was checked, in the version before."""
    jwt, service_jwt = await callers.user_jwt(), await callers.service_jwt()

    async def distrust_then(read: Callable[..., Awaitable[object]], *asked: object) -> object:
        callers.tokens.store.replace_keys(
            replace(key_of(KeyPurpose.TOKENS, Algorithm.RS256), signs_until=NOW, verifies_until=NOW)
        )
        if reloads:
            await callers.tokens.keyring.reload()
        return await read(*asked)

    for credentials, read, store in (
        (credentials_from_client(bearer=jwt, factor=FACTOR), "facts", callers.permissions),
        (credentials_from_client(service_jwt=service_jwt), "service_token", callers.keys),
    ):
        assert await identify_caller(callers, credentials, ROLES_OF_RECORD_GET)
        with monkeypatch.context() as patch:
            patch.setattr(store, read, partial(distrust_then, getattr(store, read)))
            await expect_refusal(callers, InvalidToken, credentials, ROLES_OF_RECORD_GET)
        callers.tokens.store.replace_keys(key_of(KeyPurpose.TOKENS, Algorithm.RS256))
        await callers.tokens.keyring.reload()


async def test_key_of_a_jwt_is_checked_once_for_each_request(
    callers: CallerSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[tuple[Any, ...]] = []
    find = Keyring.verification_key

    async def count_and_find(keyring: Keyring, *asked: Any) -> OpenedKey | None:
        checked.append(asked)
        return await find(keyring, *asked)

    monkeypatch.setattr(Keyring, "verification_key", count_and_find)
    credentials = credentials_from_client(bearer=await callers.user_jwt(), service_jwt=await callers.service_jwt())
    for requests in (1, 2, 3):
        await identify_caller(callers, credentials)
        assert len(checked) == 2 * requests


async def test_no_service_jwt_is_found_as_a_user_jwt_that_was_verified_before(callers: CallerSetup) -> None:
    user, service = await callers.user_jwt(), await callers.service_jwt()
    await identify_caller(callers, credentials_from_client(bearer=user, service_jwt=service))
    await expect_refusal(callers, InvalidToken, credentials_from_client(bearer=service, service_jwt=service))
    await expect_refusal(callers, InvalidToken, credentials_from_client(bearer=user, service_jwt=user))


# fip and aud


@pytest.mark.parametrize(
    ("fip", "address", "passes"),
    [
        (["198.51.100.0/24"], CLIENT, True),
        (["10.0.0.0/8", "198.51.100.7/32"], CLIENT, True),
        (["10.0.0.0/8"], CLIENT, False),
        (["10.0.0.0/8"], "::ffff:10.1.2.3", True),
        (["198.51.100.7/32"], None, False),
    ],
)
async def test_a_jwt_with_fip_is_good_from_there_only(
    callers: CallerSetup, fip: list[str], address: str | None, *, passes: bool
) -> None:
    seen = None if address is None else parse_address(address)
    credentials = credentials_from_client(bearer=await callers.user_jwt(fip=fip), factor=FACTOR, address=seen)
    if passes:
        assert (await identify_caller(callers, credentials, DEFAULT_POLICY)).user_id == PERSON
    else:
        await expect_refusal(callers, WrongCredentials, credentials, DEFAULT_POLICY)


async def test_beside_a_service_only_a_signed_address_satisfies_fip(callers: CallerSetup) -> None:
    jwt = await callers.user_jwt(fip=[f"{CLIENT}/32"])
    credentials = credentials_from_client(bearer=jwt, service_jwt=await callers.service_jwt())
    await expect_refusal(callers, WrongCredentials, credentials)
    assert (await identify_caller(callers, replace(credentials, signed=RequestSigner().sign()))).user_id == PERSON
    elsewhere = RequestSigner(ip="203.0.113.5").sign()
    await expect_refusal(callers, WrongCredentials, replace(credentials, signed=elsewhere))


@pytest.mark.parametrize("need", [ABOUT_APPLICATION, RECORD_GET, RECORD_SAVE])
async def test_a_jwt_for_one_application_serves_requests_about_that_one(
    callers: CallerSetup, need: CredentialPolicy
) -> None:
    credentials = credentials_from_client(bearer=await callers.user_jwt(aud=str(APPLICATION)), factor=FACTOR)
    assert (await identify_caller(callers, credentials, need)).audience == APPLICATION
    await expect_refusal(callers, WrongCredentials, credentials, need, OTHER)
    await expect_refusal(callers, WrongCredentials, credentials, need, None)


@pytest.mark.parametrize("need", [DEFAULT_POLICY, USER_INFO])
async def test_a_jwt_for_one_application_is_not_taken_elsewhere(callers: CallerSetup, need: CredentialPolicy) -> None:
    credentials = credentials_from_client(bearer=await callers.user_jwt(aud=str(APPLICATION)), factor=FACTOR)
    await expect_refusal(callers, WrongCredentials, credentials, need)


# Service JWTs


@pytest.mark.parametrize("need", ALL_NEEDS)
async def test_a_service_jwt_stands_in_for_the_factor(callers: CallerSetup, need: CredentialPolicy) -> None:
    caller = await identify_caller(
        callers,
        credentials_from_client(bearer=await callers.user_jwt(), service_jwt=await callers.service_jwt()),
        need,
    )
    assert (caller.by, caller.user_id, caller.application_id) == (CallerKind.SERVICE_JWT, PERSON, APPLICATION)
    assert caller.address is None


async def test_pa_07_what_a_service_jwt_vouches_for_is_limited_to_its_application(callers: CallerSetup) -> None:
    credentials = credentials_from_client(bearer=await callers.user_jwt(), service_jwt=await callers.service_jwt())
    assert (await identify_caller(callers, credentials, DEFAULT_POLICY)).vouching_application_id == APPLICATION
    taken = await identify_caller(callers, credentials, about=None)
    assert (taken.application_id, taken.vouching_application_id) == (APPLICATION, APPLICATION)
    assert callers.permissions.asked[-1] == (PERSON, {1, APPLICATION})


@pytest.mark.parametrize("need", [DEFAULT_POLICY, ABOUT_APPLICATION, RECORD_GET, RECORD_SAVE, ROLES_OF_RECORD_GET])
async def test_pa_04_a_service_jwt_of_another_application_is_refused(
    callers: CallerSetup, need: CredentialPolicy
) -> None:
    credentials = credentials_from_client(
        bearer=await callers.user_jwt(), service_jwt=await callers.service_jwt(OTHER)
    )
    await expect_refusal(callers, WrongCredentials, credentials, need)
    await expect_refusal(callers, WrongCredentials, replace(credentials, bearer=""), need)


async def test_any_service_may_ask_for_user_info(callers: CallerSetup) -> None:
    credentials = credentials_from_client(
        bearer=await callers.user_jwt(), service_jwt=await callers.service_jwt(OTHER)
    )
    assert (await identify_caller(callers, credentials, USER_INFO, None)).vouching_application_id is None


async def test_the_service_jwt_of_application_1_serves_everywhere(callers: CallerSetup) -> None:
    credentials = credentials_from_client(bearer=await callers.user_jwt(), service_jwt=await callers.service_jwt(1))
    caller = await identify_caller(callers, credentials, DEFAULT_POLICY)
    assert (caller.by, caller.vouching_application_id, caller.application_id) == (
        CallerKind.SERVICE_JWT,
        None,
        APPLICATION,
    )
    expired = replace(credentials, bearer=await callers.user_jwt(exp=NOW, iat=NOW - 9))
    await expect_refusal(callers, InvalidToken, expired)


async def test_a_factor_beside_a_valid_service_jwt_is_not_looked_at(callers: CallerSetup) -> None:
    credentials = credentials_from_client(
        bearer=await callers.user_jwt(), factor="wrong", service_jwt=await callers.service_jwt()
    )
    assert (await identify_caller(callers, credentials)).by is CallerKind.SERVICE_JWT


@pytest.mark.parametrize(
    "changes",
    [{"exp": NOW}, {"iss": "https://else.example"}, {"aud": str(OTHER)}, {"jti": "unknown"}],
    ids=["expired", "issuer", "audience", "unknown"],
)
async def test_pa_04_a_service_jwt_that_is_not_valid_is_refused_though_the_factor_is_right(
    callers: CallerSetup, changes: dict[str, object]
) -> None:
    service_jwt = await callers.service_jwt(**changes)
    credentials = credentials_from_client(bearer=await callers.user_jwt(), factor=FACTOR, service_jwt=service_jwt)
    await expect_refusal(callers, InvalidToken, credentials)


async def test_pa_04_an_unsigned_revoked_or_removed_service_jwt_is_refused(callers: CallerSetup) -> None:
    jwt = await callers.service_jwt()
    credentials = credentials_from_client(bearer=await callers.user_jwt(), service_jwt=jwt)
    await identify_caller(callers, credentials)
    await expect_refusal(callers, InvalidToken, replace(credentials, service_jwt=jwt.rpartition(".")[0] + "."))
    await expect_refusal(callers, InvalidToken, replace(credentials, service_jwt=await callers.user_jwt()))
    [token] = callers.keys.tokens.values()
    callers.keys.tokens[token.jti] = replace(token, revoked=True)
    await expect_refusal(callers, InvalidToken, credentials)
    callers.keys.tokens[token.jti] = token
    callers.keys.removed.add(APPLICATION)
    await expect_refusal(callers, InvalidToken, credentials)


async def test_an_application_signs_service_jwts_with_its_own_key(callers: CallerSetup) -> None:
    credentials = credentials_from_client(bearer=await callers.user_jwt(), service_jwt=forge(GeneratedServiceClaims))
    caller = await identify_caller(callers, credentials, about=None)
    assert (caller.by, caller.vouching_application_id) == (CallerKind.SERVICE_JWT, APPLICATION)
    await expect_refusal(callers, WrongCredentials, credentials, about=OTHER)


async def test_a_user_jwt_is_needed_beside_a_service_jwt_but_for_roles(callers: CallerSetup) -> None:
    alone = credentials_from_client(service_jwt=await callers.service_jwt())
    for need in (DEFAULT_POLICY, ABOUT_APPLICATION, USER_INFO, RECORD_GET, RECORD_SAVE, EXCHANGE_JWT):
        await expect_refusal(callers, InvalidToken, alone, need)
    caller = await identify_caller(callers, alone, ROLES_OF_RECORD_GET, None)
    assert (caller.by, caller.facts, caller.user_id) == (CallerKind.SERVICE_JWT, None, "")
    assert (caller.vouching_application_id, caller.name) == (APPLICATION, f"application {APPLICATION}")
    await expect_refusal(callers, InvalidToken, credentials_from_client(), ROLES_OF_RECORD_GET)


# Expired user JWTs

GRACE = 30 * DAY


@pytest.mark.parametrize("past", [0, 1, GRACE - 1])
@pytest.mark.parametrize("need", [RECORD_GET, RECORD_SAVE, ROLES_OF_RECORD_GET])
async def test_pa_05_within_the_grace_an_expired_jwt_names_its_user_to_a_service(
    callers: CallerSetup, need: CredentialPolicy, past: int
) -> None:
    jwt = await callers.user_jwt(iat=NOW - GRACE - 9, exp=NOW - past)
    credentials = credentials_from_client(bearer=jwt, service_jwt=await callers.service_jwt())
    assert (await identify_caller(callers, credentials, need)).expired
    again = await identify_caller(callers, credentials, need)  # from the cache
    assert (again.user_id, again.expired) == (PERSON, True)


async def test_pa_05_an_access_key_lets_an_expired_jwt_read_only(callers: CallerSetup) -> None:
    jwt = await callers.user_jwt(iat=NOW - 9, exp=NOW - 1)
    assert (await identify_caller(callers, credentials_from_client(bearer=KEY, jwt=jwt))).expired
    await expect_refusal(callers, WrongCredentials, credentials_from_client(bearer=KEY, jwt=jwt), RECORD_SAVE)
    await expect_refusal(callers, InvalidToken, credentials_from_client(bearer=KEY, jwt=jwt), EXCHANGE_JWT)
    signed = credentials_from_client(bearer=jwt, signed=RequestSigner().sign())
    assert (await identify_caller(callers, signed)).expired
    await expect_refusal(callers, InvalidToken, signed, RECORD_SAVE)


@pytest.mark.parametrize("need", [DEFAULT_POLICY, ABOUT_APPLICATION, USER_INFO])
async def test_pa_05_elsewhere_an_expired_jwt_is_refused(callers: CallerSetup, need: CredentialPolicy) -> None:
    jwt = await callers.user_jwt(iat=NOW - 9, exp=NOW)
    await expect_refusal(
        callers, InvalidToken, credentials_from_client(bearer=jwt, service_jwt=await callers.service_jwt()), need
    )
    await expect_refusal(callers, InvalidToken, credentials_from_client(bearer=jwt, factor=FACTOR), need)


async def test_pa_05_after_the_grace_and_without_a_service_an_expired_jwt_is_refused(callers: CallerSetup) -> None:
    service_jwt = await callers.service_jwt()
    too_old = await callers.user_jwt(iat=NOW - GRACE - 9, exp=NOW - GRACE)
    await expect_refusal(callers, InvalidToken, credentials_from_client(bearer=too_old, service_jwt=service_jwt))
    await expect_refusal(callers, InvalidToken, credentials_from_client(bearer=KEY, jwt=too_old))
    within = await callers.user_jwt(iat=NOW - 9, exp=NOW)
    await identify_caller(
        callers, credentials_from_client(bearer=within, service_jwt=service_jwt)
    )  # now it is cached
    await expect_refusal(callers, InvalidToken, credentials_from_client(bearer=within, factor=FACTOR))
    callers.change_facts(blocked=True)
    await expect_refusal(callers, InvalidToken, credentials_from_client(bearer=within, service_jwt=service_jwt))


# Access keys


async def test_pa_08_an_access_key_reads_records_of_its_own_application(callers: CallerSetup) -> None:
    caller = await identify_caller(callers, credentials_from_client(bearer=KEY, jwt=await callers.user_jwt()))
    assert (caller.by, caller.vouching_application_id, caller.user_id) == (CallerKind.ACCESS_KEY, APPLICATION, PERSON)
    assert caller.address is None
    alone = await identify_caller(callers, credentials_from_client(bearer=KEY), ROLES_OF_RECORD_GET, None)
    assert (alone.by, alone.application_id, alone.facts) == (CallerKind.ACCESS_KEY, APPLICATION, None)
    await expect_refusal(callers, InvalidToken, credentials_from_client(bearer=KEY), RECORD_GET)


@pytest.mark.parametrize("need", WITHOUT_KEYS)
async def test_pa_08_an_access_key_opens_nothing_else(callers: CallerSetup, need: CredentialPolicy) -> None:
    jwt = await callers.user_jwt()
    await expect_refusal(callers, WrongCredentials, credentials_from_client(bearer=KEY), need)
    await expect_refusal(callers, WrongCredentials, credentials_from_client(bearer=KEY, jwt=jwt), need)
    await expect_refusal(callers, WrongCredentials, credentials_from_client(bearer=KEY, jwt=jwt, factor=FACTOR), need)


@pytest.mark.parametrize("need", [RECORD_GET, ROLES_OF_RECORD_GET, EXCHANGE_JWT])
async def test_pa_08_the_key_of_another_application_is_refused(callers: CallerSetup, need: CredentialPolicy) -> None:
    credentials = credentials_from_client(bearer=OTHER_KEY, jwt=await callers.user_jwt())
    await expect_refusal(callers, WrongCredentials, credentials, need)
    mixed = replace(credentials, service_jwt=await callers.service_jwt())
    await expect_refusal(callers, WrongCredentials, mixed, need)


@pytest.mark.parametrize("need", [*ALL_NEEDS, EXCHANGE_JWT])
@pytest.mark.parametrize("value", ["c3" * 32, KEY.upper(), KEY[:-1], f"{KEY}0", "0"])
async def test_an_unknown_key_is_refused_and_counted(
    callers: CallerSetup, need: CredentialPolicy, value: str
) -> None:
    credentials = credentials_from_client(bearer=value, jwt=await callers.user_jwt(), factor=FACTOR)
    await expect_refusal(callers, InvalidToken, credentials, need)
    assert callers.attempts.counted == 1


async def test_a_wrong_factor_beside_a_key_is_refused(callers: CallerSetup) -> None:
    credentials = credentials_from_client(bearer=KEY, jwt=await callers.user_jwt(), factor="wrong")
    await expect_refusal(callers, InvalidToken, credentials)
    assert (await identify_caller(callers, replace(credentials, factor=FACTOR))).by is CallerKind.ACCESS_KEY


async def test_ak_09_a_key_of_a_removed_application_is_refused(callers: CallerSetup) -> None:
    credentials = credentials_from_client(bearer=KEY, jwt=await callers.user_jwt())
    signed = credentials_from_client(bearer=await callers.user_jwt(), signed=RequestSigner().sign())
    await identify_caller(callers, credentials)
    await identify_caller(callers, signed)
    callers.keys.removed.add(APPLICATION)
    await expect_refusal(callers, InvalidToken, credentials)
    await expect_refusal(callers, InvalidToken, signed)


async def test_ak_07_the_use_of_a_key_is_noted_at_most_once_a_minute(callers: CallerSetup) -> None:
    credentials = credentials_from_client(bearer=KEY, jwt=await callers.user_jwt())
    [key, _] = callers.keys.keys
    for _ in range(5):
        await identify_caller(callers, credentials)
    assert callers.keys.uses == [(key.key_id, NOW)]
    await callers.tokens.clock.advance(59)
    await identify_caller(callers, credentials)
    assert len(callers.keys.uses) == 1
    await callers.tokens.clock.advance(1)
    await identify_caller(callers, credentials)
    assert callers.keys.uses == [(key.key_id, NOW), (key.key_id, NOW + 60)]
    assert callers.keys.keys[0].last_used == NOW + 60


async def test_ak_07_requests_that_read_the_key_before_its_use_was_noted_do_not_note_it_again(
    callers: CallerSetup,
) -> None:
    credentials = credentials_from_client(bearer=KEY, jwt=await callers.user_jwt())
    unused = callers.keys.keys[0]
    for _ in range(5):
        await identify_caller(callers, credentials)
        callers.keys.keys[0] = unused
    assert len(callers.keys.uses) == 1


async def test_two_applications_do_not_vouch_for_one_request(callers: CallerSetup) -> None:
    key_and_jwt = credentials_from_client(
        bearer=KEY, jwt=await callers.user_jwt(), service_jwt=await callers.service_jwt(OTHER)
    )
    for about in (APPLICATION, OTHER, None):
        await expect_refusal(callers, WrongCredentials, key_and_jwt, about=about)
    others = RequestSigner(key=OTHER_KEY, application_id=str(OTHER)).sign()
    key_and_signature = credentials_from_client(bearer=KEY, jwt=await callers.user_jwt(), signed=others)
    for about in (APPLICATION, OTHER, None):
        await expect_refusal(callers, WrongCredentials, key_and_signature, about=about)


async def test_a_refused_request_is_no_use_of_a_key(callers: CallerSetup) -> None:
    await expect_refusal(callers, InvalidToken, credentials_from_client(bearer=KEY, jwt="a.b.c"))
    assert callers.keys.uses == []


# Signature


async def test_a_signature_tells_the_clients_address(callers: CallerSetup) -> None:
    signed = RequestSigner(ip="203.0.113.9").sign()
    caller = await identify_caller(
        callers, credentials_from_client(bearer=await callers.user_jwt(), signed=signed), about=None
    )
    assert (caller.by, caller.vouching_application_id, str(caller.address)) == (
        CallerKind.SIGNATURE,
        APPLICATION,
        "203.0.113.9",
    )
    assert len(callers.keys.uses) == 1
    beside = credentials_from_client(
        bearer=await callers.user_jwt(), signed=signed, service_jwt=await callers.service_jwt()
    )
    caller = await identify_caller(callers, beside, RECORD_SAVE)
    assert (caller.by, str(caller.address)) == (CallerKind.SERVICE_JWT, "203.0.113.9")
    with_factor = credentials_from_client(bearer=await callers.user_jwt(), signed=signed, factor=FACTOR)
    caller = await identify_caller(callers, with_factor, ABOUT_APPLICATION)
    assert (caller.by, caller.vouching_application_id, str(caller.address)) == (
        CallerKind.FACTOR,
        APPLICATION,
        "203.0.113.9",
    )


async def test_either_live_key_may_sign_and_case_of_the_digits_does_not_matter(callers: CallerSetup) -> None:
    second = replace(callers.keys.keys[1], application_id=APPLICATION)
    callers.keys.keys[1] = second
    signed = RequestSigner(key=OTHER_KEY).sign()
    jwt = await callers.user_jwt()
    assert (
        await identify_caller(callers, credentials_from_client(bearer=jwt, signed=signed))
    ).by is CallerKind.SIGNATURE
    upper = replace(signed, signature=signed.signature.upper())
    assert (
        await identify_caller(callers, credentials_from_client(bearer=jwt, signed=upper))
    ).by is CallerKind.SIGNATURE
    assert callers.keys.uses == [(second.key_id, NOW)]


@pytest.mark.parametrize(
    "changed",
    [
        {"ip": "203.0.113.6", "body": b'{"ip":"203.0.113.6","ts":1800000000}'},
        {"method": "GET"},
        {"path": b"/api/permissions/user/info"},
        {"query": b"ip=203.0.113.6"},
        {"body": b""},
        {"signature": ""},
        {"signature": "00" * 32},
        {"signature": "\xe4" * 64},
        {"ip": ""},
        {"ip": "localhost"},
        {"application_id": ""},
        {"application_id": str(OTHER)},
        {"application_id": f"0{APPLICATION}"},
        {"application_id": "9" * 30},
    ],
)
async def test_pa_09_a_signature_over_anything_else_is_none(callers: CallerSetup, changed: dict[str, Any]) -> None:
    credentials = credentials_from_client(
        bearer=await callers.user_jwt(), factor=FACTOR, signed=RequestSigner(tampered=changed).sign()
    )
    await expect_refusal(callers, InvalidToken, credentials)


@pytest.mark.parametrize(("ts", "passes"), [(-61, False), (-60, True), (60, True), (61, False)])
async def test_pa_09_a_signature_of_another_time_is_none(callers: CallerSetup, ts: int, *, passes: bool) -> None:
    credentials = credentials_from_client(bearer=await callers.user_jwt(), signed=RequestSigner(ts=NOW + ts).sign())
    if passes:
        assert (await identify_caller(callers, credentials)).by is CallerKind.SIGNATURE
    else:
        await expect_refusal(callers, InvalidToken, credentials)


async def test_pa_09_a_signature_by_another_applications_key_is_none(callers: CallerSetup) -> None:
    jwt = await callers.user_jwt()
    await expect_refusal(
        callers, InvalidToken, credentials_from_client(bearer=jwt, signed=RequestSigner(key=OTHER_KEY).sign())
    )
    others = RequestSigner(key=OTHER_KEY, application_id=str(OTHER)).sign()
    await expect_refusal(callers, WrongCredentials, credentials_from_client(bearer=jwt, signed=others))
    await expect_refusal(callers, WrongCredentials, credentials_from_client(bearer=jwt, factor=FACTOR, signed=others))
    await expect_refusal(
        callers,
        WrongCredentials,
        credentials_from_client(bearer=jwt, service_jwt=await callers.service_jwt(), signed=others),
    )


@pytest.mark.parametrize("need", [DEFAULT_POLICY, USER_INFO])
async def test_a_signature_says_nothing_about_requests_that_are_not_about_its_application(
    callers: CallerSetup, need: CredentialPolicy
) -> None:
    credentials = credentials_from_client(
        bearer=await callers.user_jwt(), factor=FACTOR, signed=RequestSigner().sign()
    )
    await expect_refusal(callers, WrongCredentials, credentials, need)


async def test_a_signature_alone_saves_nothing(callers: CallerSetup) -> None:
    credentials = credentials_from_client(bearer=await callers.user_jwt(), signed=RequestSigner().sign())
    await expect_refusal(callers, WrongCredentials, credentials, RECORD_SAVE)
    await expect_refusal(callers, WrongCredentials, credentials, ABOUT_APPLICATION)


async def test_application_1_does_not_sign_addresses_for_others(callers: CallerSetup) -> None:
    callers.keys.keys[1] = replace(callers.keys.keys[1], application_id=1)
    signed = RequestSigner(key=OTHER_KEY, application_id="1").sign()
    credentials = credentials_from_client(
        bearer=await callers.user_jwt(), signed=signed, service_jwt=await callers.service_jwt(1)
    )
    await expect_refusal(callers, WrongCredentials, credentials)


# Service accounts


async def test_a_service_account_needs_no_factor(callers: CallerSetup) -> None:
    caller = await identify_caller(callers, credentials_from_client(bearer=await callers.robot_jwt()), DEFAULT_POLICY)
    assert (caller.by, caller.user_id, caller.vouching_application_id) == (CallerKind.SERVICE_ACCOUNT, ROBOT, None)
    assert str(caller.address) == CLIENT
    await expect_refusal(
        callers,
        InvalidToken,
        credentials_from_client(bearer=await callers.robot_jwt(), factor=FACTOR),
        DEFAULT_POLICY,
    )
    await expect_refusal(
        callers, InvalidToken, credentials_from_client(bearer=KEY, jwt=await callers.robot_jwt()), EXCHANGE_JWT
    )


@pytest.mark.parametrize(
    "change",
    [
        {"service_account": a_robot(revoked=True)},
        {"service_account": a_robot(jti="a newer one")},
        {"service_account": a_robot(project_id="gone")},
        {"service_account": None},
        {"blocked": True},
        {"rev": REVISION + 1},
    ],
    ids=["revoked", "newer", "no project", "none", "blocked", "rev"],
)
async def test_a_service_account_counts_while_it_is_one(callers: CallerSetup, change: dict[str, Any]) -> None:
    callers.change_facts(ROBOT, **change)
    await expect_refusal(
        callers, InvalidToken, credentials_from_client(bearer=await callers.robot_jwt()), DEFAULT_POLICY
    )


async def test_a_service_account_is_refused_the_moment_its_project_is_removed(callers: CallerSetup) -> None:
    credentials = credentials_from_client(bearer=await callers.robot_jwt())
    await identify_caller(callers, credentials, DEFAULT_POLICY)
    await identify_caller(callers, credentials, DEFAULT_POLICY)
    assert callers.permissions.projects_read == 1
    callers.permissions.stored_projects["mind_games"] = a_project("mind_games", removed=True)
    callers.permissions.version += 1
    await expect_refusal(callers, InvalidToken, credentials, DEFAULT_POLICY)


async def test_a_service_account_calls_from_its_networks_only(callers: CallerSetup) -> None:
    jwt = await callers.robot_jwt()
    callers.change_facts(ROBOT, service_account=a_robot(ip_ranges=("10.0.0.0/8",)))
    await expect_refusal(callers, WrongCredentials, credentials_from_client(bearer=jwt), DEFAULT_POLICY)
    await identify_caller(
        callers, credentials_from_client(bearer=jwt, address=parse_address("10.9.8.7")), DEFAULT_POLICY
    )
    narrower = await callers.robot_jwt(fip=["10.1.0.0/16"])
    await expect_refusal(
        callers,
        WrongCredentials,
        credentials_from_client(bearer=narrower, address=parse_address("10.9.8.7")),
        DEFAULT_POLICY,
    )
    await identify_caller(
        callers, credentials_from_client(bearer=narrower, address=parse_address("10.1.8.7")), DEFAULT_POLICY
    )


async def test_service_account_with_a_registered_key_must_sign_each_request(callers: CallerSetup) -> None:
    private = application_private_key()
    callers.change_facts(ROBOT, service_account=a_robot(public_key=public_pem(private.public_key())))
    signature = private.sign(b'{"a":1}', PKCS1v15(), SHA256())
    credentials = credentials_from_client(bearer=await callers.robot_jwt(), body=b'{"a":1}')
    for encoded in (b64encode(signature), urlsafe_b64encode(signature), b64encode(signature).rstrip(b"=")):
        await identify_caller(callers, replace(credentials, request_sign=encoded.decode()), DEFAULT_POLICY)
    right = b64encode(signature).decode()
    await expect_refusal(callers, InvalidToken, credentials, DEFAULT_POLICY)
    await expect_refusal(callers, InvalidToken, replace(credentials, request_sign="!"), DEFAULT_POLICY)
    await expect_refusal(
        callers, InvalidToken, replace(credentials, request_sign=right, body=b'{"a":2}'), DEFAULT_POLICY
    )


async def test_a_user_jwt_never_stands_in_for_a_service_accounts(callers: CallerSetup) -> None:
    jwt = await callers.user_jwt(uid=ROBOT, sub=ROBOT)
    await expect_refusal(callers, InvalidToken, credentials_from_client(bearer=jwt, factor=FACTOR), DEFAULT_POLICY)
    ours = await callers.robot_jwt(uid=PERSON, sub=PERSON)
    await expect_refusal(callers, InvalidToken, credentials_from_client(bearer=ours), DEFAULT_POLICY)


# Exchanged JWTs


async def test_an_exchanged_jwt_reads_beside_a_service_and_asks_for_user_info(callers: CallerSetup) -> None:
    jwt = await callers.exchanged_jwt()
    for credentials in (
        credentials_from_client(bearer=jwt, service_jwt=await callers.service_jwt()),
        credentials_from_client(bearer=KEY, jwt=jwt),
    ):
        caller = await identify_caller(callers, credentials)
        assert (caller.by, caller.user_id, caller.vouching_application_id) == (
            CallerKind.EXCHANGED,
            PERSON,
            APPLICATION,
        )
    assert (
        await identify_caller(callers, credentials_from_client(bearer=jwt), USER_INFO, None)
    ).by is CallerKind.EXCHANGED


async def test_an_exchanged_jwt_does_nothing_else(callers: CallerSetup) -> None:
    jwt, service_jwt = await callers.exchanged_jwt(), await callers.service_jwt()
    await expect_refusal(callers, WrongCredentials, credentials_from_client(bearer=jwt))
    for need in (DEFAULT_POLICY, ABOUT_APPLICATION, RECORD_SAVE):
        await expect_refusal(
            callers, WrongCredentials, credentials_from_client(bearer=jwt, service_jwt=service_jwt), need
        )
    await expect_refusal(callers, WrongCredentials, credentials_from_client(bearer=KEY, jwt=jwt), EXCHANGE_JWT)
    await expect_refusal(callers, InvalidToken, credentials_from_client(bearer=jwt, factor=FACTOR), USER_INFO, None)
    expired = await callers.exchanged_jwt(iat=NOW - 9, exp=NOW)
    await expect_refusal(callers, InvalidToken, credentials_from_client(bearer=expired, service_jwt=service_jwt))


async def test_an_exchanged_jwt_dies_with_its_grant(callers: CallerSetup) -> None:
    credentials = credentials_from_client(
        bearer=await callers.exchanged_jwt(), service_jwt=await callers.service_jwt()
    )
    await identify_caller(callers, credentials)
    callers.grants.live.clear()
    await expect_refusal(callers, InvalidToken, credentials)


# Volume


async def test_pa_15_one_principals_flood_is_limited_and_others_are_served() -> None:
    async with caller_setup(per_minute=3) as callers:
        flood = credentials_from_client(bearer=await callers.user_jwt(), factor=FACTOR)
        for _ in range(3):
            await identify_caller(callers, flood, DEFAULT_POLICY)
        elsewhere = replace(flood, address=parse_address("203.0.113.77"), source="203.0.113.77")
        with pytest.raises(TooMany) as error:
            await identify_caller(callers, elsewhere, DEFAULT_POLICY)
        assert error.value.retry_after > 0
        await expect_refusal(callers, InvalidToken, replace(flood, factor="wrong"), DEFAULT_POLICY)
        await identify_caller(callers, credentials_from_client(bearer=await callers.robot_jwt()), DEFAULT_POLICY)
        await callers.tokens.clock.advance(error.value.retry_after)
        await identify_caller(callers, flood, DEFAULT_POLICY)


def test_credentials_do_not_show_themselves() -> None:
    secret = "s" * 20
    credentials = credentials_from_client(
        bearer=secret, jwt=secret, factor=secret, service_jwt=secret, request_sign=secret
    )
    signed = RequestSigner(tampered={"signature": secret, "body": secret.encode(), "query": secret.encode()}).sign()
    assert secret not in repr(replace(credentials, signed=signed, body=secret.encode()))
