"""Rules for clients."""

from typing import Any

import pytest

from gatehouse.oauth.clients import check_client
from gatehouse.oauth.errors import BadClient
from gatehouse.oauth.mapped_claims import APPLICATION_CLAIMS
from gatehouse.oauth.model import ClaimContent, ClaimSource, Client, ClientProfile, TokenSettings
from gatehouse.tokens.claims import TOKEN_CLAIMS
from gatehouse.web.api.oauth.userinfo import UserInfoResponse
from tests.support.builders import NOW

ED25519 = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}


def a_client(**fields: Any) -> Client:
    return Client(
        **{
            "client_id": "web",
            "name": "Web",
            "profile": ClientProfile.OIDC,
            "redirect_uris": ("https://a.example/cb",),
            "created_at": NOW,
            **fields,
        }
    )


def claims_named(*names: str, application_id: int = 7) -> dict[str, ClaimSource]:
    return {name: ClaimSource(application_id=application_id, told=ClaimContent.ROLES) for name in names}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"origins": ("https://a.example", "https://a.example:8443", "http://localhost:3000", "http://[::1]:1")},
        {"backchannel_logout_uri": "https://a.example/out?x=1"},
        {"backchannel_logout_uri": "http://10.0.0.5:8080/out"},  # outbound.allow decides
        {"client_uri": "https://a.example", "policy_uri": "https://a.example/p?x=1", "tos_uri": "http://[::1]:1/t"},
        {"jwks": {"keys": [ED25519]}},
        {"claims": claims_named("groups", "https://a.example/roles", "roles.v2")},
        {"token_settings": TokenSettings(access_seconds=60, refresh_seconds=60, refresh_grace_seconds=60)},
        {"device_grant": True, "redirect_uris": ()},
        {"game_id_token": True, "application_id": 7, "redirect_uris": ()},
        {"scopes": ("openid", "groups", "roles", "permissions"), "application_id": 7},
    ],
)
def test_this_may_be(fields: dict[str, Any]) -> None:
    check_client(a_client(**fields))


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        *(
            ("an origin must be", {"origins": (origin,)})
            for origin in (
                *("https://a.example/", "https://a.example:443", "http://a.example", "http://localhost:80", "null"),
                *("*", "https://*.example", "https://A.example", "https://a.example:99999", "com.example.app:/"),
            )
        ),
        *(
            ("backchannel_logout_uri must be", {"backchannel_logout_uri": uri})
            for uri in (
                "https://a.example/#x",
                "ftp://a.example/",
                "https://u:p@a.example/",
                "a.example",
                "https://1/",
            )
        ),
        *(
            (f"{field} must be", {field: uri})
            for field, uri in (
                ("client_uri", "http://a.example/"),
                ("client_uri", "javascript:alert(1)"),
                ("policy_uri", "com.example.app:/privacy"),
                ("policy_uri", "https://u:p@a.example/"),
                ("tos_uri", "https://a.example/#terms"),
                ("tos_uri", f"https://a.example/{'x' * 2_048}"),
            )
        ),
        *(
            ("the name of a standard token claim", {"claims": claims_named(name)})
            for name in ("sub", "iss", "aud", "email", "sid", "nonce", "events", "exp")
        ),
        *(("must consist of letters", {"claims": claims_named(name)}) for name in ("", "1a", "a b", "ä", "a" * 129)),
        ("at most 16", {"claims": claims_named(*(f"c{number}" for number in range(17)))}),
        ("needs an application", {"claims": claims_named("groups", application_id=0)}),
        ("access_seconds must be", {"token_settings": TokenSettings(access_seconds=59)}),
        ("access_seconds must be", {"token_settings": TokenSettings(access_seconds=3_601)}),
        ("refresh_seconds must be", {"token_settings": TokenSettings(refresh_seconds=30 * 86_400 + 1)}),
        ("refresh_grace_seconds must be", {"token_settings": TokenSettings(refresh_grace_seconds=61)}),
        ("refresh_grace_seconds must be", {"token_settings": TokenSettings(refresh_grace_seconds=-1)}),
        ("needs a redirect URI", {"redirect_uris": ()}),
        ("redirect_uris: at most 100", {"redirect_uris": ("https://a.example/cb",) * 101}),
        ("scopes: at most 100", {"scopes": ("openid",) * 101}),
        ("device grant needs profile oidc", {"profile": ClientProfile.NATIVE, "device_grant": True}),
        ("game_id_token needs", {"game_id_token": True}),
        ("game_id_token needs", {"game_id_token": True, "application_id": 7, "profile": ClientProfile.NATIVE}),
        ("game_id_token needs", {"game_id_token": True, "application_id": 7, "scopes": ("email",)}),
        ("need profile oidc and an application", {"scopes": ("openid", "roles")}),
        (
            "need profile oidc and an application",
            {"scopes": ("openid", "groups"), "application_id": 7, "profile": ClientProfile.NATIVE},
        ),
        ("jwks needs", {"jwks": {"keys": [ED25519]}, "public": True}),
        ("jwks needs", {"jwks": {"keys": [ED25519]}, "profile": ClientProfile.NATIVE}),
    ],
)
def test_this_may_not(words: str, fields: dict[str, Any]) -> None:
    with pytest.raises(BadClient, match=words):
        check_client(a_client(**fields))


@pytest.mark.parametrize(
    "name", sorted((TOKEN_CLAIMS | {*UserInfoResponse.__struct_fields__}) - APPLICATION_CLAIMS.keys())
)
def test_no_mapped_claim_may_use_the_name_of_a_standard_claim(name: str) -> None:
    with pytest.raises(BadClient, match="the name of a standard token claim"):
        check_client(a_client(claims=claims_named(name)))
