"""Client ID metadata documents: clients that no one registered, from listed hosts only (R9, checklist MD)."""

import asyncio
import json
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from secrets import token_hex
from typing import Final

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey
from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.addresses import Address
from gatehouse.kernel.errors import TooMany
from gatehouse.oauth.document_hosts import DocumentHosts
from gatehouse.oauth.errors import BadClient, BadDocument
from gatehouse.oauth.metadata_clients import (
    DOCUMENT_LIMITS,
    DOCUMENT_RATES,
    MAX_STRANGERS,
    DocumentCaller,
    MetadataClients,
)
from gatehouse.oauth.model import SCOPES, Client, ClientProfile
from gatehouse.outbound.client import OutboundClient, Streams
from gatehouse.provision.model import ReadScope
from gatehouse.storage.provision import ProvisionStorage
from gatehouse.throttle.rate_limiter import RateLimiter
from tests.support.browser import AccountBrowser, HttpBrowser
from tests.support.client_documents import LOOPBACK_REDIRECT, DocumentServer, run_document_server
from tests.support.images import SVG, png
from tests.support.oauth import (
    TOKEN,
    RelyingPartyClient,
    a_public_client,
    challenge_of,
    claims_of,
    oauth_error,
    success_body,
)
from tests.support.service import RunningService, running_service
from tests.support.stub_server import StubConnector, StubResolver, StubServer, http_response, run_stub_server
from tests.wire.oauth.authorize_responses import LOGIN, is_error_page, redirect_error

VERIFIER: Final = "v" * 43
PKCE: Final = {"code_challenge": challenge_of(VERIFIER), "code_challenge_method": "S256"}
OTHER_PORT: Final = "http://127.0.0.1:54321/callback"
ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
CALLER: Final = DocumentCaller(source="192.0.2.1", origin=AuditOrigin(actor="client"))
DISCOVERY: Final = ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server")
UNPROVED: Final = (401, "invalid_client")
HOUR: Final = 3_600


@pytest.fixture
async def documents(tmp_path: Path) -> AsyncIterator[DocumentServer]:
    async with run_document_server(tmp_path) as running:
        yield running


@pytest.fixture
async def service(installed_url: str, tmp_path: Path, documents: DocumentServer) -> AsyncIterator[RunningService]:
    async with running_service(installed_url, tmp_path, environment=documents.settings) as running:
        yield running


@pytest.fixture
async def account_browser(service: RunningService, anna: User) -> AsyncIterator[AccountBrowser]:
    browser = AccountBrowser(service)
    await browser.sign_in(anna.login or "")
    yield browser
    await browser.client.aclose()


def relying_party(
    service: RunningService, client_id: str, redirect_uri: str = LOOPBACK_REDIRECT
) -> RelyingPartyClient:
    """The application behind a client_id; the service knows nothing of it yet."""
    client = Client(client_id=client_id, name="", profile=ClientProfile.OIDC, public=True, created_at=0)
    return RelyingPartyClient(service=service, client=client, secret="", redirect_uri=redirect_uri)


async def authorize(browser: HttpBrowser, relying: RelyingPartyClient, **changes: str) -> httpx2.Response:
    return await browser.get(relying.authorize_path(**{**PKCE, "scope": "openid", **changes}))


async def test_md_01_a_client_is_known_by_its_document_and_works_like_any_other(
    service: RunningService, documents: DocumentServer, account_browser: AccountBrowser, anna: User
) -> None:
    for path in DISCOVERY:
        assert (await service.client.get(path)).json()["client_id_metadata_document_supported"] is True
    client_id = documents.publish()
    relying = relying_party(service, client_id, OTHER_PORT)  # any port of loopback (RFC 8252)
    await authorize(account_browser, relying, scope="openid email offline_access groups roles permissions")
    consent = unescape((await account_browser.follow()).text)
    assert f"Allow Notes ({documents.host})?" in consent
    assert f"<strong>{documents.host}</strong>" in consent
    answer = await account_browser.post("/sign-in/consent", decision="allow")
    tokens = await relying.tokens(relying.code_from(answer.headers["location"]), code_verifier=VERIFIER)
    assert claims_of(tokens["id_token"])["aud"] == client_id
    assert success_body(await relying.userinfo(tokens["access_token"]))["email"] == LOGIN
    renewed = success_body(await relying.refresh(tokens["refresh_token"]))
    assert renewed["refresh_token"] != tokens["refresh_token"]
    assert documents.fetches == ["/client.json"]
    (created,) = await service.services.storage.audit.newest_records(10, client_id, "client.created")
    assert (created.actor, created.details["source"]) == ("client", "metadata document")
    consent_record = await service.services.storage.consents.consent(anna.user_id, client_id)
    assert consent_record is not None
    assert consent_record.scopes == ("openid", "offline_access", "email")

    page = unescape((await account_browser.get("/account")).text)
    assert f"Notes ({documents.host})" in page
    await account_browser.submit("/account/applications/revoke", client_id)
    assert oauth_error(await relying.refresh(renewed["refresh_token"])) == (400, "invalid_grant")
    assert await service.services.storage.consents.consent(anna.user_id, client_id) is None


async def test_md_02_a_client_from_a_document_is_third_party_with_pkce_and_without_holdings(
    service: RunningService, documents: DocumentServer, account_browser: AccountBrowser
) -> None:
    origin = documents.url("")
    redirects = [LOOPBACK_REDIRECT, f"{origin}/back", "https://evil.example/back", "com.example.notes:/back"]
    client_id = documents.publish(redirect_uris=redirects, first_party=True, claims={"roles": "all"}, scope="roles")
    relying = relying_party(service, client_id)
    assert redirect_error(await account_browser.get(relying.authorize_path()), LOOPBACK_REDIRECT) == "invalid_request"
    for address in ("https://evil.example/back", "com.example.notes:/back", f"{origin}/other", f"{origin}/back/"):
        assert is_error_page(await authorize(account_browser, relying_party(service, client_id, address)))
    stored = await service.services.oauth.clients.commands.get(client_id)
    assert (stored.first_party, stored.may_exchange, stored.require_pkce) == (False, False, True)
    assert (stored.claims, stored.application_id, stored.device_grant) == ({}, None, False)
    assert stored.redirect_uris == (LOOPBACK_REDIRECT, f"{origin}/back")
    assert set(stored.scopes) == set(SCOPES) - {"groups", "roles", "permissions", "phone"}
    web = relying_party(service, client_id, f"{origin}/back")
    assert (await authorize(account_browser, web)).headers["location"].startswith("/sign-in/consent")
    preflight = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    allowed = await service.client.options(TOKEN, headers=preflight)
    assert allowed.headers["access-control-allow-origin"] == origin


async def test_md_03_an_unacceptable_document_gets_an_error_page_once_fetched(
    service: RunningService, documents: DocumentServer, account_browser: AccountBrowser
) -> None:
    """Naming another client, redirects, size, media type, secrets: nothing is stored, nothing fetched again soon."""
    body = json.dumps({"client_id": documents.url("/plain"), "redirect_uris": [LOOPBACK_REDIRECT]}).encode()
    large = body[:-1] + b', "client_uri": "' + b"x" * 16_384 + b'"}'
    twice = json.dumps({"client_id": documents.url("/twice"), "redirect_uris": [LOOPBACK_REDIRECT]}).encode()
    twice = b'{"redirect_uris": ["https://evil.example/"], ' + twice[1:]
    found = f"https://{documents.host}/good"
    documents.publish("/good")
    documents.publish("/other", client_id=found)
    documents.publish("/slash", client_id=documents.url("/slash/"))
    documents.publish("/secret", token_endpoint_auth_method="client_secret_basic")
    documents.publish("/spoken", client_secret="s3cret")
    documents.publish("/keyless", token_endpoint_auth_method="private_key_jwt")
    documents.publish("/nowhere", redirect_uris=["https://evil.example/back"])
    documents.publish("/name", client_name="Notes\u202e")
    documents.publish("/none", redirect_uris=None)
    documents.documents |= {
        "/moved": http_response(body, "302 Found", Location=found, Content_Type="application/json"),
        "/plain": http_response(body, Content_Type="text/html"),
        "/large": http_response(large, Content_Type="application/json"),
        "/list": http_response(b"[]", Content_Type="application/json"),
        "/twice": http_response(twice, Content_Type="application/json"),
        "/deep": http_response(b'{"a":' * 3_000, Content_Type="application/json"),
    }
    refused = [*(path for path in documents.documents if path != "/good"), "/absent"]
    for path in refused:
        await service.clock.advance(10)  # within the rate limit
        relying = relying_party(service, documents.url(path))
        assert is_error_page(await authorize(account_browser, relying)), path
        assert is_error_page(await authorize(account_browser, relying)), path
    assert sorted(documents.fetches) == sorted(refused)
    assert await service.services.oauth.clients.commands.list() == []
    documents.publish("/absent")
    await service.clock.advance(60)
    again = await authorize(account_browser, relying_party(service, documents.url("/absent")))
    assert again.headers["location"].startswith("/sign-in/consent")


async def test_md_04_a_host_that_is_not_listed_is_never_called(
    service: RunningService, documents: DocumentServer, account_browser: AccountBrowser
) -> None:
    """Suffixes, subdomains, ports, user-info, punycode, addresses and spellings of a listed host."""
    resolver = StubResolver()
    outbound = OutboundClient(allowed=(), resolver=resolver, connector=StubConnector())
    service.services.oauth.clients.metadata._outbound = outbound
    port = documents.server.port
    for client_id in (
        f"https://evil{documents.host}/client.json",
        f"https://localhost.evil.example:{port}/client.json",
        f"https://sub.localhost:{port}/client.json",
        f"https://localhost.:{port}/client.json",
        f"https://LOCALHOST:{port}/client.json",
        f"https://xn--localhst-3za:{port}/client.json",
        f"https://l\u043ecalhost:{port}/client.json",
        f"https://127.0.0.1:{port}/client.json",
        f"https://[::1]:{port}/client.json",
        f"https://localhost:0{port}/client.json",
        f"https://localhost:{port}@evil.example/client.json",
        f"https://evil.example@localhost:{port}/client.json",
        f"https://evil.example\\@localhost:{port}/client.json",
        "https://localhost/client.json",
        f"http://localhost:{port}/client.json",
        f"https://localhost:{port}",
        f"https://localhost:{port}/",
        f"https://localhost:{port}/x/../client.json",
        f"https://localhost:{port}/%2e/client.json",
        f"https://localhost:{port}/client.json?x=1",
        f"https://localhost:{port}/client.json#x",
        f"https://localhost:{port}/client.json\n",
        f"https://localhost:{port}/{'x' * 300}",
    ):
        assert is_error_page(await authorize(account_browser, relying_party(service, client_id))), client_id
    assert resolver.lookups == []


def fetcher(service: RunningService, outbound: OutboundClient, host: str = "client.example") -> MetadataClients:
    services = service.services
    return MetadataClients(
        store=services.storage.clients,
        outbound=outbound,
        keys_outbound=outbound,
        images=services.images.loader,
        hosts=lambda: DocumentHosts(hosts={host}),
        rate_limiter=RateLimiter(DOCUMENT_RATES, clock=service.clock),
        recorder=services.core.recorder,
        clock=service.clock,
    )


async def test_md_05_a_listed_name_that_leads_inside_is_not_connected_to(service: RunningService) -> None:
    """SSRF and rebinding: every address is checked, and the second answer of a name is never used."""
    client_id = "https://client.example/client.json"
    for answers in (
        [["127.0.0.1"]],
        [["169.254.169.254"]],
        [["93.184.215.14", "10.0.0.5"]],
        [["::ffff:10.0.0.5"]],
        [["fd00::1"]],
    ):
        resolver, connector = StubResolver(client_example=answers), StubConnector()
        outbound = OutboundClient(allowed=(), resolver=resolver, connector=connector, limits=DOCUMENT_LIMITS)
        with pytest.raises(BadDocument):
            await fetcher(service, outbound).find(client_id, CALLER)
        assert connector.connected == []
    document = {"client_id": client_id, "redirect_uris": ["https://client.example/back"]}
    answer = http_response(json.dumps(document).encode(), Content_Type="application/json; charset=utf-8")
    resolver, connector = StubResolver(client_example=[["93.184.215.14"], ["127.0.0.1"]]), StubConnector(answer)
    outbound = OutboundClient(allowed=(), resolver=resolver, connector=connector, limits=DOCUMENT_LIMITS)
    client = await fetcher(service, outbound).find(client_id, CALLER)
    assert (client.name, client.redirect_uris) == ("client.example", ("https://client.example/back",))
    assert connector.connected == [("93.184.215.14", 443, "client.example", True)]
    assert resolver.lookups == ["client.example"]


class SilentConnector(StubConnector):
    """Its server accepts the connection and never responds."""

    async def connect(self, address: Address, port: int, *, name: str, encrypted: bool) -> Streams:
        _, writer = await super().connect(address, port, name=name, encrypted=encrypted)
        return asyncio.StreamReader(), writer


async def test_md_06_a_slow_host_delays_one_request_for_five_seconds_at_most(service: RunningService) -> None:
    assert (DOCUMENT_LIMITS.total_seconds, DOCUMENT_LIMITS.connect_seconds, DOCUMENT_LIMITS.body_bytes) == (
        5,
        5,
        16_384,
    )
    connector = SilentConnector()
    resolver = StubResolver(client_example=[["93.184.215.14"]])
    outbound = OutboundClient(
        allowed=(), resolver=resolver, connector=connector, limits=replace(DOCUMENT_LIMITS, total_seconds=0.05)
    )
    clients = fetcher(service, outbound)
    for _ in range(2):
        with pytest.raises(BadDocument, match=r"client\.example: 0\.05 s"):
            await clients.find("https://client.example/client.json", CALLER)
    assert len(connector.connected) == 1


async def test_md_07_concurrent_requests_share_one_fetch_and_fetches_are_limited(
    service: RunningService, documents: DocumentServer
) -> None:
    opened = asyncio.Event()
    released = asyncio.get_running_loop().create_future()

    def pause() -> asyncio.Future[object]:
        opened.set()
        return asyncio.shield(released)

    documents.server.pause = pause
    relying = relying_party(service, documents.publish())
    requests = [asyncio.create_task(service.client.get(relying.authorize_path(**PKCE))) for _ in range(5)]
    await asyncio.wait_for(opened.wait(), 10)
    requests[0].cancel()
    released.set_result(None)
    answers = await asyncio.gather(*requests[1:])
    assert {answer.status_code for answer in answers} == {303}
    assert documents.fetches == ["/client.json"]
    documents.server.pause = None
    for number in range(19):
        assert is_error_page(await service.client.get(relying_path(service, documents, f"/{number}")))
    refused = await service.client.get(relying_path(service, documents, "/more"))
    assert (refused.status_code, len(documents.fetches)) == (429, 20)
    assert int(refused.headers["retry-after"]) > 0
    clients = service.services.oauth.clients.metadata
    for number in range(40):  # one host is called 60 times a minute at most for all callers
        with pytest.raises(BadDocument):
            await clients.find(documents.url(f"/again/{number}"), replace(CALLER, source=f"source {number}"))
    with pytest.raises(TooMany):
        await clients.find(documents.url("/last"), replace(CALLER, source="one more"))


@pytest.mark.both_databases
async def test_md_13_strangers_use_up_no_fetches_of_clients_that_people_use(
    service: RunningService, documents: DocumentServer, account_browser: AccountBrowser
) -> None:
    relying = relying_party(service, documents.publish())
    await authorize(account_browser, relying)
    await account_browser.follow()
    await account_browser.post("/sign-in/consent", decision="allow")
    unused = relying_party(service, documents.publish("/unused.json"))
    assert (await authorize(account_browser, unused)).status_code == 303
    await service.clock.advance(HOUR)
    clients = service.services.oauth.clients.metadata
    for number in range(60):
        with pytest.raises(BadDocument):
            await clients.find(documents.url(f"/{number}"), replace(CALLER, source=f"source {number}"))
    for number in range(20):  # and those of the same address
        with pytest.raises((BadDocument, TooMany)):
            await clients.find(documents.url(f"/more/{number}"), replace(CALLER, source="127.0.0.1"))
    assert (await authorize(account_browser, unused)).status_code == 429
    assert (await authorize(account_browser, relying)).status_code == 303
    assert documents.fetches[-1] == "/client.json"


async def test_md_13_slow_documents_of_strangers_delay_no_client_that_people_use(
    service: RunningService, documents: DocumentServer, account_browser: AccountBrowser
) -> None:
    relying = relying_party(service, documents.publish())
    await authorize(account_browser, relying)
    await account_browser.follow()
    await account_browser.post("/sign-in/consent", decision="allow")
    await service.clock.advance(HOUR)
    released = asyncio.get_running_loop().create_future()
    waiting, all_wait = 0, asyncio.Event()

    def pause() -> asyncio.Future[object]:
        nonlocal waiting
        waiting += 1
        if waiting == MAX_STRANGERS:
            all_wait.set()
        return asyncio.shield(released)

    documents.server.pause = pause
    clients = service.services.oauth.clients.metadata
    strangers = [
        asyncio.create_task(clients.find(documents.url(f"/{number}"), replace(CALLER, source=f"source {number}")))
        for number in range(8)
    ]
    await asyncio.wait_for(all_wait.wait(), 10)
    documents.server.pause = None
    assert (await authorize(account_browser, relying)).status_code == 303
    assert documents.fetches.count("/client.json") == 2
    assert not any(one.done() for one in strangers)
    released.set_result(None)
    assert all(isinstance(one, BadDocument) for one in await asyncio.gather(*strangers, return_exceptions=True))


def relying_path(service: RunningService, documents: DocumentServer, path: str) -> str:
    return relying_party(service, documents.url(path)).authorize_path(**PKCE)


async def test_md_08_a_changed_document_counts_when_its_cache_time_is_over(
    service: RunningService, documents: DocumentServer, account_browser: AccountBrowser
) -> None:
    """A running sign-in ends when its redirect URI is gone; a code is bound to what it was issued for."""
    documents.headers = {"Cache_Control": "public, max-age=7200", "Age": "3600"}
    client_id = documents.publish()
    relying = relying_party(service, client_id)
    await authorize(account_browser, relying)
    await account_browser.follow()
    answer = await account_browser.post("/sign-in/consent", decision="allow")
    code = relying.code_from(answer.headers["location"])
    await authorize(account_browser, relying, prompt="consent")
    await account_browser.follow()

    moved = f"{documents.url('')}/back"
    documents.publish(redirect_uris=[moved], client_name="Notes 2")
    await service.clock.advance(30)
    assert (await authorize(account_browser, relying)).headers["location"].startswith("/sign-in/consent")
    assert oauth_error(await relying.redeem(code, code_verifier=VERIFIER, redirect_uri=moved))[1] == "invalid_grant"
    assert success_body(await relying.redeem(code, code_verifier=VERIFIER))
    assert len(documents.fetches) == 1
    await service.clock.advance(HOUR)
    assert is_error_page(await authorize(account_browser, relying))
    assert len(documents.fetches) == 2
    gone = await account_browser.post("/sign-in/consent", decision="allow")
    assert "location" not in gone.headers
    assert (await service.services.oauth.clients.commands.get(client_id)).name == f"Notes 2 ({documents.host})"
    (changed,) = await service.services.storage.audit.newest_records(10, client_id, "client.changed")
    assert changed.details["fields"] == "name, redirect_uris"


async def test_md_09_a_key_that_left_the_document_no_longer_proves_the_client(
    service: RunningService, documents: DocumentServer, anna: User
) -> None:
    old, new = ECKey.generate_key("P-256"), ECKey.generate_key("P-256")
    client_id = documents.publish(token_endpoint_auth_method="private_key_jwt", jwks=key_set(old))
    relying = relying_party(service, client_id)
    await service.services.oauth.clients.metadata.find(client_id, CALLER)
    assert success_body(await redeem_signed(relying, anna, old))
    assert oauth_error(await relying.redeem(await relying.issue_code(anna))) == UNPROVED
    with pytest.raises(BadClient):
        await service.services.oauth.clients.commands.rotate_secret(client_id, CALLER.origin)
    documents.publish(token_endpoint_auth_method="private_key_jwt", jwks=key_set(new))
    await service.clock.advance(301)
    assert oauth_error(await redeem_signed(relying, anna, old)) == UNPROVED
    assert success_body(await redeem_signed(relying, anna, new))
    assert documents.fetches == ["/client.json"] * 2
    alone = {"grant_type": "client_credentials", **signed_assertion(relying, new)}
    assert oauth_error(await service.client.post(TOKEN, data=alone)) == (400, "unauthorized_client")
    documents.documents.clear()
    await service.clock.advance(301)
    assert oauth_error(await redeem_signed(relying, anna, new)) == UNPROVED


def key_set(key: ECKey) -> dict[str, object]:
    return {"keys": [{**key.as_dict(private=False), "alg": "ES256"}]}


def signed_assertion(relying: RelyingPartyClient, key: ECKey, **header: str) -> dict[str, str]:
    now = relying.service.clock.now()
    name = relying.client.client_id
    about = {"iss": name, "sub": name, "aud": relying.service.base_url, "jti": token_hex(8), "exp": now + 60}
    assertion = jwt.encode({"alg": "ES256", **header}, about, key, algorithms=["ES256"])
    return {"client_assertion": assertion, "client_assertion_type": ASSERTION_TYPE}


async def redeem_signed(relying: RelyingPartyClient, user: User, key: ECKey, **header: str) -> httpx2.Response:
    code = await relying.issue_code(user, code_challenge=PKCE["code_challenge"])
    return await relying.redeem(code, code_verifier=VERIFIER, **signed_assertion(relying, key, **header))


async def test_md_10_a_removed_client_and_an_unlisted_host_are_refused_everywhere(
    installed_url: str, tmp_path: Path, documents: DocumentServer
) -> None:
    client_id, removed_id = documents.publish(), documents.publish("/removed.json")
    async with running_service(installed_url, tmp_path, environment=documents.settings) as service:
        anna = await service.services.accounts.administration.create(
            login=LOGIN, nick="Anna", password="correct horse battery", origin=CALLER.origin
        )
        relying, removed = relying_party(service, client_id), relying_party(service, removed_id)
        for one in (relying, removed):
            await service.services.oauth.clients.metadata.find(one.client.client_id, CALLER)
        token = (await relying.tokens(await issue_code(relying, anna), code_verifier=VERIFIER))["refresh_token"]
        await service.services.oauth.clients.commands.remove(removed_id, CALLER.origin)
        assert is_error_page(await service.client.get(removed.authorize_path(**PKCE)))
        assert is_error_page(await service.client.get(removed.authorize_path(**PKCE)))
        assert documents.fetches == ["/client.json", "/removed.json", "/removed.json"]
    async with running_service(installed_url, tmp_path) as service:
        relying = relying_party(service, client_id)
        assert is_error_page(await service.client.get(relying.authorize_path(**PKCE)))
        assert oauth_error(await relying.refresh(token)) == UNPROVED
        for path in DISCOVERY:
            assert (await service.client.get(path)).json()["client_id_metadata_document_supported"] is False
    assert len(documents.fetches) == 3


async def issue_code(relying: RelyingPartyClient, user: User) -> str:
    return await relying.issue_code(user, code_challenge=PKCE["code_challenge"])


async def test_md_11_a_client_that_no_one_allowed_is_deleted_after_a_day(
    service: RunningService, documents: DocumentServer, account_browser: AccountBrowser
) -> None:
    documents.documents["/logo.png"] = http_response(png("navy"), Content_Type="image/png")
    unused = documents.publish("/unused.json", logo_uri=documents.url("/logo.png"))
    used = documents.publish("/used.json")
    await a_public_client(service)
    for client_id in (unused, used):
        await authorize(account_browser, relying_party(service, client_id))
        await account_browser.follow()
    logo = (await service.services.oauth.clients.commands.get(unused)).logo
    await account_browser.post("/sign-in/consent", decision="allow")
    await service.clock.advance(2 * 86_400)
    await service.services.storage.sweep(service.clock.now())
    assert {client.client_id for client in await service.services.oauth.clients.commands.list()} == {"app", used}
    assert (await service.client.get(f"/images/{logo}")).status_code == 404
    state = await ProvisionStorage(service.services.storage.runner, service.services.storage.ban_copies).read_state(
        ReadScope(), service.clock.now()
    )
    assert [client.client_id for client in state.clients] == ["app"], "no file exports or prunes the others"
    documents.publish("/unused.json", client_name="Again")
    client = await service.services.oauth.clients.metadata.find(unused, CALLER)
    assert client.name == f"Again ({documents.host})"


async def test_md_12_the_logo_of_a_document_is_fetched_with_it_and_shown_on_consent(
    service: RunningService, documents: DocumentServer, account_browser: AccountBrowser
) -> None:
    documents.documents["/logo.png"] = http_response(png("navy") + SVG, Content_Type="image/png")
    client_id = documents.publish(logo_uri=documents.url("/logo.png"))
    await authorize(account_browser, relying_party(service, client_id))
    consent = await account_browser.follow()
    logo = (await service.services.oauth.clients.commands.get(client_id)).logo
    assert f'src="/images/{logo}"' in consent.text
    assert "logo.png" not in consent.text
    assert SVG not in (await service.client.get(f"/images/{logo}")).content
    await authorize(account_browser, relying_party(service, client_id))
    assert documents.fetches == ["/client.json", "/logo.png"]  # within its cache time nothing is fetched

    documents.documents["/logo.png"] = http_response(SVG, Content_Type="image/svg+xml")
    await service.clock.advance(301)
    await authorize(account_browser, relying_party(service, client_id))
    assert "/images/" not in (await account_browser.follow()).text
    assert documents.fetches[2:] == ["/client.json", "/logo.png"]
    assert (await service.client.get(f"/images/{logo}")).status_code == 404


async def test_md_12_a_bad_or_foreign_logo_is_no_error_and_calls_no_unlisted_host(
    service: RunningService, documents: DocumentServer
) -> None:
    foreign = StubServer()  # of the same name, with a port that is not listed
    async with run_stub_server(foreign):
        for number, logo_uri in enumerate(
            (
                *(
                    f"https://localhost:{foreign.port}/logo.png",
                    documents.url("/missing.png"),
                    "https://127.0.0.1:1/a.png",
                ),
                *(f"https://user@{documents.host}/a.png", f"http://{documents.host}/a.png", 7, {"a": []}),
            )
        ):
            client_id = documents.publish(f"/{number}.json", logo_uri=logo_uri)
            client = await service.services.oauth.clients.metadata.find(client_id, CALLER)
            assert (client.logo, client.name) == ("", f"Notes ({documents.host})"), logo_uri
        assert foreign.connections == 0
    assert [path for path in documents.fetches if path.endswith(".png")] == ["/missing.png"]
