"""Contract tests of oauth/store.py."""

import asyncio

import pytest

from gatehouse.keys.model import Algorithm
from gatehouse.oauth.errors import ClientExists, ClientNotFound
from gatehouse.oauth.model import ClaimContent, ClaimSource, SecretKind, TokenSettings
from gatehouse.storage.database import Storage
from tests.support.builders import NOW, a_client, a_client_secret, a_record


async def test_a_client_comes_back_as_it_was_kept(storage: Storage) -> None:
    client = a_client(
        application_id=50_001,
        redirect_uris=("https://shop.example/cb", "http://localhost/cb"),
        post_logout_uris=("https://shop.example/bye",),
        origins=("https://shop.example",),
        backchannel_logout_uri="https://shop.example/out",
        client_uri="https://shop.example/",
        policy_uri="https://shop.example/privacy",
        tos_uri="https://shop.example/terms",
        jwks={"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]},
        claims={"groups": ClaimSource(application_id=7, told=ClaimContent.GROUPS)},
        token_settings=TokenSettings(id_token_alg=Algorithm.ES256, access_seconds=600, refresh_grace_seconds=10),
        device_grant=True,
        game_id_token=True,
        explain_errors=True,
        first_party=True,
    )
    await storage.clients.create_client(client, a_record())
    assert await storage.clients.client("web") == client
    assert list(await storage.clients.clients()) == [client]


async def test_an_unknown_client_is_not_found(storage: Storage) -> None:
    with pytest.raises(ClientNotFound):
        await storage.clients.client("no_one")


async def test_a_removed_client_is_not_found(storage: Storage) -> None:
    await storage.clients.create_client(a_client(removed=True), a_record())
    with pytest.raises(ClientNotFound):
        await storage.clients.client("web")
    assert list(await storage.clients.clients()) == []


async def test_the_clients_of_an_application_are_its_own_with_their_secrets(storage: Storage) -> None:
    ours = [a_client(name, application_id=7) for name in ("a", "b")]
    for client in (
        *reversed(ours),
        a_client(client_id="theirs", application_id=8),
        a_client(client_id="nobodys"),
        a_client(client_id="removed", application_id=7, removed=True),
    ):
        await storage.clients.create_client(client, a_record())
    assert list(await storage.clients.clients_of_application(7)) == ours


async def test_an_origin_is_registered_while_a_client_has_it(storage: Storage) -> None:
    clients = storage.clients
    one, other = "https://one.example", "https://other.example"
    await clients.create_client(a_client("a", origins=(one, other)), a_record())
    await clients.create_client(a_client("b", origins=(one,)), a_record())
    await clients.create_client(a_client("gone", origins=("https://gone.example",), removed=True), a_record())
    assert [await clients.is_registered_origin(origin) for origin in (one, other, "https://gone.example", "")] == [
        *(True, True, False, False)
    ]
    await clients.change_client(a_client("a", origins=(other,)), a_record())
    await clients.remove_client("b", a_record())
    assert [await clients.is_registered_origin(origin) for origin in (one, other)] == [False, True]
    await clients.remove_client("a", a_record())
    assert not await clients.is_registered_origin(other)


async def test_exactly_one_of_many_concurrent_clients_gets_the_client_id(storage: Storage) -> None:
    answers = await asyncio.gather(
        *(storage.clients.create_client(a_client(), a_record()) for _ in range(8)), return_exceptions=True
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["ClientExists"] * 7 + ["NoneType"]
    with pytest.raises(ClientExists):
        await storage.clients.create_client(a_client(), a_record())


async def test_a_rotated_secret_leaves_the_old_one_an_end(storage: Storage) -> None:
    await storage.clients.create_client(a_client(), a_record())
    await storage.clients.rotate_secret(
        "web", a_client_secret(secret=b"2", created_at=NOW + 1), a_record(), old_ends_at=9
    )
    await storage.clients.rotate_secret(
        "web", a_client_secret(secret=b"3", created_at=NOW + 2), a_record(), old_ends_at=8
    )
    secrets = (await storage.clients.client("web")).secrets
    assert [(secret.secret, secret.expires_at, secret.kind) for secret in secrets] == [
        (b"2", 8, SecretKind.SHA256),
        (b"3", 0, SecretKind.SHA256),
    ]


async def test_the_one_before_the_newest_stays_however_quickly_they_follow_each_other(storage: Storage) -> None:
    await storage.clients.create_client(a_client(), a_record())
    names = [b"1", b"2", b"3", b"4", b"5"]
    for name in names:
        secret = a_client_secret(secret=name, created_at=NOW)
        await storage.clients.rotate_secret("web", secret, a_record(), old_ends_at=NOW + 60)
    secrets = (await storage.clients.client("web")).secrets
    assert {(secret.secret, secret.expires_at) for secret in secrets} == {(b"4", NOW + 60), (b"5", 0)}


async def test_never_more_than_two_secrets_live_however_many_rotate_at_once(storage: Storage) -> None:
    await storage.clients.create_client(a_client(), a_record())
    await asyncio.gather(
        *(
            storage.clients.rotate_secret(
                "web", a_client_secret(secret=bytes([n]), created_at=NOW + n), a_record(), old_ends_at=NOW + 60
            )
            for n in range(10)
        )
    )
    secrets = (await storage.clients.client("web")).secrets
    assert len(secrets) == 2
    assert sorted(secret.slot for secret in secrets) == [1, 2]


async def test_rotating_an_unknown_client_is_not_found_and_not_recorded(storage: Storage) -> None:
    with pytest.raises(ClientNotFound):
        await storage.clients.rotate_secret("no_one", a_client_secret(), a_record(), old_ends_at=1)
    assert await storage.audit.unsealed_records(10) == []


async def test_a_removed_client_loses_its_secrets_and_its_id_stays_spent(storage: Storage) -> None:
    await storage.clients.create_client(a_client(), a_record())
    await storage.clients.remove_client("web", a_record())
    with pytest.raises(ClientNotFound):
        await storage.clients.client("web")
    with pytest.raises(ClientExists):
        await storage.clients.create_client(a_client(), a_record())
    with pytest.raises(ClientNotFound):
        await storage.clients.remove_client("web", a_record())
    assert len(await storage.audit.unsealed_records(10)) == 2
