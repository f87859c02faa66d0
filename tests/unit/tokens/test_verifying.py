import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws
from joserfc.jwk import RSAKey

from gatehouse.keys.model import Algorithm
from gatehouse.tokens.claims import (
    Claims,
    ExpiredToken,
    GeneratedServiceClaims,
    IdClaims,
    InvalidToken,
    OidcIdClaims,
    RefreshClaims,
    StaticServiceClaims,
    UserJwtClaims,
)
from gatehouse.tokens.verifier import parse_jws
from tests.support.keys import NOW, first_keys
from tests.support.tokens import (
    CLASSES,
    TokenSetup,
    application_private_key,
    example_claims,
    forge,
    header_for,
    payload_for,
)


async def signed_token(tokens: TokenSetup, kind: type[Claims]) -> str:
    return forge(kind) if kind is GeneratedServiceClaims else await tokens.signer.sign(example_claims(kind))


@pytest.mark.parametrize("kind", CLASSES)
async def test_signed_token_verifies_with_the_same_claims(kind: type[Claims], tokens: TokenSetup) -> None:
    claims = await tokens.verifier.verify(await signed_token(tokens, kind), kind)
    assert claims == example_claims(kind, kid=claims.kid)


@pytest.mark.parametrize("alg", Algorithm)
async def test_id_tokens_are_verified_in_every_algorithm(alg: Algorithm, tokens: TokenSetup) -> None:
    token = await tokens.signer.sign(example_claims(IdClaims), alg=alg)
    assert (await tokens.verifier.verify(token, IdClaims)).sub == "1234567890"


async def test_the_kid_may_stand_in_the_payload_alone(tokens: TokenSetup) -> None:
    header = {"alg": "RS256"}
    await tokens.verifier.verify(forge(UserJwtClaims, header=header), UserJwtClaims)
    await tokens.verifier.verify(forge(GeneratedServiceClaims, header=header), GeneratedServiceClaims)


@pytest.mark.parametrize("kind", CLASSES)
async def test_two_different_kids_are_refused(kind: type[Claims], tokens: TokenSetup) -> None:
    """Even when both are trusted for the class."""
    for kid in ("other", *(key.kid for key in first_keys())):
        payload = payload_for(kind) | {"kid": kid}
        if kid != header_for(kind)["kid"]:
            with pytest.raises(InvalidToken):
                await tokens.verifier.verify(forge(kind, payload=payload), kind)


async def test_a_service_jwt_is_told_by_its_issuer(tokens: TokenSetup) -> None:
    for kind in (GeneratedServiceClaims, StaticServiceClaims):
        assert isinstance(await tokens.verifier.verify_service_jwt(await signed_token(tokens, kind)), kind)
    with pytest.raises(InvalidToken):
        await tokens.verifier.verify_service_jwt(await signed_token(tokens, UserJwtClaims))


async def test_a_service_jwt_made_by_another_library_is_accepted_with_members_of_its_own(tokens: TokenSetup) -> None:
    payload = payload_for(GeneratedServiceClaims) | {"jti": "x", "nbf": NOW, "sub": "backend", "env": ["prod"]}
    key = RSAKey.import_key(application_private_key())
    token = jws.serialize_compact(header_for(GeneratedServiceClaims), json.dumps(payload), key)
    claims = await tokens.verifier.verify_service_jwt(token)
    assert claims.iss == "50001"


async def test_a_service_jwt_of_an_application_lives_five_minutes_at_most(tokens: TokenSetup) -> None:
    payload = payload_for(GeneratedServiceClaims) | {"exp": NOW + 301}
    with pytest.raises(InvalidToken):
        await tokens.verifier.verify(forge(GeneratedServiceClaims, payload=payload), GeneratedServiceClaims)


async def test_an_expired_user_jwt_counts_for_as_long_as_the_caller_says(tokens: TokenSetup) -> None:
    token = await tokens.signer.sign(example_claims(UserJwtClaims))
    await tokens.clock.advance(300 + 99)
    await tokens.verifier.verify(token, UserJwtClaims, expiry_grace=100)
    await tokens.clock.advance(1)
    with pytest.raises(ExpiredToken):
        await tokens.verifier.verify(token, UserJwtClaims, expiry_grace=100)


async def test_a_token_of_another_issuer_is_refused_even_with_our_signature(tokens: TokenSetup) -> None:
    for kind in CLASSES:
        payload = payload_for(kind) | {"iss": "50002" if kind is GeneratedServiceClaims else "https://sso.example/"}
        with pytest.raises(InvalidToken):
            await tokens.verifier.verify(forge(kind, payload=payload), kind)


@pytest.mark.parametrize(
    "aud", [["https://sso.example"], ["web", "https://sso.example"], ["https://sso.example", "app"]]
)
async def test_id_and_refresh_tokens_name_the_service_and_their_client(aud: list[str], tokens: TokenSetup) -> None:
    for kind in (IdClaims, RefreshClaims):
        with pytest.raises(InvalidToken):
            await tokens.verifier.verify(forge(kind, payload=payload_for(kind) | {"aud": aud}), kind)


@pytest.mark.parametrize("kind", [IdClaims, OidcIdClaims])
async def test_id_token_of_either_profile_is_a_hint_at_any_age(
    kind: type[IdClaims | OidcIdClaims], tokens: TokenSetup
) -> None:
    token = await tokens.signer.sign(example_claims(kind))
    await tokens.clock.advance(365 * 86_400)
    hint = await tokens.verifier.verify_id_token_hint(token)
    assert (hint.sub, hint.client_id) == ("1234567890", "web")
    with pytest.raises(InvalidToken):
        await tokens.verifier.verify_id_token_hint(await tokens.signer.sign(example_claims(UserJwtClaims, aud="7")))


async def test_a_service_jwt_made_for_someone_outside_is_not_accepted_back(tokens: TokenSetup) -> None:
    payload = payload_for(StaticServiceClaims) | {"aud": "https://shop.example"}
    with pytest.raises(InvalidToken):
        await tokens.verifier.verify_service_jwt(forge(StaticServiceClaims, payload=payload))


@given(st.text(max_size=60))
def test_no_text_raises_anything_but_invalid_token(text: str) -> None:
    with pytest.raises(InvalidToken):
        parse_jws(text)


@given(st.binary(max_size=80), st.binary(max_size=80))
def test_no_header_or_payload_raises_anything_but_invalid_token(header: bytes, payload: bytes) -> None:
    with pytest.raises(InvalidToken):
        parse_jws(forge(RefreshClaims, header=header, payload=payload))
