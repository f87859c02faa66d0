import json

import pytest
from joserfc import jws
from joserfc.jwk import KeySet

from gatehouse.audit.model import AuditOrigin
from gatehouse.keys.encoding import decode_base64url
from gatehouse.keys.jwks import jwks_document
from gatehouse.keys.model import Algorithm, KeyPurpose, NoSigningKey
from gatehouse.keys.rotation import KeyRotation, RotationMode, RotationPolicy
from gatehouse.tokens.claims import (
    Claims,
    GeneratedServiceClaims,
    IdClaims,
    InvalidToken,
    RefreshClaims,
    UserJwtClaims,
)
from tests.support.builders import RECORDER
from tests.support.keys import first_keys, key_of, master_keys
from tests.support.tokens import CLASSES, TokenSetup, example_claims, kid_for, payload_for

OURS = [kind for kind in CLASSES if kind is not GeneratedServiceClaims]


ADMIN = AuditOrigin(actor="admin")


def a_rotation(tokens: TokenSetup, policy: RotationPolicy) -> KeyRotation:
    return KeyRotation(
        store=tokens.store, masters=master_keys(), recorder=RECORDER, clock=tokens.clock, policy=policy
    )


def parts(token: str) -> list[dict[str, object]]:
    return [json.loads(decode_base64url(part.encode())) for part in token.split(".")[:2]]


@pytest.mark.parametrize("kind", OURS)
async def test_the_header_says_alg_kid_and_typ_and_the_payload_repeats_kid(
    kind: type[Claims], tokens: TokenSetup
) -> None:
    header, payload = parts(await tokens.signer.sign(example_claims(kind)))
    assert header == {"alg": str(kind.algs[0]), "kid": kid_for(kind), "typ": "JWT"}
    assert payload == payload_for(kind)


@pytest.mark.parametrize("alg", Algorithm)
@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
async def test_another_library_accepts_the_signature(alg: Algorithm, tokens: TokenSetup) -> None:
    token = await tokens.signer.sign(example_claims(IdClaims), alg=alg)
    published = [key for key in first_keys() if key.purpose is KeyPurpose.TOKENS]
    keys = KeySet.import_key_set(json.loads(jwks_document(published).body))
    assert jws.deserialize_compact(token, keys, algorithms=[alg]).headers()["alg"] == alg


async def test_the_same_refresh_claims_are_the_same_token(tokens: TokenSetup) -> None:
    claims = example_claims(RefreshClaims)
    assert await tokens.signer.sign(claims) == await tokens.signer.sign(claims)


async def test_mapped_claims_stand_beside_those_of_the_class_and_never_replace_one(tokens: TokenSetup) -> None:
    token = await tokens.signer.sign(
        example_claims(IdClaims), extra_claims={"groups": ("staff",), "sub": "another", "typ": "x"}
    )
    assert parts(token)[1] == payload_for(IdClaims) | {"groups": ["staff"]}
    assert await tokens.verifier.verify(token, IdClaims)


async def test_a_class_is_signed_only_with_its_own_algorithms(tokens: TokenSetup) -> None:
    attempts = [(example_claims(UserJwtClaims), Algorithm.ES256), (example_claims(RefreshClaims), Algorithm.RS256)]
    for claims, alg in attempts:
        with pytest.raises(ValueError, match="not signed with"):
            await tokens.signer.sign(claims, alg=alg)


async def test_we_never_sign_in_the_name_of_an_application(tokens: TokenSetup) -> None:
    with pytest.raises(TypeError):
        await tokens.signer.sign(example_claims(GeneratedServiceClaims))


async def test_no_token_is_issued_without_a_key(tokens: TokenSetup) -> None:
    tokens.keyring._replace_keys(())
    with pytest.raises(NoSigningKey):
        await tokens.signer.sign(example_claims(UserJwtClaims))


async def test_ui_13_tokens_verify_across_a_rotation_until_their_key_is_retired(tokens: TokenSetup) -> None:
    line = key_of(IdClaims.purpose, Algorithm.ES256).line
    policy = RotationPolicy(publish_lead=100, max_token_lifetime=1_000, grace=60)
    rotation = a_rotation(tokens, policy)
    before = await tokens.signer.sign(example_claims(IdClaims, exp=tokens.clock.now() + 10_000), alg=Algorithm.ES256)
    new = await rotation.rotate(line, origin=ADMIN)
    await tokens.keyring.reload()
    assert parts(await tokens.signer.sign(example_claims(IdClaims), alg=Algorithm.ES256))[0]["kid"] != new.kid
    await tokens.clock.advance(100)
    after = await tokens.signer.sign(example_claims(IdClaims), alg=Algorithm.ES256)
    assert parts(after)[0]["kid"] == new.kid
    await tokens.verifier.verify(before, IdClaims)
    await tokens.verifier.verify(after, IdClaims)
    await tokens.clock.advance(1_060)
    with pytest.raises(InvalidToken, match="no key"):
        await tokens.verifier.verify(before, IdClaims)


async def test_tokens_of_a_distrusted_key_are_refused_at_once(tokens: TokenSetup) -> None:
    token = await tokens.signer.sign(example_claims(IdClaims), alg=Algorithm.ES256)
    rotation = a_rotation(tokens, RotationPolicy())
    await rotation.rotate(key_of(IdClaims.purpose, Algorithm.ES256).line, origin=ADMIN, mode=RotationMode.DISTRUST)
    await tokens.keyring.ensure_version(tokens.store.stored.version)
    with pytest.raises(InvalidToken, match="no key"):
        await tokens.verifier.verify(token, IdClaims)
    await tokens.verifier.verify(await tokens.signer.sign(example_claims(IdClaims), alg=Algorithm.ES256), IdClaims)
