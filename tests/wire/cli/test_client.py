"""`gatehouse client`: every field of a client, and its removal."""

import json
from pathlib import Path

from tests.support.command_line import CommandLine

REDIRECT = ("--redirect-uri", "https://shop.example/cb")
PUBLIC_KEY = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "kid": "k1"}


def test_a_client_is_made_with_every_field_and_shown(gatehouse: CommandLine, tmp_path: Path) -> None:
    keys = tmp_path / "jwks.json"
    keys.write_text(json.dumps({"keys": [PUBLIC_KEY]}))
    created = gatehouse.json(
        *("client", "create", "shop", "--name", "Web shop", "--profile", "oidc", *REDIRECT),
        *("--application-id", "1"),
        *("--post-logout-uri", "https://shop.example/bye", "--origin", "https://shop.example"),
        *("--backchannel-logout-uri", "https://shop.example/out", "--jwks", str(keys)),
        *("--client-uri", "https://shop.example/", "--policy-uri", "https://shop.example/privacy"),
        *("--tos-uri", "https://shop.example/terms"),
        *("--claim", "groups=50001:roles", "--claim", "rules=1:rules"),
        *("--id-token-alg", "ES256", "--access-seconds", "600", "--refresh-seconds", "86400"),
        *(
            "--refresh-grace-seconds",
            "10",
            "--device-grant",
            "--game-id-token",
            "--explain-errors",
            "--may-exchange",
            "--may-act",
            "--may-act-for-others",
            "--require-pkce",
            "--require-pushed-authorization-requests",
        ),
    )
    assert len(created["client_secret"]) == 43
    output = gatehouse.json("client", "show", "shop")
    assert created["client_secret"] not in json.dumps(output)
    assert {name: output[name] for name in output if name not in ("created_at", "secrets")} == {
        "client_id": "shop",
        "name": "Web shop",
        "profile": "oidc",
        "application_id": 1,
        "redirect_uris": ["https://shop.example/cb"],
        "redirect_hosts": [],
        "post_logout_uris": ["https://shop.example/bye"],
        "client_uri": "https://shop.example/",
        "policy_uri": "https://shop.example/privacy",
        "tos_uri": "https://shop.example/terms",
        "scopes": ["openid", "offline_access", "email", "profile", "trust"],
        "origins": ["https://shop.example"],
        "backchannel_logout_uri": "https://shop.example/out",
        "jwks": {"keys": [PUBLIC_KEY]},
        "workload_identities": [],
        "claims": {
            "groups": {"application_id": 50_001, "told": "roles"},
            "rules": {"application_id": 1, "told": "rules"},
        },
        "id_token_signed_response_alg": "ES256",
        "access_seconds": 600,
        "refresh_seconds": 86_400,
        "refresh_grace_seconds": 10,
        "device_grant": True,
        "game_id_token": True,
        "explain_errors": True,
        "first_party": False,
        "may_exchange": True,
        "may_act": True,
        "may_act_for_others": True,
        "require_pkce": True,
        "require_pushed_authorization_requests": True,
        "claims_in_id_token": False,
        "public": False,
        "machine": False,
        "version": 1,
    }
    for word in ("shop.example/out", "50001", "Web shop"):
        assert word in gatehouse("client", "show", "shop")


def test_new_clients_are_oidc_with_pkce_and_es256_unless_they_are_native_or_told_otherwise(
    gatehouse: CommandLine,
) -> None:
    for client_id, options, expected in (
        ("plain", REDIRECT, ("oidc", True, "ES256")),
        ("old", (*REDIRECT, "--no-require-pkce"), ("oidc", False, "ES256")),
        ("rsa", (*REDIRECT, "--id-token-alg", "RS256"), ("oidc", True, "RS256")),
        ("native", ("--profile", "native", "--redirect-host", "localhost"), ("native", False, "RS256")),
    ):
        gatehouse("client", "create", client_id, "--name", "Shop", *options)
        output = gatehouse.json("client", "show", client_id)
        assert (
            output["profile"],
            output["require_pkce"],
            output["id_token_signed_response_alg"],
        ) == expected


def test_a_machine_is_created_with_the_command_that_gets_its_token(gatehouse: CommandLine) -> None:
    make = ("client", "create", "nightly", "--name", "Nightly", "--machine")
    assert "redirect_uris is for clients that sign people in" in gatehouse.expect_failure(*make, *REDIRECT)
    made = gatehouse.run(*make)
    command = f"curl -s http://localhost:8080/proxy/oauth/token -u nightly:{made.out.strip()} "
    assert f"Get a token:\n  {command}-d grant_type=client_credentials\n" in made.err
    shown = gatehouse.json("client", "show", "nightly")
    assert (shown["machine"], shown["scopes"], shown["redirect_uris"]) == (True, [], [])


def test_a_machine_with_workload_identities_has_no_secret(gatehouse: CommandLine, tmp_path: Path) -> None:
    identities = tmp_path / "identities.json"
    make = ("client", "create", "nightly", "--name", "Nightly", "--machine", "--workload-identities", str(identities))
    identities.write_text(json.dumps([{"issuer": "https://issuer.example", "discovery": True}]))
    assert "missing required field `subject`" in gatehouse.expect_failure(*make, code=2)
    identity = {"issuer": "https://issuer.example", "subject": "repo:*", "discovery": True}
    identities.write_text(json.dumps([identity]))
    assert "the name of an owner" in gatehouse.expect_failure(*make)
    identities.write_text(json.dumps([{**identity, "subject": "repo:owner/name"}]))
    assert gatehouse.json(*make)["client_secret"] is None
    shown = gatehouse.json("client", "show", "nightly")
    assert shown["workload_identities"] == [{**identity, "subject": "repo:owner/name"}]
    assert shown["secrets"] == []


def test_invalid_input_is_refused_with_an_error_message(gatehouse: CommandLine, tmp_path: Path) -> None:
    make = ("client", "create", "shop", "--name", "Shop", "--profile", "oidc", *REDIRECT)
    assert "an origin must be" in gatehouse.expect_failure(*make, "--origin", "https://shop.example/x")
    reserved = gatehouse.expect_failure(*make, "--redirect-uri", "https://shop.example/cb?iss=x")
    assert "the query parameter iss is reserved" in reserved
    assert "access_seconds must be" in gatehouse.expect_failure(*make, "--access-seconds", "5")
    assert "standard token claim" in gatehouse.expect_failure(*make, "--claim", "sub=1:roles")
    for wrong in ("groups", "groups=x:roles", "groups=1:all", "=1:roles"):
        assert "NAME=APPLICATION_ID" in gatehouse.expect_failure(*make, "--claim", wrong, code=2)
    keys = tmp_path / "jwks.json"
    keys.write_text("no")
    assert "is not valid JSON" in gatehouse.expect_failure(*make, "--jwks", str(keys), code=2)
    keys.write_text(json.dumps({"keys": [{**PUBLIC_KEY, "d": "secret"}]}))
    output = gatehouse.expect_failure(*make, "--jwks", str(keys))
    assert "private key" in output
    assert "client not found" in gatehouse.expect_failure("client", "show", "shop").lower()


def test_a_client_is_removed_for_good_and_that_is_on_record(gatehouse: CommandLine) -> None:
    make = ("client", "create", "shop", "--name", "Shop", "--profile", "oidc", *REDIRECT)
    gatehouse(*make)
    gatehouse("client", "remove", "shop")
    assert gatehouse.json("client", "list") == []
    assert "was used before" in gatehouse.expect_failure(*make)
    assert "client not found" in gatehouse.expect_failure("client", "remove", "shop").lower()
    events = [record["event"] for record in gatehouse.json("audit", "show", "--subject", "shop")]
    assert sorted(events) == ["client.created", "client.removed"]


def test_tokens_of_a_client_are_revoked(gatehouse: CommandLine) -> None:
    gatehouse("client", "create", "shop", "--name", "Shop", "--profile", "oidc", *REDIRECT)
    assert gatehouse.json("client", "revoke-tokens", "shop") == {"client_id": "shop", "revoked": 0}
    assert "client not found" in gatehouse.expect_failure("client", "revoke-tokens", "no_one").lower()
    assert "client.tokens_revoked" in gatehouse("audit", "show", "--subject", "shop")
