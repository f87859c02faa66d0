"""The public key set at its two URLs (checklist UI-12)."""

from gatehouse.audit.model import AuditOrigin
from gatehouse.keys.model import Algorithm, KeyLine, KeyPurpose
from tests.support.service import RunningService

RSA = KeyLine(KeyPurpose.TOKENS, Algorithm.RS256)
OPERATOR = AuditOrigin(actor="test")
PRIVATE = {"d", "p", "q", "dp", "dq", "qi", "oth", "k"}


async def test_ui_12_both_addresses_publish_the_same_public_keys(service: RunningService) -> None:
    oauth = await service.client.get("/proxy/oauth/keys")
    permissions = await service.client.get("/api/permissions/keys")
    keys = oauth.json()["keys"]
    assert oauth.json() == permissions.json()
    assert {key["alg"] for key in keys} == {"RS256", "ES256", "EdDSA"}
    assert all(key["use"] == "sig" for key in keys)
    assert len({key["kid"] for key in keys}) == len(keys)
    assert not PRIVATE.intersection(*map(set, keys))


async def test_a_caller_who_has_the_keys_is_told_so(service: RunningService) -> None:
    first = await service.client.get("/proxy/oauth/keys")
    again = await service.client.get("/proxy/oauth/keys", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
    assert "max-age" in first.headers["cache-control"]
    assert first.headers["access-control-allow-origin"] == "*"


async def test_a_rotated_key_is_published_before_it_signs_and_the_old_one_while_its_tokens_live(
    service: RunningService,
) -> None:
    async def published_kids() -> set[str]:
        await service.services.keys.keyring.reload()
        keys = (await service.client.get("/proxy/oauth/keys")).json()["keys"]
        return {key["kid"] for key in keys if key["alg"] == "RS256"}

    def signing_kid() -> str:
        return service.services.keys.keyring.signing_key(
            KeyPurpose.TOKENS, Algorithm.RS256, service.clock.now()
        ).record.kid

    old = signing_kid()
    new = (await service.services.keys.rotation.rotate(RSA, origin=OPERATOR)).kid
    assert await published_kids() == {old, new}
    assert signing_kid() == old
    await service.clock.advance(3_600)
    assert signing_kid() == new
    assert await published_kids() == {old, new}
    await service.clock.advance(400 * 86_400)
    assert await published_kids() == {new}
