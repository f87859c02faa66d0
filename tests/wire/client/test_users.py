"""The client's verification of users, against the running service (R2)."""

import pytest

from gatehouse.client import Denied, Unauthenticated, Unavailable
from gatehouse.keys.model import Algorithm, KeyLine, KeyPurpose
from gatehouse.keys.rotation import RotationMode
from gatehouse.tokens.claims import IdClaims, OidcIdClaims, UserJwtClaims
from tests.support.builders import ORIGIN
from tests.support.studio import FACTOR
from tests.support.tokens import example_claims
from tests.wire.client.conftest import ClientShop

RSA = KeyLine(KeyPurpose.TOKENS, Algorithm.RS256)
DAY = 86_400
THROTTLE = 5  # seconds between two fetches for an unknown key


async def test_a_user_is_who_the_jwt_says(shop: ClientShop) -> None:
    user = await shop.client().user(shop.studio.other_user.jwt, address="::ffff:192.0.2.7")
    assert (user.user_id, user.nick, user.auth, user.has_factor) == (
        shop.studio.other_user.user_id,
        "Anna",
        "login",
        False,
    )
    assert user.address == "192.0.2.7"
    assert shop.studio.other_user.jwt not in repr(user)


async def test_a_jwt_is_over_at_its_end(shop: ClientShop) -> None:
    gatehouse, clock = shop.client(), shop.studio.service.clock
    await clock.advance(90 * DAY - 1)
    await gatehouse.user(shop.studio.other_user.jwt)
    await clock.advance(1)
    with pytest.raises(Unauthenticated, match="expired"):
        await gatehouse.user(shop.studio.other_user.jwt)


async def test_a_wrong_signature_is_refused(shop: ClientShop) -> None:
    message, _, _ = shop.studio.other_user.jwt.rpartition(".")
    _, _, signature = shop.studio.owner.jwt.rpartition(".")
    with pytest.raises(Unauthenticated, match="signature"):
        await shop.client().user(f"{message}.{signature}")


@pytest.mark.parametrize("kind", [UserJwtClaims, IdClaims, OidcIdClaims])
async def test_another_issuer_or_class_is_refused_though_the_key_is_right(
    shop: ClientShop, kind: type[UserJwtClaims | IdClaims | OidcIdClaims]
) -> None:
    services, now = shop.studio.service.services, shop.studio.service.clock.now()
    issuer = "https://else.example" if kind is UserJwtClaims else services.settings.server.base_url
    token = await services.keys.signer.sign(example_claims(kind, iss=issuer, iat=now, exp=now + 300))
    with pytest.raises(Unauthenticated, match="issuer" if kind is UserJwtClaims else "type"):
        await shop.client().user(token)


async def test_a_factor_that_is_shown_must_be_the_right_one(shop: ClientShop) -> None:
    jwt = shop.studio.other_user.jwt
    assert (await shop.client().user(jwt, factor=FACTOR)).has_factor
    for wrong in ("", "of another device", "x" * 5_000):
        with pytest.raises(Unauthenticated):
            await shop.client().user(jwt, factor=wrong)
    with pytest.raises(Unauthenticated):
        await shop.client(needs_factor=True).user(jwt)
    assert await shop.client(needs_factor=True).user(jwt, factor=FACTOR)


async def test_a_jwt_of_fixed_addresses_is_good_from_there_only(shop: ClientShop) -> None:
    jwt = await shop.jwt(shop.studio.other_user, fixed_ips=["10.0.0.0/8"])
    gatehouse = shop.client()
    user = await gatehouse.user(jwt, address="10.1.2.3")
    assert not await gatehouse.allows(user, "user.kick")  # the service agrees that they exist
    for address in ("11.1.2.3", "::1", "nonsense", "", None):
        with pytest.raises(Denied):
            await gatehouse.user(jwt, address=address)


async def test_a_jwt_for_one_application_is_good_there_only(shop: ClientShop) -> None:
    request_body = {"jwt": shop.studio.other_user.jwt, "factor": FACTOR}
    body = await shop.studio.expect_ok("exchangeJwt", request_body, {"Authorization": f"Bearer {shop.key}"})
    gatehouse = shop.client()
    user = await gatehouse.user(body["jwt"], factor=FACTOR)
    assert not await gatehouse.allows(user, "user.kick")
    with pytest.raises(Denied):
        await shop.client(application_id=shop.studio.other.application_id).user(body["jwt"])


async def test_a_new_key_is_found_when_the_first_token_names_it_and_the_old_one_stays(shop: ClientShop) -> None:
    gatehouse, services = shop.client(), shop.studio.service.services
    old = shop.studio.other_user.jwt
    await gatehouse.user(old)
    await services.keys.rotation.rotate(RSA, origin=ORIGIN, mode=RotationMode.AT_ONCE)
    await services.keys.keyring.reload()
    new = await shop.jwt(shop.studio.other_user)
    with pytest.raises(Unauthenticated):
        await gatehouse.user(new)  # it fetched recently, and does not fetch for every made-up key
    await shop.studio.service.clock.advance(THROTTLE)
    for jwt in (new, old):
        assert (await gatehouse.user(jwt)).user_id == shop.studio.other_user.user_id
    assert shop.transport.statuses_from("keys") == [200, 200]


async def test_a_key_that_is_distrusted_is_forgotten_with_the_next_look(shop: ClientShop) -> None:
    gatehouse, services, clock = shop.client(), shop.studio.service.services, shop.studio.service.clock
    await gatehouse.user(shop.studio.other_user.jwt)
    await services.keys.rotation.rotate(RSA, origin=ORIGIN, mode=RotationMode.DISTRUST)
    await services.keys.keyring.reload()
    await clock.advance(300)
    with pytest.raises(Unauthenticated):
        await gatehouse.user(shop.studio.other_user.jwt)


async def test_keys_are_kept_while_the_service_is_silent(shop: ClientShop) -> None:
    gatehouse, clock = shop.client(), shop.studio.service.clock
    shop.transport.is_disconnected = True
    with pytest.raises(Unavailable):
        await gatehouse.user(shop.studio.other_user.jwt)
    shop.transport.is_disconnected = False
    await clock.advance(THROTTLE)
    await gatehouse.user(shop.studio.other_user.jwt)
    shop.transport.is_disconnected = True
    await clock.advance(DAY)
    assert await gatehouse.user(shop.studio.other_user.jwt)
