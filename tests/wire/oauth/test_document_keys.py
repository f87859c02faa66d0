"""Client ID metadata documents as large clients publish them: keys at an address, methods, schemes (R11, MD)."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from joserfc.jwk import ECKey, OctKey, RSAKey

from gatehouse.accounts.model import User
from gatehouse.app.services.core import outbound_client
from gatehouse.oauth.document_hosts import DocumentHosts
from gatehouse.oauth.errors import BadDocument
from gatehouse.oauth.metadata_clients import DOCUMENT_LIMITS, KEYS_LIMITS
from gatehouse.outbound.client import OutboundClient
from tests.support.browser import PASSWORD, AccountBrowser, HttpBrowser
from tests.support.builders import ORIGIN
from tests.support.client_documents import LOOPBACK_REDIRECT, DocumentServer, run_document_server
from tests.support.oauth import TOKEN, claims_of, oauth_error, success_body
from tests.support.service import RunningService, running_service
from tests.support.stub_server import StubConnector, StubResolver, http_response
from tests.wire.oauth.authorize_responses import LOGIN, is_error_page, redirect_error, redirect_parameters
from tests.wire.oauth.test_metadata_documents import (
    CALLER,
    DISCOVERY,
    PKCE,
    UNPROVED,
    VERIFIER,
    authorize,
    fetcher,
    redeem_signed,
    relying_party,
    signed_assertion,
)

KEYS: Final = "/keys.json"
HOSTS: Final = "oauth.client_document_hosts"
APP_URIS: Final = "oauth.client_document_app_uris"
# What clients publish, in shape: members that mean nothing here are ignored.
HOSTED: Final[Mapping[str, Any]] = {
    "client_name": "Assistant",
    "client_uri": "https://assistant.example",
    "application_type": "web",
    "grant_types": ["authorization_code", "refresh_token"],
    "response_types": ["code"],
    "token_endpoint_auth_method": None,
    "token_endpoint_auth_methods_supported": ["private_key_jwt", "none"],
    "token_endpoint_auth_signing_alg": "ES256",
    "scope": "openid email offline_access",
    "contacts": ["security@assistant.example"],
    "software_id": "assistant",
    "software_version": "2026.7",
}
DESKTOP: Final[Mapping[str, Any]] = {
    "client_name": "Editor",
    "application_type": "native",
    "grant_types": ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
    "response_types": ["code"],
    "token_endpoint_auth_method": "none",
    "redirect_uris": [
        *("http://127.0.0.1:33418/", "http://localhost:33418/", "editor://auth/callback"),
        *("com.example.editor:/callback", "other://auth/callback", "http://127.0.0.1/"),
    ],
}
PYTHON_SDK: Final[Mapping[str, Any]] = {
    "client_name": "SDK client",
    "redirect_uris": ["http://localhost:3030/callback"],
    "grant_types": ["authorization_code", "refresh_token"],
    "response_types": ["code"],
    "token_endpoint_auth_method": None,
    "scope": None,
    "contacts": None,
    "jwks_uri": None,
    "application_type": "native",
}
TYPESCRIPT_SDK: Final[Mapping[str, Any]] = {
    "client_name": "SDK client",
    "redirect_uris": ["http://localhost:8090/callback"],
    "grant_types": ["authorization_code", "refresh_token", "client_credentials"],
    "response_types": ["code"],
    "token_endpoint_auth_method": "none",
    "software_statement": "e30.e30.e30",
}


@pytest.fixture
async def documents(tmp_path: Path) -> AsyncIterator[DocumentServer]:
    async with run_document_server(tmp_path) as running:
        yield running


@pytest.fixture
async def service(installed_url: str, tmp_path: Path, documents: DocumentServer) -> AsyncIterator[RunningService]:
    """Hosts are listed while it runs."""
    given = {name: value for name, value in documents.settings.items() if "OUTBOUND" in name}
    async with running_service(installed_url, tmp_path, environment=given) as running:
        await save(running, **{HOSTS: [documents.host]})
        yield running


@pytest.fixture
async def account_browser(service: RunningService, anna: User) -> AsyncIterator[AccountBrowser]:
    browser = AccountBrowser(service)
    await browser.sign_in(anna.login or "")
    yield browser
    await browser.client.aclose()


async def save(service: RunningService, **settings: list[str]) -> None:
    await service.services.settings_editor.save(settings, ORIGIN)


def public_keys(*keys: ECKey | RSAKey, **members: object) -> dict[str, object]:
    return {"keys": [{**key.as_dict(private=False), "kid": f"k{key.thumbprint()[:4]}", **members} for key in keys]}


def with_kid(key: ECKey) -> ECKey:
    """The same key, whose assertions name it."""
    return ECKey.import_key({**key.as_dict(private=True), "kid": f"k{key.thumbprint()[:4]}"})


@pytest.mark.both_databases
async def test_md_14_keys_at_an_address_are_read_again_for_an_unknown_one_once_a_minute(
    service: RunningService, documents: DocumentServer, account_browser: AccountBrowser, anna: User
) -> None:
    old, new, never = (with_kid(ECKey.generate_key("P-256")) for _ in range(3))
    back = documents.url("/back")
    documents.documents[KEYS] = public_keys(old)
    client_id = documents.publish(**{**HOSTED, "redirect_uris": [back], "jwks_uri": documents.url(KEYS)})
    relying = relying_party(service, client_id, back)
    await authorize(account_browser, relying, scope="openid email offline_access")
    consent = await account_browser.follow()
    assert f"Assistant ({documents.host})" in consent.text
    answer = await account_browser.post("/sign-in/consent", decision="allow")
    code = relying.code_from(answer.headers["location"])
    assert oauth_error(await relying.redeem(code, code_verifier=VERIFIER)) == UNPROVED
    signed = signed_with(relying, old)
    tokens = success_body(await relying.redeem(code, code_verifier=VERIFIER, **signed))
    assert claims_of(tokens["id_token"])["aud"] == client_id
    assert success_body(await relying.userinfo(tokens["access_token"]))["email"] == LOGIN
    assert documents.fetches == ["/client.json", KEYS]
    # A new key: the first assertion with it reads the set, and only the set.
    documents.documents[KEYS] = public_keys(new)
    await service.clock.advance(60)
    assert success_body(await relying.refresh(tokens["refresh_token"], **signed_with(relying, new)))
    assert documents.fetches == ["/client.json", KEYS, KEYS]
    assert oauth_error(await redeem_with(relying, anna, old)) == UNPROVED
    for _ in range(3):
        assert oauth_error(await redeem_with(relying, anna, never)) == UNPROVED
    assert len(documents.fetches) == 3
    await service.clock.advance(60)
    for _ in range(3):
        assert oauth_error(await redeem_with(relying, anna, never)) == UNPROVED
    assert len(documents.fetches) == 4
    # While the set cannot be read, the keys that are known count until the cache time is over.
    keys = documents.documents.pop(KEYS)
    await service.clock.advance(60)
    assert oauth_error(await redeem_with(relying, anna, never)) == UNPROVED
    assert success_body(await redeem_with(relying, anna, new))
    await service.clock.advance(300)
    assert oauth_error(await redeem_with(relying, anna, new)) == UNPROVED
    documents.documents[KEYS] = keys
    await service.clock.advance(60)
    assert success_body(await redeem_with(relying, anna, new))


async def test_keys_that_are_read_again_do_not_bring_an_older_document_back(
    service: RunningService, documents: DocumentServer
) -> None:
    """Another node read a new document while this one waited for the keys of the old one."""
    documents.documents[KEYS] = public_keys(ECKey.generate_key("P-256"))
    named = {"token_endpoint_auth_methods_supported": ["private_key_jwt", "none"], "token_endpoint_auth_method": None}
    client_id = documents.publish(**named, jwks_uri=documents.url(KEYS))
    node, client_store = service.services.oauth.clients.metadata, service.services.storage.clients
    before = await node.find(client_id, CALLER)
    documents.publish(**named)
    calls = outbound_client(service.services.settings, DOCUMENT_LIMITS)
    after = await fetcher(service, calls, documents.host).find(client_id, CALLER)
    await service.clock.advance(60)
    assert (before.public, after.public) == (False, True)
    assert (await node.with_key(before, "unknown", CALLER)).public
    assert (await client_store.client(client_id)) == after


async def test_md_14_keys_are_not_read_where_the_document_does_not_name_them_any_more(
    service: RunningService, documents: DocumentServer
) -> None:
    """Another node read a document with keys elsewhere; this one remembers the earlier address."""
    documents.documents[KEYS] = public_keys(ECKey.generate_key("P-256"))
    named = {"token_endpoint_auth_method": "private_key_jwt"}
    client_id = documents.publish(**named, jwks_uri=documents.url(KEYS))
    node, client_store = service.services.oauth.clients.metadata, service.services.storage.clients
    await node.find(client_id, CALLER)
    stolen, moved, newer = (with_kid(ECKey.generate_key("P-256")) for _ in range(3))
    documents.documents |= {KEYS: public_keys(stolen), "/moved.json": public_keys(moved)}
    documents.publish(**named, jwks_uri=documents.url("/moved.json"))
    calls = outbound_client(service.services.settings, DOCUMENT_LIMITS)
    await fetcher(service, calls, documents.host).find(client_id, CALLER)
    await service.clock.advance(60)
    documents.documents["/moved.json"] = public_keys(moved, newer)
    read = len(documents.fetches)
    found = await node.with_key(await node.find(client_id, CALLER), str(stolen.kid), CALLER)
    assert documents.fetches[read:] == ["/client.json", "/moved.json"]
    assert {key["kid"] for key in found.jwks["keys"]} == {moved.kid, newer.kid}
    assert (await client_store.client(client_id)) == found
    # From now on this node reads the new address, and only that.
    await service.clock.advance(60)
    await node.with_key(found, str(stolen.kid), CALLER)
    assert documents.fetches[read:] == ["/client.json", "/moved.json", "/moved.json"]


async def test_md_14_a_key_that_one_node_read_counts_on_the_other_and_a_former_one_does_not(
    installed_postgres_url: str, tmp_path: Path, documents: DocumentServer
) -> None:
    environment = {**documents.settings, "GATEHOUSE__SERVER__BASE_URL": "http://localhost:8080"}
    async with (
        running_service(installed_postgres_url, tmp_path, environment=environment) as here,
        running_service(installed_postgres_url, tmp_path, environment=environment, clock=here.clock) as there,
    ):
        anna = await here.services.accounts.administration.create(
            login=LOGIN, nick="Anna", password=PASSWORD, origin=ORIGIN
        )
        old, new = (with_kid(ECKey.generate_key("P-256")) for _ in range(2))
        documents.documents[KEYS] = public_keys(old)
        named = {"token_endpoint_auth_method": "private_key_jwt"}
        client_id = documents.publish(**named, redirect_uris=[LOOPBACK_REDIRECT], jwks_uri=documents.url(KEYS))
        await here.services.oauth.clients.metadata.find(client_id, CALLER)
        at_here, at_there = [relying_party(node, client_id, LOOPBACK_REDIRECT) for node in (here, there)]
        for relying in (at_here, at_there):
            assert success_body(await redeem_with(relying, anna, old))
        documents.documents[KEYS] = public_keys(new)
        await here.clock.advance(60)
        assert success_body(await redeem_with(at_here, anna, new))
        read = len(documents.fetches)
        assert success_body(await redeem_with(at_there, anna, new)), "the stored client has it"
        assert documents.fetches[read:] == []
        assert oauth_error(await redeem_with(at_there, anna, old)) == UNPROVED
        assert oauth_error(await redeem_with(at_here, anna, old)) == UNPROVED
        assert success_body(await redeem_with(at_there, anna, new))


def signed_with(relying: Any, key: ECKey) -> dict[str, str]:
    return signed_assertion(relying, key, kid=str(key.kid))


async def redeem_with(relying: Any, user: User, key: ECKey) -> Any:
    return await redeem_signed(relying, user, key, kid=str(key.kid))


async def test_md_15_keys_are_never_read_from_elsewhere_and_bad_ones_are_refused(
    service: RunningService, documents: DocumentServer, browser_client: HttpBrowser
) -> None:
    key = ECKey.generate_key("P-256")
    good = json.dumps(public_keys(key)).encode()
    host, port = documents.host, documents.server.port
    elsewhere = (
        *("https://evil.example/keys", f"https://localhost:{port + 1}/keys", f"http://{host}/keys", "/keys.json"),
        *(f"https://127.0.0.1:{port}/keys", f"https://{host}@evil.example/keys", f"https://evil.example@{host}/keys"),
        *(f"https://{host}/keys#x", f"https://sub.{host}/keys", "file:///etc/passwd", f"HTTPS://{host}/keys"),
        *("https://169.254.169.254/latest", f"https://{host}\\@evil.example/", f"https://{host}/keys\n"),
    )
    for number, address in enumerate(elsewhere):
        await service.clock.advance(10)
        documents.publish(f"/{number}", token_endpoint_auth_method="private_key_jwt", jwks_uri=address)
        relying = relying_party(service, documents.url(f"/{number}"))
        assert is_error_page(await authorize(browser_client, relying)), address
    assert documents.fetches == [f"/{number}" for number in range(len(elsewhere))]
    documents.server.received.clear()
    padded = good[:-1] + b', "x": "' + b"x" * 65_536 + b'"}'
    bad = {
        "/moved": http_response(good, "302 Found", Location=documents.url("/good"), Content_Type="application/json"),
        "/large": http_response(padded, Content_Type="application/json"),
        "/html": http_response(good, Content_Type="text/html"),
        "/twice": http_response(b'{"keys": [], ' + good[1:], Content_Type="application/json"),
        "/private": {"keys": [key.as_dict(private=True)]},
        "/secret": {"keys": [OctKey.generate_key(256).as_dict(private=True)]},
        "/none": {"keys": []},
        "/encryption": public_keys(key, use="enc"),
        "/list": http_response(b"[]", Content_Type="application/json"),
        "/many": public_keys(*(ECKey.generate_key("P-256") for _ in range(9))),
    }
    documents.documents |= bad
    for path in (*bad, "/absent"):
        await service.clock.advance(10)
        address = documents.url(path)
        documents.publish(f"/of{path}", token_endpoint_auth_method="private_key_jwt", jwks_uri=address)
        client_id = documents.url(f"/of{path}")
        assert is_error_page(await authorize(browser_client, relying_party(service, client_id))), path
        assert documents.fetches[-1] == path
    assert await service.services.oauth.clients.commands.list() == []
    # What else is in a set does no harm.
    mixed = public_keys(key, ECKey.generate_key("P-384"), RSAKey.generate_key(2048), x5c=["AA"])
    documents.documents["/good"] = http_response(json.dumps(mixed).encode(), Content_Type="application/jwk-set+json")
    mixed_id = documents.publish(
        "/mixed", token_endpoint_auth_method="private_key_jwt", jwks_uri=documents.url("/good")
    )
    client = await service.services.oauth.clients.metadata.find(mixed_id, CALLER)
    assert [stored["kty"] for stored in client.jwks["keys"]] == ["EC", "RSA"]
    assert not any("x5c" in stored for stored in client.jwks["keys"])


async def test_md_15_an_address_of_keys_that_leads_inside_is_not_connected_to(service: RunningService) -> None:
    client_id = "https://client.example/client.json"
    document = {
        "client_id": client_id,
        "redirect_uris": ["https://client.example/back"],
        "token_endpoint_auth_method": "private_key_jwt",
        "jwks_uri": "https://client.example/keys",
    }
    answer = http_response(json.dumps(document).encode(), Content_Type="application/json")
    for inside in ("127.0.0.1", "169.254.169.254", "::ffff:10.0.0.5", "fd00::1"):
        resolver, connector = StubResolver(client_example=[["93.184.215.14"], [inside]]), StubConnector(answer)
        outbound = OutboundClient(allowed=(), resolver=resolver, connector=connector, limits=DOCUMENT_LIMITS)
        with pytest.raises(BadDocument):
            await fetcher(service, outbound).find(client_id, CALLER)
        assert [address for address, *_ in connector.connected] == ["93.184.215.14"]
        assert resolver.lookups == ["client.example"] * 2
    assert (KEYS_LIMITS.total_seconds, KEYS_LIMITS.body_bytes) == (5, 65_536)


@pytest.mark.parametrize(
    ("singular", "plural", "has_keys", "method"),
    [
        (None, None, False, "none"),
        ("none", None, False, "none"),
        (None, ["none"], False, "none"),
        (None, ["private_key_jwt", "none"], False, "none"),
        ("private_key_jwt", ["none"], False, "none"),
        ("client_secret_basic", ["none"], False, "none"),
        ("private_key_jwt", None, True, "private_key_jwt"),
        (None, ["private_key_jwt"], True, "private_key_jwt"),
        ("none", ["private_key_jwt"], True, "private_key_jwt"),
        ("private_key_jwt", ["none", "client_secret_basic"], True, "private_key_jwt"),
        ("private_key_jwt", None, False, "refused"),
        ("client_secret_basic", None, False, "refused"),
        (None, ["tls_client_auth"], False, "refused"),
        (None, None, True, "refused"),
        ("none", None, True, "refused"),
        ("client_secret_post", ["none"], True, "refused"),
    ],
)
@pytest.mark.parametrize("place", ["jwks", "jwks_uri"])
async def test_md_16_one_method_follows_from_what_a_document_names(
    service: RunningService,
    documents: DocumentServer,
    singular: str | None,
    plural: list[str] | None,
    *,
    has_keys: bool,
    method: str,
    place: str,
) -> None:
    keys = public_keys(ECKey.generate_key("P-256"))
    documents.documents[KEYS] = keys
    given = {"jwks": keys} if place == "jwks" else {"jwks_uri": documents.url(KEYS)}
    client_id = documents.publish(
        token_endpoint_auth_method=singular,
        token_endpoint_auth_methods_supported=plural,
        **(given if has_keys else {"jwks": {"keys": []}}),
    )
    find = service.services.oauth.clients.metadata.find(client_id, CALLER)
    if method == "refused":
        with pytest.raises(BadDocument):
            await find
        return
    client = await find
    assert (client.public, bool(client.jwks)) == (method == "none", has_keys)


async def test_md_16_a_client_with_keys_is_never_taken_without_its_assertion(
    service: RunningService, documents: DocumentServer, anna: User
) -> None:
    key = with_kid(ECKey.generate_key("P-256"))
    both = {
        "token_endpoint_auth_method": "none",
        "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
    }
    keyed = relying_party(service, documents.publish("/keyed.json", **both, jwks=public_keys(key)))
    public = relying_party(service, documents.publish("/public.json"))
    for relying in (keyed, public):
        await service.services.oauth.clients.metadata.find(relying.client.client_id, CALLER)
    code = await keyed.issue_code(anna, code_challenge=PKCE["code_challenge"])
    fields = keyed.fields(grant_type="authorization_code", code=code, code_verifier=VERIFIER)
    named = {**fields, "client_id": keyed.client.client_id}
    for proof in ({}, {"client_secret": "any"}, {**signed_with(keyed, key), "client_assertion_type": "other"}):
        assert oauth_error(await service.client.post(TOKEN, data={**named, **proof})) == UNPROVED
    foreign = {**named, "client_assertion": signed_with(public, key)["client_assertion"]}
    assert oauth_error(await service.client.post(TOKEN, data=foreign)) == (400, "invalid_request")
    assert oauth_error(await redeem_with(public, anna, key)) == UNPROVED
    assert success_body(await service.client.post(TOKEN, data={**named, **signed_with(keyed, key)}))


@pytest.mark.both_databases
async def test_md_16_a_change_from_keys_to_none_ends_what_was_granted(
    service: RunningService, documents: DocumentServer, anna: User
) -> None:
    key = with_kid(ECKey.generate_key("P-256"))
    named = {"token_endpoint_auth_methods_supported": ["private_key_jwt", "none"], "token_endpoint_auth_method": None}
    client_id = documents.publish(**named, jwks=public_keys(key))
    clients = service.services.oauth.clients.metadata
    await clients.find(client_id, CALLER)
    relying = relying_party(service, client_id)
    tokens = success_body(await redeem_with(relying, anna, key))
    code = await relying.issue_code(anna, code_challenge=PKCE["code_challenge"])
    documents.publish(**named)
    await service.clock.advance(301)
    assert (await clients.find(client_id, CALLER)).public
    assert oauth_error(await relying.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert (await relying.userinfo(tokens["access_token"])).status_code == 401
    assert oauth_error(await relying.redeem(code, code_verifier=VERIFIER)) == (400, "invalid_grant")
    later = await relying.issue_code(anna, code_challenge=PKCE["code_challenge"])
    kept = await relying.tokens(later, code_verifier=VERIFIER)
    # Back to keys: what was granted in between needs the assertion from now on, and stays.
    documents.publish(**named, jwks=public_keys(key))
    await service.clock.advance(301)
    await clients.find(client_id, CALLER)
    assert oauth_error(await relying.refresh(kept["refresh_token"])) == UNPROVED
    assert success_body(await relying.refresh(kept["refresh_token"], **signed_with(relying, key)))
    audit = service.services.storage.audit
    assert len(await audit.newest_records(10, client_id, "client.changed")) == 2
    (ended,) = await audit.newest_records(10, client_id, "client.tokens_revoked")
    assert ended.actor == "client"


async def test_md_17_a_wildcard_allows_one_level_of_subdomains_while_it_is_listed(service: RunningService) -> None:
    listed = DocumentHosts(hosts=("*.tools.example", "*.desk.example:8443"))
    document = {"redirect_uris": ["http://127.0.0.1/"]}

    async def is_accepted(client_id: str) -> bool:
        body = json.dumps({"client_id": client_id, **document}).encode()
        connector = StubConnector(http_response(body, Content_Type="application/json"))
        names = ("a.tools.example", "a.desk.example", "tools.example", "b.a.tools.example", "eviltools.example")
        resolver = StubResolver(**{name.replace(".", "_"): [["93.184.215.14"]] for name in names})
        outbound = OutboundClient(allowed=(), resolver=resolver, connector=connector, limits=DOCUMENT_LIMITS)
        clients = fetcher(service, outbound)
        clients._hosts = lambda: listed
        try:
            await clients.find(client_id, CALLER)
        except BadDocument:
            assert (connector.connected, resolver.lookups) == ([], [])
            return False
        return True

    assert await is_accepted("https://a.tools.example/client.json")
    assert await is_accepted("https://a.desk.example:8443/client.json")
    for other in (
        *("https://tools.example/client.json", "https://b.a.tools.example/client.json", "https://tools.example./c"),
        *("https://eviltools.example/client.json", "https://a.tools.example:8443/client.json"),
        *(
            "https://a.desk.example/client.json",
            "https://a.tools.example.evil.example/c",
            "https://*.tools.example/c",
        ),
        *("https://.tools.example/client.json", "https://a.tools.example@evil.example/c", "https://example/c"),
    ):
        assert not await is_accepted(other), other


async def test_md_17_the_list_counts_at_once_at_authorize_token_and_discovery(
    service: RunningService, documents: DocumentServer, browser_client: HttpBrowser, anna: User
) -> None:
    relying = relying_party(service, documents.publish())
    assert (await authorize(browser_client, relying)).status_code == 303
    code = await relying.issue_code(anna, code_challenge=PKCE["code_challenge"])
    for hosts, supported in (([], False), ([f"*.{documents.host.replace('localhost', 'tools.example')}"], True)):
        await save(service, **{HOSTS: hosts})
        assert is_error_page(await authorize(browser_client, relying))
        assert oauth_error(await relying.redeem(code, code_verifier=VERIFIER)) == UNPROVED
        for path in DISCOVERY:
            assert (await service.client.get(path)).json()["client_id_metadata_document_supported"] is supported
    await save(service, **{HOSTS: [documents.host]})
    assert (await authorize(browser_client, relying)).status_code == 303
    assert success_body(await relying.redeem(code, code_verifier=VERIFIER))


async def test_md_18_a_private_scheme_is_one_exact_uri_listed_for_the_host_of_the_document(
    service: RunningService, documents: DocumentServer, account_browser: AccountBrowser
) -> None:
    client_id = documents.publish(**DESKTOP)
    only = documents.publish("/only.json", redirect_uris=["editor://auth/callback"])
    schemes = ("editor://auth/callback", "com.example.editor:/callback")
    for uri in (*schemes, "other://auth/callback"):
        assert is_error_page(await authorize(account_browser, relying_party(service, client_id, uri))), uri
    assert is_error_page(await authorize(account_browser, relying_party(service, only, schemes[0])))
    elsewhere = [f"{documents.host.replace('localhost', 'other.example')}={schemes[0]}"]
    await save(service, **{APP_URIS: elsewhere})
    assert is_error_page(await authorize(account_browser, relying_party(service, only, schemes[0])))
    await save(service, **{APP_URIS: [f"{documents.host}={uri}" for uri in schemes]})
    for uri in schemes:
        relying = replace_redirect(relying_party(service, client_id), uri)
        for _ in range(2):  # any program on the device can claim it: consent counts once
            assert (await authorize(account_browser, relying)).headers["location"].startswith("/sign-in/consent")
            await account_browser.follow()
            answer = await account_browser.post("/sign-in/consent", decision="allow")
            code = redirect_parameters(answer, uri)["code"]
            assert success_body(await relying.redeem(code, code_verifier=VERIFIER))
        silent = await authorize(account_browser, relying, prompt="none")
        assert redirect_error(silent, uri) == "interaction_required"
    for uri in ("other://auth/callback", "editor://auth/callback/", "editor://auth", "com.example.editor:/"):
        assert is_error_page(await authorize(account_browser, relying_party(service, client_id, uri))), uri
    assert (await authorize(account_browser, relying_party(service, only, schemes[0]))).status_code == 303
    await save(service, **{APP_URIS: []})
    for name in (client_id, only):
        assert is_error_page(await authorize(account_browser, relying_party(service, name, schemes[0])))
    assert (
        await authorize(account_browser, relying_party(service, client_id, "http://127.0.0.1:4/"))
    ).status_code == 303


def replace_redirect(relying: Any, uri: str) -> Any:
    return type(relying)(service=relying.service, client=relying.client, secret="", redirect_uri=uri)


@pytest.mark.parametrize("shape", [PYTHON_SDK, TYPESCRIPT_SDK])
async def test_a_document_as_the_official_libraries_write_it_is_a_public_client(
    service: RunningService, documents: DocumentServer, account_browser: AccountBrowser, shape: Mapping[str, Any]
) -> None:
    written = json.dumps({"client_id": documents.url("/sdk.json"), **shape}).encode()  # with its nulls
    documents.documents["/sdk.json"] = http_response(written, Content_Type="application/json; charset=utf-8")
    relying = relying_party(service, documents.url("/sdk.json"), shape["redirect_uris"][0])
    await authorize(account_browser, relying, scope="openid offline_access")
    await account_browser.follow()
    answer = await account_browser.post("/sign-in/consent", decision="allow")
    tokens = await relying.tokens(relying.code_from(answer.headers["location"]), code_verifier=VERIFIER)
    assert success_body(await relying.refresh(tokens["refresh_token"]))


async def test_a_document_may_demand_pushed_requests(
    service: RunningService, documents: DocumentServer, browser_client: HttpBrowser
) -> None:
    client_id = documents.publish(require_pushed_authorization_requests=True)
    relying = relying_party(service, client_id, LOOPBACK_REDIRECT)
    assert redirect_error(await authorize(browser_client, relying), LOOPBACK_REDIRECT) == "invalid_request"
    fields = {**relying.authorize_fields(scope="openid"), **PKCE}
    pushed = (await service.client.post("/proxy/oauth/par", data=fields)).json()["request_uri"]
    path = f"/proxy/oauth/authorize?client_id={client_id}&request_uri={pushed}"
    assert (await browser_client.get(path)).headers["location"].startswith("/sign-in?")
