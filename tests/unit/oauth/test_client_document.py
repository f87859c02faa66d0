"""The algorithm of id_tokens of new and of changed clients (R2)."""

import msgspec
import pytest
from msgspec.structs import replace

from gatehouse.keys.model import Algorithm
from gatehouse.oauth.client_document import ClientPatch, apply_patch
from gatehouse.oauth.model import Client, ClientProfile, TokenSettings

NATIVE, OIDC = ClientProfile.NATIVE, ClientProfile.OIDC
NAMES_NONE = [{}, {"token_settings": None}, {"token_settings": {"access_seconds": 600}}]


def patched(document: dict[str, object], base: Client, *, is_new: bool) -> TokenSettings:
    return apply_patch(msgspec.convert(document, ClientPatch), base, is_new=is_new).token_settings


def a_client(profile: ClientProfile, alg: Algorithm = Algorithm.RS256) -> Client:
    settings = TokenSettings(id_token_alg=alg, access_seconds=300)
    return Client(client_id="shop", name="Shop", profile=profile, token_settings=settings, created_at=0)


@pytest.mark.parametrize("document", NAMES_NONE)
@pytest.mark.parametrize(("profile", "alg"), [(OIDC, Algorithm.ES256), (NATIVE, Algorithm.RS256)])
def test_new_client_that_names_no_algorithm_gets_that_of_its_profile(
    document: dict[str, object], profile: ClientProfile, alg: Algorithm
) -> None:
    blank = Client(client_id="shop", name="", created_at=0)
    settings = patched({"profile": profile, **document}, blank, is_new=True)
    assert settings.id_token_alg is alg
    assert settings.access_seconds == (600 if document.get("token_settings") else 3_600)


@pytest.mark.parametrize("document", NAMES_NONE)
@pytest.mark.parametrize("alg", Algorithm)
@pytest.mark.parametrize("profile", ClientProfile)
def test_existing_client_keeps_its_algorithm_until_another_is_named(
    document: dict[str, object], profile: ClientProfile, alg: Algorithm
) -> None:
    before = a_client(profile, alg)
    settings = patched(document, before, is_new=False)
    assert settings.id_token_alg is alg
    assert settings.access_seconds == {0: 300}.get(len(document), 600 if document.get("token_settings") else 3_600)
    for other in Algorithm:
        named = {"token_settings": {"id_token_signed_response_alg": other.value}}
        assert patched(named, before, is_new=False) == TokenSettings(id_token_alg=other)
        assert patched(named, replace(before, name=""), is_new=True).id_token_alg is other


def test_no_client_gets_id_tokens_with_hmac() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"token_settings": {"id_token_signed_response_alg": "HS256"}}, ClientPatch)
