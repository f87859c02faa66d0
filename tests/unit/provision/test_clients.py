"""The section `clients`: the meaning of a record, and which differences are changes."""

from typing import Any

import pytest
from msgspec.structs import replace

from gatehouse.kernel.digests import sha256
from gatehouse.keys.model import Algorithm
from gatehouse.oauth.model import (
    DEFAULT_SCOPES,
    ClaimContent,
    ClaimSource,
    Client,
    ClientProfile,
    ClientSecret,
    SecretKind,
    TokenSettings,
)
from gatehouse.provision.model import StoredState, Unfit
from tests.support.builders import NOW, a_client
from tests.unit.provision.provision_setup import PASSWORDS, ProvisionSetup, plan_lines, provision_setup

NATIVE = {"client_id": "web", "name": "Web shop", "redirect_hosts": ["localhost"]}
OIDC = {"client_id": "web", "name": "Web", "profile": "oidc", "redirect_uris": ["https://a.example/cb"]}
STRONG = "Zq8vK2mX4tR9wLp6sYb3nHc7dJf5gTaU"


async def problems_of(state: StoredState | None = None, **arguments: object) -> list[str]:
    setup, store = provision_setup(state)
    with pytest.raises(Unfit) as error:
        await setup.apply(**arguments)
    assert store.stored == (state or StoredState())
    return list(error.value.problems)


async def create_client(record: dict[str, object], **terms: Any) -> tuple[ProvisionSetup, Client]:
    setup, store = provision_setup()
    await setup.apply(clients=[record], **terms)
    (client,) = store.stored.clients
    return setup, client


async def test_a_record_makes_a_client_with_all_it_says() -> None:
    setup, client = await create_client(
        {
            **NATIVE,
            "client_secret": STRONG,
            "application_id": 50_001,
            "redirect_uris": ["https://a.example/cb"],
            "post_logout_uris": ["https://a.example/bye"],
            "scopes": ["openid"],
            "origins": ["https://a.example"],
            "backchannel_logout_uri": "https://a.example/out",
            "claims": {"groups": {"application_id": 50_001, "told": "roles"}},
            "token_settings": {"id_token_signed_response_alg": "EdDSA", "access_seconds": 600},
            "explain_errors": True,
            "first_party": True,
            "may_exchange": False,
            "require_pkce": True,
        }
    )
    (secret,) = client.secrets
    assert setup.masters.open(secret.secret, purpose="client-secret:web") == STRONG.encode()
    assert replace(client, secrets=()) == Client(
        client_id="web",
        name="Web shop",
        application_id=50_001,
        redirect_hosts=("localhost",),
        redirect_uris=("https://a.example/cb",),
        post_logout_uris=("https://a.example/bye",),
        scopes=("openid",),
        origins=("https://a.example",),
        backchannel_logout_uri="https://a.example/out",
        claims={"groups": ClaimSource(application_id=50_001, told=ClaimContent.ROLES)},
        token_settings=TokenSettings(id_token_alg=Algorithm.EDDSA, access_seconds=600),
        explain_errors=True,
        first_party=True,
        may_exchange=False,
        require_pkce=True,
        created_at=NOW,
        rev=client.rev,
    )
    assert client.rev > 0


async def test_new_oidc_clients_need_pkce_by_default_and_existing_ones_stay_as_they_are() -> None:
    assert (await create_client(OIDC))[1].require_pkce
    assert (await create_client({**OIDC, "require_pkce": None}))[1].require_pkce
    assert not (await create_client({**OIDC, "require_pkce": False}))[1].require_pkce
    assert not (await create_client(NATIVE))[1].require_pkce
    before = a_client(profile=ClientProfile.OIDC, redirect_hosts=(), redirect_uris=("https://a.example/cb",))
    setup, store = provision_setup(StoredState(clients=(before,)))
    await setup.apply(clients=[{"client_id": "web", "name": "Renamed"}])
    assert [(client.name, client.require_pkce) for client in store.stored.clients] == [("Renamed", False)]


async def test_only_native_clients_may_exchange_by_default() -> None:
    assert (await create_client(NATIVE))[1].may_exchange
    assert not (await create_client(OIDC))[1].may_exchange
    assert (await create_client({**OIDC, "may_exchange": True}))[1].may_exchange
    assert not (await create_client({**OIDC, "may_exchange": None}))[1].may_exchange


async def test_an_absent_field_keeps_null_clears_and_a_value_replaces_whole() -> None:
    before = a_client(
        name="Old", redirect_uris=("https://a.example/cb",), scopes=("openid",), first_party=True, application_id=7
    )
    setup, store = provision_setup(StoredState(clients=(before,)))
    plan = await setup.apply(
        clients=[
            {"client_id": "web", "redirect_uris": ["https://b.example/cb"], "scopes": None, "application_id": None}
        ]
    )
    assert plan_lines(plan) == ["change client web application_id,redirect_uris,scopes"]
    assert store.stored.clients == (
        replace(
            before, redirect_uris=("https://b.example/cb",), scopes=DEFAULT_SCOPES, application_id=None, version=2
        ),
    )
    assert plan_lines(await setup.apply(clients=[{"client_id": "web"}])) == []


async def test_a_client_without_a_secret_gets_one_that_is_told_once() -> None:
    setup, store = provision_setup()
    plan = await setup.apply(clients=[NATIVE])
    secret = plan.changes[0].generated_secret or ""
    assert len(secret) == 43
    assert (
        setup.masters.open(store.stored.clients[0].secrets[0].secret, purpose="client-secret:web") == secret.encode()
    )
    assert secret not in repr(plan)
    assert plan_lines(await setup.apply(clients=[NATIVE])) == []
    assert plan_lines(await setup.apply(clients=[{**NATIVE, "client_secret": secret}])) == []


@pytest.mark.parametrize("record", [NATIVE, OIDC])
async def test_a_secret_that_is_the_one_already_is_no_change(record: dict[str, object]) -> None:
    setup, store = provision_setup()
    await setup.apply(clients=[{**record, "client_secret": STRONG}])
    assert plan_lines(await setup.apply(clients=[{**record, "client_secret": STRONG}])) == []
    assert plan_lines(await setup.apply(clients=[{**record, "client_secret": STRONG[::-1]}])) == [
        "change client web client_secret"
    ]
    assert len(store.stored.clients[0].secrets) == 1


async def test_a_secret_is_kept_in_the_form_its_profile_needs() -> None:
    assert [secret.kind for secret in (await create_client({**NATIVE, "client_secret": STRONG}))[1].secrets] == [
        SecretKind.SEALED
    ]
    (digest,) = (await create_client({**OIDC, "client_secret": STRONG}))[1].secrets
    assert (digest.kind, digest.secret) == (SecretKind.SHA256, sha256(STRONG))
    (slow,) = (await create_client({**OIDC, "client_secret": "weak"}, allow_weak=True))[1].secrets
    assert slow.kind is SecretKind.ARGON2
    assert await PASSWORDS.matches("weak", slow.secret.decode())


@pytest.mark.parametrize("record", [NATIVE, OIDC])
async def test_a_weak_secret_needs_to_be_allowed_unless_it_is_there_already(record: dict[str, object]) -> None:
    weak = [{**record, "client_secret": STRONG[:-1]}]
    (problem,) = await problems_of(clients=weak)
    assert problem.startswith("clients[0].client_secret: is shorter than 32 characters; use --allow-weak")
    setup, _ = provision_setup()
    await setup.apply(clients=weak, allow_weak=True)
    assert plan_lines(await setup.apply(clients=weak)) == []


async def test_a_secret_that_was_rotated_away_is_not_the_one_in_force() -> None:
    old = ClientSecret(kind=SecretKind.SHA256, secret=sha256(STRONG), created_at=NOW, expires_at=NOW + 60)
    new = ClientSecret(slot=2, kind=SecretKind.SHA256, secret=sha256(STRONG[::-1]), created_at=NOW + 1)
    before = Client(
        client_id="web",
        name="Web",
        profile=ClientProfile.OIDC,
        redirect_uris=("https://a.example/cb",),
        may_exchange=False,
        created_at=NOW,
        secrets=(old, new),
    )
    setup, _ = provision_setup(StoredState(clients=(before,)))
    assert plan_lines(await setup.plan(clients=[{**OIDC, "client_secret": STRONG[::-1]}])) == []
    assert plan_lines(await setup.plan(clients=[{**OIDC, "client_secret": STRONG}])) == [
        "change client web client_secret"
    ]


async def test_null_takes_the_secret_away_and_is_not_answered_with_a_new_one() -> None:
    setup, store = provision_setup()
    await setup.apply(clients=[{**NATIVE, "client_secret": None}])
    assert store.stored.clients[0].secrets == ()
    assert plan_lines(await setup.apply(clients=[NATIVE])) == []


async def test_a_public_client_has_no_secret() -> None:
    setup, store = provision_setup()
    await setup.apply(clients=[{**OIDC, "public": True}])
    assert store.stored.clients[0].secrets == ()
    assert await problems_of(clients=[{**OIDC, "public": True, "client_secret": STRONG}]) == [
        "clients[0].client_secret: a public client has no secret"
    ]
    plan = await setup.apply(clients=[{**OIDC, "public": False}])
    assert plan_lines(plan) == ["change client web public,client_secret"]
    assert plan.changes[0].generated_secret is not None


async def test_another_profile_needs_the_secret_again() -> None:
    setup, store = provision_setup()
    await setup.apply(clients=[{**OIDC, "client_secret": STRONG}])
    native = {**NATIVE, "profile": "native", "redirect_uris": []}
    with pytest.raises(Unfit, match="must be set again: profile native stores it in another form"):
        await setup.apply(clients=[native])
    await setup.apply(clients=[{**native, "client_secret": STRONG}])
    assert [secret.kind for secret in store.stored.clients[0].secrets] == [SecretKind.SEALED]


async def test_a_client_that_the_oauth_rules_refuse_is_refused_with_their_words() -> None:
    assert await problems_of(clients=[{**NATIVE, "redirect_hosts": []}, {**OIDC, "client_id": "b c"}]) == [
        "clients[0]: a client needs a redirect URI or host",
        "clients[1]: client_id must be 1 to 64 letters, digits, '.', '_', '~', '-'",
    ]
    assert await problems_of(clients=[{**OIDC, "redirect_uris": ["https://a.example/cb?state=x"]}]) == [
        "clients[0]: the query parameter state is reserved"
    ]
    assert await problems_of(clients=[{"client_id": "web"}]) == ["clients[0]: a new client needs a name"]
    assert await problems_of(clients=[{**OIDC, "client_id": "4711"}, {**OIDC, "client_id": "apply"}]) == [
        f"clients[{place}]: client_id must not be digits only or a reserved name" for place in (0, 1)
    ]
    assert await problems_of(clients=[NATIVE, NATIVE]) == ["clients[1]: is the same client as clients[0]"]


async def test_ci_01_a_stored_client_with_a_reserved_id_is_changed_by_a_file() -> None:
    setup, store = provision_setup(StoredState(clients=(a_client("4711"),)))
    assert plan_lines(await setup.apply(clients=[{"client_id": "4711", "name": "Old"}])) == [
        "change client 4711 name"
    ]
    assert store.stored.clients[0].name == "Old"


async def test_the_rest_is_pruned_and_its_id_stays_spent() -> None:
    setup, store = provision_setup(StoredState(clients=(a_client("old"),)))
    assert plan_lines(await setup.apply(clients=[NATIVE], prune=True)) == ["remove client old", "add client web"]
    assert store.stored.removed_client_ids == {"old"}
    with pytest.raises(Unfit, match="old was a removed client; choose another ID"):
        await setup.apply(clients=[{**NATIVE, "client_id": "old"}])


async def test_exported_client_with_every_field_applies_without_changes() -> None:
    setup, store = provision_setup()
    everything = {
        **OIDC,
        "origins": ["https://a.example"],
        "backchannel_logout_uri": "https://a.example/out",
        "client_uri": "https://a.example/",
        "policy_uri": "https://a.example/privacy",
        "tos_uri": "https://a.example/terms",
        "jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]},
        "claims": {"groups": {"application_id": 7, "told": "groups"}},
        "token_settings": {"id_token_signed_response_alg": "ES256", "refresh_grace_seconds": 10},
        "device_grant": True,
        "game_id_token": True,
        "application_id": 1,
        "explain_errors": True,
    }
    await setup.apply(clients=[everything])
    document = await setup.export()
    assert plan_lines(await setup.plan(**document, prune=True)) == []
    second, copy = provision_setup()
    await second.apply(**document)
    assert [replace(client, secrets=()) for client in copy.stored.clients] == [
        replace(client, secrets=()) for client in store.stored.clients
    ]


async def test_null_clears_the_tables_of_a_client_and_a_given_one_replaces_it_whole() -> None:
    before = a_client(
        claims={"groups": ClaimSource(application_id=7, told=ClaimContent.GROUPS)},
        token_settings=TokenSettings(access_seconds=600, refresh_seconds=86_400),
        backchannel_logout_uri="https://a.example/out",
    )
    setup, store = provision_setup(StoredState(clients=(before,)))
    fields = {
        "client_id": "web",
        "claims": None,
        "token_settings": {"access_seconds": 300},
        "backchannel_logout_uri": None,
    }
    assert plan_lines(await setup.apply(clients=[fields])) == [
        "change client web backchannel_logout_uri,claims,token_settings"
    ]
    (after,) = store.stored.clients
    assert (after.claims, after.backchannel_logout_uri) == ({}, "")
    assert after.token_settings == TokenSettings(access_seconds=300)


async def test_a_table_of_a_client_with_a_member_no_one_knows_is_refused() -> None:
    (problem,) = await problems_of(clients=[{**OIDC, "token_settings": {"access_second": 60}}])
    assert "access_second" in problem
    (problem,) = await problems_of(clients=[{**OIDC, "claims": {"groups": {"application_id": 7, "told": "all"}}}])
    assert "told" in problem
