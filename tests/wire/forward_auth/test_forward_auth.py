"""Forward auth: sign-in to a protected site, what its proxy learns, and what ends it (R9; checklist section 17)."""

import asyncio
import json
from urllib.parse import urlencode

import pytest

from gatehouse.accounts.guests.model import GUEST_ISSUER
from gatehouse.accounts.model import GUEST_PROVIDER
from gatehouse.audit.events import AuditEvent
from gatehouse.tokens.verifier import parse_jws
from tests.support.browser import PASSWORD, AccountBrowser, HttpBrowser
from tests.support.builders import ORIGIN, a_record, an_identity
from tests.support.console import apply_document
from tests.support.database_contents import read_all_tables, tables_that_mention
from tests.support.guests import turn_guests_on
from tests.support.logs import capture_logs
from tests.support.service import RunningService
from tests.support.sites import (
    OUTSIDER,
    READER,
    SHOP_APPLICATION,
    SHOP_SITE,
    WIKI_APPLICATION,
    WIKI_SITE,
    SiteBrowser,
    forwarding_headers,
    query_fields,
)
from tests.support.terms import terms_until_asked_again

X_AUTH = ("x-auth-user", "x-auth-email", "x-auth-name", "x-auth-roles", "x-auth-token")
PAGE = {"accept": "text/html"}


async def test_visitor_signs_in_once_and_the_proxy_learns_who_they_are(
    service: RunningService, visitor: SiteBrowser
) -> None:
    asked = await visitor.ask(X_Forwarded_Uri="/page?id=7")
    assert asked.status_code == 401
    assert asked.headers["location"] == f"{WIKI_SITE}/.gatehouse/sign-in?to=%2Fpage%3Fid%3D7"
    done = await visitor.sign_in()
    assert (done.status_code, done.headers["location"]) == (303, "/page?id=7")
    cookie = next(line for line in done.headers.get_list("set-cookie") if "gh_site=" in line)
    assert cookie.startswith("__Host-gh_site=")
    assert "; HttpOnly; Path=/; SameSite=lax; Secure" in cookie
    assert "strict-transport-security" not in done.headers

    passed = await visitor.ask(query=f"?application_id={WIKI_APPLICATION}")
    assert passed.status_code == 200
    told = {name: passed.headers[name] for name in X_AUTH[:4]}
    assert told == {
        "x-auth-user": READER,
        "x-auth-email": "rea@studio.example",
        "x-auth-name": "R%C3%A9a%2C%20%25",
        "x-auth-roles": "reader",
    }
    claims = parse_jws(passed.headers["x-auth-token"]).payload
    now = service.clock.now()
    assert {name: claims[name] for name in ("typ", "iss", "aud", "sub", "email", "roles", "iat", "exp")} == {
        "typ": "forward_auth",
        "iss": service.base_url,
        "aud": WIKI_SITE,
        "sub": READER,
        "email": "rea@studio.example",
        "roles": ["reader"],
        "iat": now,
        "exp": now + 300,
    }
    # The second site needs no form, and one token serves many requests.
    assert (await visitor.sign_in(origin=SHOP_SITE)).status_code == 303
    await service.clock.advance(200)
    assert (await visitor.ask()).headers["x-auth-token"] == passed.headers["x-auth-token"]
    await service.clock.advance(41)
    renewed = await visitor.ask()
    assert renewed.headers["x-auth-token"] != passed.headers["x-auth-token"]
    records = await service.services.storage.audit.newest_records(10, READER, AuditEvent.SITE_SIGNED_IN)
    signed_in = [record.details for record in records]
    assert sorted(signed_in, key=str) == [{"site": SHOP_SITE}, {"site": WIKI_SITE}]


async def test_unverified_email_is_not_told(service: RunningService, visitor: SiteBrowser) -> None:
    await visitor.sign_in()
    verified = await visitor.ask()
    await apply_document(service, f'users: [{{user_id: "{READER}", email_verified: false}}]')
    asked = await visitor.ask()
    assert (verified.headers["x-auth-email"], asked.headers["x-auth-email"]) == ("rea@studio.example", "")
    assert "email" not in parse_jws(asked.headers["x-auth-token"]).payload


async def test_fa_01_headers_of_a_client_never_pass_and_are_set_on_every_answer(
    service: RunningService, visitor: SiteBrowser
) -> None:
    spoofed = {"X_Auth_User": OUTSIDER, "X_Auth_Roles": "admin"}
    answers = [
        await visitor.ask(**spoofed),
        await visitor.ask(query="?redirect=1", **spoofed, **PAGE),
        await visitor.ask(query="?rule=..", **spoofed),
        await visitor.ask(origin="https://unknown.example", **spoofed),
        await service.client.get(
            "/proxy/auth", headers=forwarding_headers(WIKI_SITE, **{"X-Forwarded-Host": "a, b"})
        ),
    ]
    await visitor.sign_in()
    denied = await visitor.ask(query="?rule=page.edit", **spoofed)
    assert [answer.status_code for answer in (*answers, denied)] == [401, 302, 400, 403, 403, 403]
    for answer in (*answers, denied):
        assert [answer.headers[name] for name in X_AUTH] == [""] * len(X_AUTH)
    assert (await visitor.ask(**spoofed)).headers["x-auth-user"] == READER


async def test_fa_02_hand_over_works_once_for_a_minute_in_the_browser_that_began(
    service: RunningService, visitor: SiteBrowser
) -> None:
    back = (await visitor.sign_in_here(await visitor.begin(), "rea@studio.example")).removeprefix(WIKI_SITE)
    stranger = SiteBrowser(service=service, browser=visitor.browser)
    await stranger.begin()  # with a cookie of its own
    assert (await stranger.proxied(back)).status_code == 403
    assert (await visitor.proxied(back)).status_code == 403, "a refused code is used up"

    back = (await visitor.sign_in_here(await visitor.begin(), "")).removeprefix(WIKI_SITE)
    results = await asyncio.gather(*(visitor.proxied(back) for _ in range(4)))
    assert sorted(result.status_code for result in results) == [303, 403, 403, 403]

    back = (await visitor.sign_in_here(await visitor.begin(), "")).removeprefix(WIKI_SITE)
    await service.clock.advance(60)
    assert (await visitor.proxied(back)).status_code == 403


async def test_fa_03_code_and_session_of_one_site_are_refused_on_another(visitor: SiteBrowser) -> None:
    back = (await visitor.sign_in_here(await visitor.begin(), "rea@studio.example")).removeprefix(WIKI_SITE)
    await visitor.begin(SHOP_SITE)
    visitor.cookies[SHOP_SITE] = dict(visitor.cookies[WIKI_SITE])
    assert (await visitor.proxied(back, SHOP_SITE)).status_code == 403
    await visitor.sign_in()
    visitor.cookies[SHOP_SITE] = dict(visitor.cookies[WIKI_SITE])
    assert (await visitor.ask(SHOP_SITE)).status_code == 401
    assert (await visitor.ask()).status_code == 200
    for origin in (
        "https://wiki.example:444",
        "http://wiki.example",
        "https://x.wiki.example",
        "https://wiki.example.",
    ):
        visitor.cookies[origin] = dict(visitor.cookies[WIKI_SITE])
        assert (await visitor.ask(origin)).status_code == 403, origin
    assert (await visitor.ask("https://WIKI.example:443", Cookie=cookie_line(visitor))).status_code == 200
    other = await visitor.ask(query=f"?application_id={SHOP_APPLICATION}")
    assert other.status_code == 400


def cookie_line(visitor: SiteBrowser) -> str:
    return "; ".join(f"{name}={value}" for name, value in visitor.cookies[WIKI_SITE].items())


async def test_fa_04_no_redirect_leaves_the_site_or_reaches_an_unknown_one(visitor: SiteBrowser) -> None:
    asked = query_fields(await visitor.begin())
    for to in ("//evil.example", "/\\evil.example", "https://evil.example/", "", "/a\r\nB: c", "/.gatehouse/sign-in"):
        started = await visitor.proxied(f"/.gatehouse/sign-in?{urlencode({'to': to})}")
        page = await visitor.browser.get(f"/proxy/auth/sign-in?{urlencode({**asked, 'to': to})}")
        assert (started.status_code, page.status_code) == (400, 400), to
    for changes in ({"site": "https://evil.example"}, {"site": f"{WIKI_SITE}\0"}, {"site": f"{WIKI_SITE}/"}):
        page = await visitor.browser.get(f"/proxy/auth/sign-in?{urlencode({**asked, **changes})}")
        assert page.status_code in (400, 404), changes
    told = await visitor.ask(X_Forwarded_Uri="//evil.example/")
    assert told.headers["location"] == f"{WIKI_SITE}/.gatehouse/sign-in?to=%2F"


async def test_fa_05_cookies_that_are_doubled_or_unprefixed_do_not_count(visitor: SiteBrowser) -> None:
    await visitor.sign_in()
    there = visitor.cookies[WIKI_SITE]
    secret = there["__Host-gh_site"]
    assert (await visitor.ask(Cookie=f"gh_site={secret}")).status_code == 401
    assert (await visitor.ask(Cookie=f"__Host-gh_site=x; __Host-gh_site={secret}")).status_code == 401
    assert (await visitor.ask(Cookie=f"__Host-gh_site={secret}")).status_code == 200
    # The cookie of the person's own session opens no site, and that of a site no page here.
    session = dict(visitor.browser.cookies)["gh_session"]
    assert (await visitor.ask(Cookie=f"__Host-gh_site={session}")).status_code == 401
    page = await visitor.service.client.get("/account", headers={"Cookie": f"gh_session={secret}"})
    assert page.status_code == 303


async def test_fa_06_forwarding_headers_count_from_trusted_proxies_only(
    visitor: SiteBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    await visitor.sign_in()
    monkeypatch.setattr("gatehouse.web.http.client_address.any_network_contains", lambda *_: False)
    refused = await visitor.ask()
    assert refused.status_code == 403
    assert "server.trusted_proxies" in refused.json()["error"]
    started = await visitor.proxied("/.gatehouse/sign-in?to=/")
    assert started.status_code == 403


async def test_fa_07_session_on_the_site_ends_with_the_persons(service: RunningService, visitor: SiteBrowser) -> None:
    await visitor.sign_in()
    sessions = service.services.accounts.sessions
    assert (await visitor.ask()).status_code == 200
    session = (await sessions.of_user(READER))[0]
    # Sign-out everywhere else keeps the person's session here, and still ends those on sites.
    await sessions.sign_out_everywhere(READER, ORIGIN, keep=session)
    assert (await visitor.ask()).status_code == 401
    await visitor.sign_in()
    assert (await visitor.ask()).status_code == 200
    await sessions.end_as_administrator(READER, session.session_id, ORIGIN)
    assert (await visitor.ask()).status_code == 401
    await visitor.sign_in()
    await service.services.accounts.administration.block(READER, ORIGIN)
    assert (await visitor.ask()).status_code == 401


async def test_tm_08_site_asks_for_the_terms_of_its_application(
    service: RunningService, visitor: SiteBrowser
) -> None:
    await visitor.sign_in()
    document = {"title": "Terms", "url": "https://studio.example/terms", "version": "1"}
    wanted = {f"terms.terms.{name}": value for name, value in document.items()}
    await service.services.settings_editor.save(
        {**wanted, "terms.terms.applications": [str(WIKI_APPLICATION)]}, ORIGIN
    )
    assert (await visitor.sign_in(origin=SHOP_SITE)).status_code == 303
    await visitor.browser.get(await visitor.begin())
    page = await visitor.browser.follow()
    assert (page.url.path, "Terms" in page.text) == ("/terms", True)
    declined = await visitor.browser.post("/terms", decision="decline")
    assert (declined.status_code, "Not accepted" in declined.text) == (200, True)
    await visitor.browser.get(await visitor.begin())
    await visitor.browser.follow()
    passed = await visitor.browser.post("/terms", decision="accept")
    assert passed.headers["location"].startswith(f"{WIKI_SITE}/.gatehouse/return?code=")
    assert (await visitor.sign_in()).status_code == 303


async def test_site_gets_the_person_who_accepts_its_terms_in_another_window(
    service: RunningService, visitor: SiteBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    await visitor.sign_in()
    monkeypatch.setattr(service.services.sign_in_flows, "find_terms_for", terms_until_asked_again())
    response = await visitor.browser.get(await visitor.begin())
    assert response.headers["location"].startswith(f"{WIKI_SITE}/.gatehouse/return?code=")


async def test_fa_10_session_from_a_short_lived_token_is_not_handed_over(
    service: RunningService, visitor: SiteBrowser
) -> None:
    body = {"login": "rea@studio.example", "password": PASSWORD, "short_token": "1"}
    proven = {"X-Forwarded-For": "203.0.113.9"}
    stoken = (await service.client.post("/proxy/api/login", json=body, headers=proven)).json()["stoken"]
    visitor.browser.client.headers.update(proven)
    await visitor.browser.get(f"/?stoken={stoken}")
    assert (await visitor.browser.post("/sign-in/stoken")).status_code == 303
    started = await visitor.browser.get(await visitor.begin())
    assert started.headers["location"].startswith("/sign-in?")


@pytest.mark.both_databases
async def test_gu_13_guest_opens_sites_of_the_applications_for_guests_only(
    service: RunningService, visitor: SiteBrowser
) -> None:
    """A guest whom an administrator gave an address signs in in the browser, and stays a guest."""
    await visitor.sign_in()
    identity = an_identity(READER, issuer=GUEST_ISSUER, provider=GUEST_PROVIDER)
    await service.services.storage.profile.link_identity(identity, a_record(AuditEvent.IDENTITY_LINKED), (), rev=0)
    for applications, status in ((WIKI_APPLICATION, 200), (SHOP_APPLICATION, 403), (WIKI_APPLICATION, 200)):
        await turn_guests_on(service, applications=[str(applications)])
        assert (await visitor.ask()).status_code == status


async def test_use_of_the_site_counts_as_use_of_the_session(service: RunningService, visitor: SiteBrowser) -> None:
    await visitor.sign_in()
    for _ in range(2):
        await service.clock.advance(2 * 86_400)  # a session idles out after three days
        assert (await visitor.ask()).status_code == 200


async def test_permission_is_checked_on_every_request(service: RunningService, visitor: SiteBrowser) -> None:
    await visitor.sign_in()
    more = await visitor.ask(query="?rule=page.edit")
    assert more.status_code == 403
    assert more.headers["content-type"] == "text/html; charset=utf-8"
    assert "wiki.example" in more.text
    await apply_document(
        service, f'applications: [{{application_id: {WIKI_APPLICATION}, users: {{"{READER}": {{roles: []}}}}}}]'
    )
    assert (await visitor.ask()).status_code == 403
    there = await visitor.browser.get(f"/proxy/auth/denied?site={WIKI_SITE}")
    assert (there.status_code, "wiki.example" in there.text) == (403, True)
    otto = SiteBrowser(service=service, browser=HttpBrowser(service))
    assert (await otto.sign_in_here(await otto.begin(), "otto@studio.example")) == (
        "/proxy/auth/denied?site=https%3A%2F%2Fwiki.example"
    )
    await otto.browser.client.aclose()


async def test_redirect_is_for_pages_only(visitor: SiteBrowser) -> None:
    async def status(**headers: str) -> int:
        return (await visitor.ask(query="?redirect=1", **headers)).status_code

    assert await status(Accept="text/html") == 302
    assert await status(Accept="*/*") == 401
    assert await status(Accept="text/html", Sec_Fetch_Mode="cors") == 401
    assert await status(Sec_Fetch_Mode="navigate") == 302
    assert await status(Accept="text/html", X_Forwarded_Method="POST") == 401
    assert (await visitor.ask(Accept="text/html")).status_code == 401


async def test_op_14_site_sessions_are_exported_and_erased(service: RunningService, visitor: SiteBrowser) -> None:
    await visitor.sign_in()
    account = AccountBrowser(service)
    await account.sign_in_and_open_account("rea@studio.example")
    body = json.loads((await account.submit("/account/export")).content)
    assert [entry["site"] for entry in body["site_sign_ins"]] == [WIKI_SITE]
    await account.get("/account/delete")
    await account.submit("/account/delete", login="rea@studio.example")
    await account.client.aclose()
    left = tables_that_mention(await read_all_tables(service.services.storage), READER)
    assert not left & {"site_sessions", "once"}
    assert (await visitor.ask()).status_code == 401


@pytest.mark.both_databases
async def test_fa_13_proxy_must_name_the_application_once_two_have_sites(
    service: RunningService, visitor: SiteBrowser
) -> None:
    await visitor.sign_in()
    with capture_logs() as stream:
        refused = [
            await visitor.ask_unnamed(),
            await SiteBrowser(service=service, browser=visitor.browser).ask_unnamed(),
        ]
    assert [answer.status_code for answer in refused] == [403, 403], "signed in or not"
    assert all("forward_auth.require_application" in answer.json()["error"] for answer in refused)
    assert [answer.headers[name] for answer in refused for name in X_AUTH] == [""] * 2 * len(X_AUTH)
    logged = [line for line in map(json.loads, stream.lines()) if line["event"] == "refused"]
    assert {line["kind"] for line in logged} == {"ApplicationRequired"}
    assert f"{WIKI_SITE} without application_id={WIKI_APPLICATION}" in logged[0]["detail"]
    assert (await visitor.ask()).status_code == 200
    assert (await visitor.ask_unnamed("https://unknown.example")).json()["error"].startswith("This site is not"), (
        "an unknown site is told first"
    )

    await service.services.settings_editor.save({"forward_auth.require_application": False}, ORIGIN)
    assert (await visitor.ask_unnamed()).status_code == 200
    await service.services.settings_editor.save({"forward_auth.require_application": None}, ORIGIN)
    assert (await visitor.ask_unnamed()).status_code == 403
    await apply_document(service, f"applications: [{{application_id: {SHOP_APPLICATION}, protected_sites: {{}}}}]")
    assert (await visitor.ask_unnamed()).status_code == 200, "only one application has sites now"


@pytest.mark.both_databases
async def test_denied_pages_and_sign_ins_are_counted_with_their_reason(
    service: RunningService, visitor: SiteBrowser
) -> None:
    failures, storage = service.services.core.failed_sign_ins, service.services.storage.failed_sign_ins
    await visitor.sign_in()
    assert (await visitor.ask(query="?rule=page.edit", **PAGE)).status_code == 403
    assert (await visitor.ask(query="?rule=page.edit")).status_code == 403  # not a page: a part of one
    await failures.flush()
    (counted,) = await storage.failures_of_user(READER, 0, 10)
    assert (counted.reason, counted.times) == ("not_admitted", 1)
    await apply_document(service, f'bans: [{{user_id: "{READER}", application_id: {WIKI_APPLICATION}}}]')
    assert (await visitor.ask(**PAGE)).status_code == 403
    refused = await visitor.sign_in_here(await visitor.begin(), "rea@studio.example")
    assert refused.startswith("/proxy/auth/denied?")
    await failures.flush()
    found = await storage.failures_of_user(READER, 0, 10)  # of the proxy's request and of the browser's own
    counted_as = sorted((one.reason.value, one.times) for one in found)
    assert counted_as == [("banned", 1), ("banned", 1), ("not_admitted", 1)]
