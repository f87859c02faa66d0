"""People in the console: search, recorded changes, and always an administrator left."""

import asyncio
import re
from functools import partial
from typing import Any

import httpx2
import pyotp
import pytest
from msgspec.structs import replace

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.model import User
from gatehouse.admin.people_search import PeopleQuestion, PeopleSearchStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.kernel.times import iso8601
from gatehouse.keys.encoding import encode_base64url
from gatehouse.oauth.model import Consent
from gatehouse.storage.accounts.users import update_user
from gatehouse.web.console.person import PersonAction
from tests.support.browser import PASSWORD, HttpBrowser, hidden_fields
from tests.support.builders import NOW, ORIGIN, PASSKEY_HOST, a_passkey, a_record, a_user
from tests.support.console import (
    ADA,
    DEV,
    MAX,
    OLGA,
    PIA,
    PROJECT,
    SHOP,
    STUDIO,
    WIKI,
    ConsoleBrowsers,
    apply_document,
)
from tests.support.guests import Device, confirm_upgrade, register_upgrade, turn_guests_on
from tests.support.mailbox import new_messages
from tests.support.service import RunningService
from tests.support.studio import FACTOR
from tests.wire.console.test_api_calls import jwt_of, shown_in
from tests.wire.console.test_files import MORE

HERE = "/console/people"
TABS = ("", "/permissions", "/access", "/sessions", "/methods", "/bans", "/data", "/activity", "/email")
ACTS = ("/act/erase", "/methods/remove")
SETTINGS = (
    *("", "/email", "/sign-in", "/branding/preview", "/health", "/configuration"),
    "/keys/rotate?purpose=tokens&alg=RS256",
)


async def read_user(studio: RunningService, user_id: str) -> User:
    return await studio.services.storage.accounts.user(user_id)


async def newest(studio: RunningService, user_id: str, event: str) -> AuditRecord:
    return (await studio.services.storage.audit.newest_records(1, user_id, event))[0]


async def act(browser_client: HttpBrowser, user_id: str, name: str, **typed: str) -> int:
    """Submit the confirmation page of the action."""
    path = f"{HERE}/{user_id}/act/{name}"
    await browser_client.get(path)
    return (await browser_client.post(path, **typed)).status_code


async def test_only_administrators_see_people_and_settings(console_browsers: ConsoleBrowsers) -> None:
    pages = [HERE, f"{HERE}/new", f"{HERE}/bans"]
    pages += [f"{HERE}/{PIA}{tab}" for tab in (*TABS, *ACTS)]
    pages += [f"/console/settings{tab}" for tab in SETTINGS]
    for user_id, answer in ((ADA, 200), (OLGA, 403), (PIA, 403)):
        browser_client = await console_browsers(user_id)
        assert {(path, (await browser_client.get(path)).status_code) for path in pages} == {
            (path, answer) for path in pages
        }
        await browser_client.get("/console/projects")
        sent = await browser_client.post(f"{HERE}/{DEV}/act/sign_out")
        assert sent.status_code == (303 if user_id == ADA else 403)
        offered = "/console" in (await browser_client.get("/account")).text
        assert offered is (user_id != PIA)  # the account page links to the console for people who can use it


async def test_guests_are_found_by_their_tag_and_named_by_the_account_they_were_merged_into(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await turn_guests_on(studio)
    merged, playing = Device(), Device()
    former, guest = await merged.log_in(studio), await playing.log_in(studio)
    pia = await console_browsers(PIA)
    page = await confirm_upgrade(pia, await register_upgrade(studio, merged), "pia@players.example")
    assert page.url.path == "/game/done"
    ada = await console_browsers(ADA)
    for filtered in ("tag=guest", "among=guests", "provider=guest"):
        listed = (await ada.get(f"{HERE}?{filtered}")).text
        assert (guest["nick"] in listed, former["nick"] in listed) == (True, False), filtered
    assert former["user_id"] in (await ada.get(f"{HERE}/{PIA}")).text
    assert await act(ada, guest["user_id"], "promote") == 403, "a guest holds no protected role"


@pytest.mark.both_databases
async def test_people_are_found_by_any_part_of_their_names_filtered_and_sorted(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    await studio.services.accounts.administration.create(
        login="arger@x.example", nick="Ärger", password=None, origin=AuditOrigin(actor="t")
    )
    await studio.services.accounts.administration.block(MAX, AuditOrigin(actor="t"))
    await studio.services.core.tally.flush()
    expected = {
        "q=pi": {"Pia"},
        "q=OLGA@ST": {"Olga"},
        f"q={PIA[:6]}": {"Ada", "Olga", "Dev", "Max", "Pia"},
        f"q={PIA}": {"Pia"},
        "q=%C3%84r": {"Ärger"},
        "q=@players": {"Pia"},
        "q=LAYERS.ex": {"Pia"},
        f"q={PIA[4:]}": {"Pia"},
        "q=lg": {"Olga"},
        "q=_": set(),
        "among=administrators": {"Ada"},
        "among=blocked": {"Max"},
        "among=service_accounts": set(),
        "among=no_sign_in": {"Ärger"},
        "among=guests": set(),
        "provider=acme": set(),
        "application_id=Shop&role=moderator": {"Pia"},
        "application_id=Shop&role=cashier": set(),
        "seen=week": {"Ada"},
        "seen=week&among=blocked": set(),
        "seen=not_quarter&q=pia": {"Pia"},
        "tag=beta": {"Pia"},
        "tag=beta&q=o": set(),
        "tag=beta&among=everybody&q=p": {"Pia"},
        "among=blocked&q=m": {"Max"},
    }
    for query, names in expected.items():
        lines = (await ada.get(f"{HERE}?format=csv&{query}")).text.splitlines()[1:]
        assert {line.split(",")[1] for line in lines} == names, query
    orders = {"name": ["Ada", "Dev", "Max", "Olga", "Pia"], "-name": ["Pia", "Olga", "Max", "Dev", "Ada"]}
    for order, names in orders.items():
        lines = (await ada.get(f"{HERE}?format=csv&sort={order}&q=100000000")).text.splitlines()[1:]
        assert [line.split(",")[1] for line in lines] == names, order
    for user_id in (DEV, OLGA):
        await studio.clock.advance(90)
        await console_browsers(user_id)
        await studio.services.core.tally.flush()
    for order, names in {"-seen": ["Olga", "Dev", "Ada"], "seen": ["Ada", "Dev", "Olga"]}.items():
        lines = (await ada.get(f"{HERE}?format=csv&sort={order}&seen=week")).text.splitlines()[1:]
        assert [line.split(",")[1] for line in lines] == names, order
    await studio.clock.advance(90)
    await ada.get(HERE)  # the use of a session counts too
    await studio.services.core.tally.flush()
    lines = (await ada.get(f"{HERE}?format=csv&sort=-seen")).text.splitlines()
    assert [line.split(",")[1] for line in lines[1:4]] == ["Ada", "Olga", "Dev"]
    assert lines[-1].endswith(",")  # never seen
    by_email = (await ada.get(f"{HERE}?format=csv&sort=-email")).text.splitlines()[1]
    assert "pia@players.example" in by_email
    assert 'aria-sort="ascending"' in (await ada.get(f"{HERE}?sort=name")).text
    lonely = await ada.get(f"{HERE}?role=moderator")
    assert (lonely.status_code, "Choose the application of the role." in lonely.text) == (400, True)
    page = (await ada.get(f"{HERE}?q=pi")).text
    assert "pia@<wbr>players.example" in page
    assert "ada@" not in page


@pytest.mark.both_databases
async def test_search_compares_the_newest_accounts_and_says_so(
    studio: RunningService, console_browsers: ConsoleBrowsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = await console_browsers(ADA)
    assert "accounts were searched" not in (await ada.get(f"{HERE}?q=studio.example")).text
    for number in range(3):
        await studio.clock.advance(1)
        await studio.services.accounts.administration.create(
            login=f"new{number}@studio.example", nick=f"New{number}", password=None, origin=AuditOrigin(actor="t")
        )
    monkeypatch.setattr("gatehouse.admin.people_search.MAX_SEARCHED", 2)

    async def found(query: str) -> list[str]:
        lines = (await ada.get(f"{HERE}?format=csv&{query}")).text.splitlines()[1:]
        return [line.split(",")[1] for line in lines]

    assert await found("q=studio.example") == ["New2", "New1", "New0"]
    assert await found("q=studio.example&sort=name") == ["New0", "New1", "New2"]
    assert await found("q=lg") == []
    assert await found("q=olga@studio.example") == await found(f"q={OLGA}") == ["Olga"]
    assert len(await found("")) == 8
    page = (await ada.get(f"{HERE}?q=lg")).text
    assert "Only the newest 2 accounts were searched." in page
    project = f"/console/projects/{PROJECT}"
    (group, *_) = re.findall(rf"{project}/groups/[0-9a-z_-]+", (await ada.get(f"{project}/groups")).text)
    for picker in (f"{project}/members/new?", f"{group}?", "/console/options?kind=person&"):
        by_part, by_nick = [(await ada.get(f"{picker}q={text}")).text for text in ("lg", "olga")]
        assert "Only the newest 2 accounts were searched." in by_part, picker
        assert (OLGA in by_part, OLGA in by_nick) == (False, True), picker
        page = (await ada.get(f"{picker}q=ew")).text
        assert [nick in page for nick in ("New0", "New1", "New2")] == [True, True, True], picker
    searched, after = set[str](), None
    store = PeopleSearchStore(studio.services.storage.runner)
    for _ in range(9):
        answer = await store.search(PeopleQuestion(text="OLG"), after, 25)
        searched |= {user.nick for user in answer.users}
        after = answer.after
        if after is None:
            break
    assert (searched, after) == ({"Olga"}, None)


async def test_selected_people_are_tagged_blocked_and_given_roles_after_a_review(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    selected = f"{HERE}/selected?user_id={PIA}&user_id={DEV}&user_id=999"
    tagging = await ada.get(f"{selected}&action=tag")
    assert ("Tag 2 people" in tagging.text, "pia@players.example" in tagging.text) == (True, True)
    people = {"user_id": [PIA, DEV], "csrf": hidden_fields(tagging.text)["csrf"]}
    path = f"{HERE}/selected"
    tagged = await ada.client.post(path, data={**people, "action": "tag", "tag": "league"})
    assert tagged.status_code == 303
    assert "league" in (await read_user(studio, PIA)).tags & (await read_user(studio, DEV)).tags
    assert "beta" in (await read_user(studio, PIA)).tags
    review = await ada.client.post(path, data={**people, "action": "role", "role": "cashier", "end": "week"})
    assert (review.status_code, review.text.count("<strong>cashier</strong>")) == (200, 2)
    people["user_id"] = [DEV, ADA]
    blocked = await ada.client.post(path, data={**people, "action": "block"})
    assert (blocked.status_code, "1 person was not changed" in blocked.text) == (409, True)
    assert ((await read_user(studio, DEV)).blocked, (await read_user(studio, ADA)).blocked) == (True, False)
    for fields in ({"action": "block", "user_id": []}, {"action": "fly"}, {"action": "tag", "tag": " "}):
        assert (await ada.client.post(path, data={**people, **fields})).status_code == 400, fields


async def test_a_new_person_is_invited_or_gets_a_password_that_will_do(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    await ada.get(f"{HERE}/new")
    page = await ada.post(f"{HERE}/new", login="nora@studio.example", lang="de", entrance="invite")
    assert "No mail server is configured, so no email reaches nora@studio.example" in page.text
    link = re.search(rf"{studio.base_url}(/invite\?token=[\w-]+)", page.text)
    assert link is not None
    assert (await studio.client.get(link[1])).status_code == 200
    assert (await studio.services.storage.mail.outbox_status()).waiting == 1
    await ada.get(f"{HERE}/new")
    page = await ada.post(
        f"{HERE}/new", login="otto@studio.example", nick="Otto", entrance="password", password="1234"
    )
    assert page.status_code == 400
    assert "otto@studio.example" in page.text
    assert "1234" not in page.text
    await ada.post(f"{HERE}/new", login="pia@players.example", entrance="password", password=PASSWORD)
    assert ada.page is not None
    assert ada.page.status_code == 409


async def test_an_account_is_changed_field_by_field_and_a_stale_save_changes_nothing(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, page_of_pia = await console_browsers(ADA), f"{HERE}/{PIA}/edit"
    await ada.get(page_of_pia)
    await ada.post(page_of_pia, nick="Pia B.", lang="de", country="se", tags="beta\r\nvip", purchases="skins")
    assert "<p>Saved</p>" in (await ada.follow()).text
    pia = await read_user(studio, PIA)
    assert (pia.nick, pia.lang, pia.country, pia.tags, pia.purchases) == (
        *("Pia B.", "de", "SE"),
        *(frozenset({"beta", "vip"}), frozenset({"skins"})),
    )
    record = await newest(studio, PIA, "user.changed")
    assert (record.actor, record.details) == (ADA, {"fields": "nick, lang, country, tags, purchases"})
    await studio.services.accounts.administration.set_tags(PIA, frozenset({"staff"}), AuditOrigin(actor="t"))
    page = await ada.post(page_of_pia, nick="Pia C.", lang="de", country="SE", tags="beta", version=str(pia.version))
    assert page.status_code == 409
    assert "Someone else changed this" in page.text
    assert "staff" in page.text
    assert (await read_user(studio, PIA)).nick == "Pia B."
    page = await ada.post(page_of_pia, nick="Pia", lang="de", country="SE", tags="email_verified")
    assert page.status_code == 400  # the service manages this one itself

    await ada.get(f"{HERE}/{PIA}/email")
    await ada.post(f"{HERE}/{PIA}/email", login="pia@studio.example", email_verified="yes")
    user = await read_user(studio, PIA)
    assert (user.login, user.email_verified) == ("pia@studio.example", True)
    assert (await studio.services.storage.mail.outbox_status()).waiting == 1  # the old address is notified
    await ada.get(f"{HERE}/{PIA}/email")
    assert (await ada.post(f"{HERE}/{PIA}/email", login="OLGA@studio.example")).status_code == 409


async def test_blocking_signing_out_and_erasing_end_what_they_say(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, pia = await console_browsers(ADA), await console_browsers(PIA)
    sessions = f"{HERE}/{PIA}/sessions"
    assert "Firefox, Linux" in (await ada.get(sessions)).text
    await ada.post(sessions)  # with the session of the first form on the page
    assert "Session ended" in (await ada.follow()).text
    assert (await pia.get("/account")).status_code == 303
    assert (await newest(studio, PIA, "session.closed")).actor == ADA
    pia = await console_browsers(PIA)
    assert await act(ada, PIA, "block") == 303
    assert (await pia.get("/account")).status_code == 303
    assert (await read_user(studio, PIA)).blocked
    assert await act(ada, PIA, "link") == 403  # no link opens a blocked account
    assert await act(ada, PIA, "unblock") == 303
    assert await act(ada, PIA, "link") == 303
    assert "<strong>1</strong> assigned role" in (await ada.get(f"{HERE}/{PIA}/act/erase")).text
    assert await act(ada, PIA, "erase", typed="Pia") == 400
    assert await act(ada, PIA, "erase", typed=PIA) == 303
    with pytest.raises(UserNotFound):
        await read_user(studio, PIA)
    assert "Mind Games" in (await ada.get(f"{HERE}/{OLGA}/act/erase")).text
    assert await act(ada, OLGA, "erase", typed=OLGA) == 409  # the project would have no owner
    assert (await ada.get(f"{HERE}/{OLGA}/act/nonsense")).status_code == 404


async def test_someone_administers_always(studio: RunningService, console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    for name, typed in (("block", ""), ("demote", ""), ("erase", ADA)):
        assert await act(ada, ADA, name, typed=typed) == 409, name
    assert await act(ada, OLGA, "promote") == 303
    olga = await console_browsers(OLGA)
    assert (await olga.get(HERE)).status_code == 200
    assert await act(olga, ADA, "demote") == 303
    assert (await ada.get(HERE)).status_code == 403
    record = await newest(studio, ADA, "user_schema.saved")
    assert record.actor == OLGA
    answers = await asyncio.gather(act(olga, OLGA, "demote"), act(olga, OLGA, "block"))
    assert answers == [409, 409]


async def test_pn_06_closed_phone_is_opened_for_a_reason_on_record(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, here = await console_browsers(ADA), f"{HERE}/{OLGA}/methods"
    fields = {"phone": "+4915123456789", "phone_verified": True, "phone_code": True, "phone_closed": True}
    await studio.services.storage.runner.write(partial(update_user, replace(await read_user(studio, OLGA), **fields)))
    assert "Closed after too many wrong codes" in (await ada.get(here)).text
    await ada.get(f"{here}/open-phone")
    assert (await ada.post(f"{here}/open-phone", reason=" ")).status_code == 400
    await ada.post(f"{here}/open-phone", reason="Called her, mistyped")
    assert "Text message codes are accepted again." in (await ada.follow()).text
    opened = await read_user(studio, OLGA)
    assert (opened.phone_code, opened.phone_closed) == (True, False)
    record = await newest(studio, OLGA, "user.phone_opened")
    assert (record.actor, record.details) == (ADA, {"reason": "Called her, mistyped"})
    await ada.get(f"{here}/remove?factor=phone")
    await ada.post(f"{here}/remove", reason="Lost phone")
    assert not (await read_user(studio, OLGA)).has_second_factor


async def test_a_lost_factor_is_removed_for_a_reason_on_record(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, them = await console_browsers(ADA), studio.services
    await them.factors.email_codes.enable(await read_user(studio, OLGA), origin=AuditOrigin(actor=OLGA))
    page = (await ada.get(f"{HERE}/{OLGA}/methods")).text
    assert "10 left" in page
    assert "$argon2" not in page
    removal = f"{HERE}/{OLGA}/methods/remove"
    await ada.get(f"{removal}?factor=email")
    assert (await ada.post(removal, reason=" ")).status_code == 400
    assert (await read_user(studio, OLGA)).email_code
    await ada.post(removal, reason="Called her, lost mailbox")
    record = await newest(studio, OLGA, "factor.removed")
    assert (record.actor, record.details) == (ADA, {"factor": "email", "reason": "Called her, lost mailbox"})
    assert not (await read_user(studio, OLGA)).email_code
    await them.factors.email_codes.enable(await read_user(studio, OLGA), origin=AuditOrigin(actor=OLGA))
    before = (await read_user(studio, OLGA)).rev
    await ada.get(f"{removal}?factor=all")
    await ada.post(removal, reason="Stolen bag")
    after = await read_user(studio, OLGA)
    assert (after.has_second_factor, after.rev > before) == (False, True)
    assert (await newest(studio, OLGA, "factor.all_removed")).details == {"reason": "Stolen bag"}
    await ada.get(f"{removal}?factor=totp")
    assert (await ada.post(removal, reason="again")).status_code == 404


async def test_sessions_and_methods_api_answers_exactly_the_people_who_see_the_tab(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await apply_document(studio, MORE)
    browsers = {user_id: await console_browsers(user_id) for user_id in (ADA, OLGA, DEV, MAX, PIA)}
    secrets = await with_everything(studio, OLGA)
    data_by_tab = {}
    for tab in ("sessions", "methods"):
        for user_id, browser_client in browsers.items():
            page = await browser_client.get(f"{HERE}/{OLGA}/{tab}")
            headers = {"Authorization": f"Bearer {await jwt_of(studio, user_id)}", "Factor": FACTOR}
            ask = {"action": "get", "data": {"user_id": OLGA}}
            response = await studio.client.post(f"/api/permissions/user/{tab}", json=ask, headers=headers)
            expected = 200 if user_id == ADA else 403
            assert (page.status_code, response.status_code) == (expected, expected), (user_id, tab)
            if user_id == ADA:
                data_by_tab[tab] = shown_in(page.text)[0][1]
                assert data_by_tab[tab] == response.json()["data"]
                assert [secret for secret in secrets if secret in page.text + response.text] == []
                assert ("User ID</td>" in page.text) == (tab == "sessions"), "of that person, not of the reader"
                no_one = {"action": "get", "data": {"user_id": "77"}}
                unknown = await studio.client.post(f"/api/permissions/user/{tab}", json=no_one, headers=headers)
                assert unknown.status_code == 404
    assert data_by_tab["methods"] == {
        "password": True,
        "totp": {"since": iso8601(NOW), "used": iso8601(NOW)},
        "passkeys": [{"passkey_id": "a2V5", "name": "Laptop", "created": iso8601(NOW), "used": ""}],
        "email_code": True,
        "phone_code": False,
        "phone_closed": False,
        "recovery_left": 10,
    }
    (session,) = data_by_tab["sessions"]["sessions"]
    assert session.keys() == {"session_id", "device", "place", "address", "created", "seen"}
    assert (session["address"], session["seen"]) == ("127.0.0.1", iso8601(NOW))
    (client,) = data_by_tab["sessions"]["connected"]
    assert client == {"client_id": "web", "name": "Web shop", "scopes": ["openid"], "since": iso8601(NOW)}


async def with_everything(studio: RunningService, user_id: str) -> list[str]:
    """Give her every factor and a client; return the values that must never be shown."""
    them, storage, origin = studio.services, studio.services.storage, AuditOrigin(actor=user_id)
    enrolment = await them.factors.totp.begin_enrollment(await read_user(studio, user_id))
    code = pyotp.TOTP(enrolment.secret).at(NOW)
    recovery = await them.factors.totp.confirm_enrollment(await read_user(studio, user_id), code, origin=origin)
    await them.factors.email_codes.enable(await read_user(studio, user_id), origin=origin)
    await storage.passkeys.add_passkey(
        a_passkey(user_id=user_id, public_key=b"cose"), (), a_record(AuditEvent.FACTOR_ADDED), (), host=PASSKEY_HOST
    )
    consent = Consent(user_id=user_id, client_id="web", scopes=("openid",), given_at=NOW)
    await storage.consents.add_consent(consent, a_record())
    user = await read_user(studio, user_id)
    (session,) = await them.accounts.sessions.of_user(user_id)
    values = (user.sealed_totp or b"", session.digest, b"cose")
    encoded = [text for value in values for text in (value.hex(), encode_base64url(value).decode())]
    return [enrolment.secret, *recovery, "$argon2", *encoded]


async def test_permissions_of_a_person_are_shown_with_their_source(console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    page = (await ada.get(f"{HERE}/{PIA}/permissions")).text
    assert "Role moderator" in page
    assert "Role beta by condition" in page
    query = f"user_id={PIA}&amp;application_id=50001&amp;rule=private_data.user.kick"
    assert f'href="/console/access/check?{query}"' in page
    assert "store.refund" not in page
    lines = (await ada.get(f"{HERE}/{PIA}/permissions?application_id=50001&format=csv")).text.splitlines()
    assert ",private_data.user.mute,,assigned_role moderator," in lines
    olga = (await ada.get(f"{HERE}/{OLGA}/permissions?application_id=1&project_id=mind_games")).text
    assert "project.can_remove_project" in olga
    assert "In project Mind Games" in olga
    page_text = (await ada.get(f"{HERE}/{PIA}/access")).text
    assert "moderator" in page_text
    record = shown_in(page_text)[0][1]
    assignment = {"application_id": 50001, "role": "moderator", "scope": {}, "expired": 0, "ttl": 0}
    assert (record["roles"], [group["title"] for group in record["groups"]]) == ([assignment], ["Testers"])
    assert "Mind Games" in (await ada.get(f"{HERE}/{OLGA}/access")).text.partition('id="owned"')[2]


async def test_rules_of_their_own_are_listed_only_where_there_is_one(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    for user_id in (PIA, OLGA, DEV):  # roles at the root, in a project and on a resource
        assert "Direct permissions" not in (await ada.get(f"{HERE}/{user_id}/access")).text
    document = '{"$max": {private_data: {user: {kick: {value: true}}}}}'
    await apply_document(studio, f"applications: [{{application_id: $shop, name: Shop, users: {document}}}]")
    page = (await ada.get(f"{HERE}/{MAX}/access")).text
    assert ">Shop</a>: In the whole application" in page.partition('id="entries"')[2].partition("</section>")[0]


async def test_activity_about_and_by_a_person_is_separate(console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    await act(ada, PIA, "block")
    about = (await ada.get(f"{HERE}/{PIA}/activity")).text
    assert "<bdi>Ada</bdi> blocked <bdi>Pia</bdi>" in about
    assert ADA in about
    by = (await ada.get(f"{HERE}/{ADA}/activity?side=by")).text
    assert PIA in by
    assert PIA not in (await ada.get(f"{HERE}/{ADA}/activity?side=about")).text
    lines = (await ada.get(f"{HERE}/{PIA}/activity?format=csv")).text.splitlines()
    assert any(f",user.blocked,{ADA},{PIA}," in line for line in lines)


async def test_changes_to_a_person_are_described_in_words(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await apply_document(
        studio, STUDIO.replace("roles: [moderator]", "roles: [{name: moderator, expired: 1996620779}]")
    )
    page_text = (await (await console_browsers(ADA)).get(f"{HERE}/{PIA}/activity")).text
    assert '<span class="piece">moderator until <time datetime="2033-' in page_text
    assert "changed permissions of <bdi>Pia</bdi> in <bdi>Shop</bdi>" in page_text
    assert "{&#39;" not in page_text
    assert "What you may do" not in page_text


async def test_person_page_links_to_roles_and_their_removal(console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    page = (await ada.get(f"{HERE}/{PIA}/access")).text
    assert f'<a href="/console/roles/{SHOP}/moderator">moderator</a>' in page
    assert re.search(rf'href="{HERE}/{PIA}/access/role\?role={SHOP}(/|%2F)moderator&amp;[^"]*end=remove"', page)


async def test_unknown_person_id_is_not_found(console_browsers: ConsoleBrowsers) -> None:
    response = await (await console_browsers(ADA)).get(f"{HERE}/999")
    assert response.status_code == 404
    assert "No person has this ID." in response.text


async def test_a_person_is_banned_listed_and_let_in_again(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, path = await console_browsers(ADA), f"{HERE}/{PIA}/bans"
    await ada.get(path)
    nowhere = await ada.post(path, public_text="Cheating")
    assert "Choose what the person is banned from." in nowhere.text
    assert not re.search(r'name="scope"[^>]* checked', nowhere.text)
    wrong = await ada.post(path, scope="everything", until="2001-01-01T00:00", public_text="Cheating", reason="=1+1")
    assert "Choose a time in the future." in wrong.text
    ban = {"until": "2099-01-31T12:00", "public_text": "Cheating", "reason": "=1+1", "scope": str(SHOP)}
    review = await ada.post(path, **ban)
    assert "Ban Pia?" in review.text
    impact = review.text.partition('class="forecast"')[2]
    assert ("Impact in Shop" in impact, "1 person loses" in impact, "user.kick" in impact) == (True, True, True)
    assert "browser session" not in review.text  # they stay signed in elsewhere
    assert (await read_user(studio, PIA)).bans == ()
    back = await ada.post(path, do="edit")
    assert ('value="Cheating"' in back.text, 'value="2099-01-31T12:00"' in back.text) == (True, True)
    await ada.post(path, **ban)
    await ada.post(path, do="apply")
    page = await ada.follow()
    assert all(text in page.text for text in ("Cheating", "Person banned", "Lift", "banned"))
    (ban,) = (await read_user(studio, PIA)).bans
    assert (ban.application_id, ban.public_text) == (SHOP, "Cheating")
    listed = await ada.get(f"{HERE}/bans?application_id={SHOP}")
    assert (f"{HERE}/{PIA}/bans" in listed.text, "Cheating" in listed.text) == (True, True)
    file = (await ada.get(f"{HERE}/bans?state=active&format=csv")).text
    assert (file.count("Cheating"), "'=1+1" in file) == (1, True)
    assert "Cheating" not in (await ada.get(f"{HERE}/bans?state=lifted")).text
    await ada.get(path)
    await ada.post(f"{path}/lift", application_id=str(SHOP))
    assert "Ban lifted" in (await ada.follow()).text
    assert (await read_user(studio, PIA)).bans == ()


async def test_devices_are_banned_and_shared_ones_are_confirmed(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, path = await console_browsers(ADA), f"{HERE}/{PIA}/bans"
    for user_id in (PIA, DEV, MAX, OLGA):
        await studio.services.permissions.devices.record_sign_in(user_id, FACTOR)
    assert "Ban shared devices" not in (await ada.get(path)).text
    asked = await ada.post(path, public_text="Cheating", application_id=str(SHOP), device="yes")
    assert "More than 3 accounts used a device" in asked.text
    assert "Ban shared devices" in asked.text
    review = await ada.post(path, public_text="Cheating", application_id=str(SHOP), device="yes", confirm="yes")
    assert "<strong>3</strong> other accounts are banned" in review.text
    await ada.post(path, do="apply")
    assert "Devices: 1" in (await ada.follow()).text
    assert len(await studio.services.permissions.devices.find_bans(FACTOR)) == 1


@pytest.mark.both_databases
async def test_review_of_a_ban_from_the_installation_names_all_that_it_stops(
    console_browsers: ConsoleBrowsers,
) -> None:
    ada, pia = await console_browsers(ADA), await console_browsers(PIA)
    path = f"{HERE}/{PIA}/bans"
    await ada.get(path)
    review = await ada.post(path, public_text="Cheating", scope="everything")
    assert "<strong>1</strong> browser session stops working" in review.text
    assert "<strong>no end</strong>" in review.text
    assert "user.kick" in review.text
    elsewhere = await ada.post(path, public_text="Cheating", scope="project", project_id="nowhere")
    assert elsewhere.status_code == 400
    await ada.get(path)
    from_project = await ada.post(path, public_text="Cheating", scope="project", project_id=PROJECT)
    assert ("user.kick" in from_project.text, "browser session" in from_project.text) == (True, False)
    await ada.get(f"{HERE}/{MAX}/bans")
    nothing_held = await ada.post(f"{HERE}/{MAX}/bans", application_id=str(WIKI))
    assert ("Ban Max?" in nothing_held.text, 'class="forecast"' in nothing_held.text) == (True, False)
    assert (await pia.get("/account")).status_code == 200


async def test_la_03_people_who_cannot_sign_in_are_listed_and_get_a_link(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    lost = await studio.services.accounts.administration.create(
        login="lost@x.example",
        nick="Lost",
        password=None,
        origin=AuditOrigin(actor="t"),
        more={"email_verified": True},
    )
    lines = (await ada.get(f"{HERE}?format=csv&among=no_sign_in")).text.splitlines()[1:]
    assert [line.split(",")[1] for line in lines] == ["Lost"]
    await ada.get(f"{HERE}/selected?action=link&user_id={lost.user_id}")
    answer = await ada.post(f"{HERE}/selected", action="link", user_id=lost.user_id)
    assert answer.status_code == 303, answer.text
    (message,) = await new_messages(studio)
    assert message.to == "lost@x.example"
    assert "/reset?token=" in message.text


# A sign-in by email takes another factor than a code by email, and no protected role (R10).
WITHOUT_PASSWORD: dict[str, dict[str, Any]] = {
    "Mailed": {},
    "Both": {"email_code": True, "sealed_totp": b"x"},
    "Coded": {"email_code": True},
    "Root": {},
}


@pytest.mark.both_databases
async def test_la_03_list_follows_the_ways_to_sign_in_that_are_on(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, save = await console_browsers(ADA), studio.services.settings_editor.save
    named = a_user(user_id="4711", login=None, password_hash="$x", username="named", nick="Named")
    await studio.services.storage.accounts.create_user(named, a_record())
    await turn_guests_on(studio)
    await Device().log_in(studio)

    async def listed() -> list[str]:
        lines = (await ada.get(f"{HERE}?format=csv&among=no_sign_in")).text.splitlines()[1:]
        return sorted(line.split(",")[1].partition(" ")[0] for line in lines)

    assert await listed() == []
    await save({"accounts.username_sign_in": False}, ORIGIN)
    assert await listed() == ["Named"]
    await save({"guests.enabled": False}, ORIGIN)
    assert await listed() == ["Guest", "Named"]
    accounts = studio.services.storage.accounts
    for number, (nick, fields) in enumerate(WITHOUT_PASSWORD.items()):
        user = a_user(user_id=f"472{number}", login=f"{nick}@x.example", nick=nick, email_verified=True, **fields)
        await accounts.create_user(user, a_record(), administrator=nick == "Root")
    assert await listed() == ["Both", "Coded", "Guest", "Mailed", "Named", "Root"]
    await save({"accounts.email_sign_in": True}, ORIGIN)
    assert await listed() == ["Coded", "Guest", "Named", "Root"]


@pytest.mark.both_databases
async def test_la_04_link_to_an_account_that_was_signed_in_to_is_mailed_only(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    """Of an account with a connected sign-in, whose email no one has proved: the link would take it over."""
    ada, storage = await console_browsers(ADA), studio.services.storage
    await storage.accounts.create_user(a_user(user_id="4711", login="kim@x.example", nick="Kim"), a_record())

    async def send() -> list[httpx2.Response]:
        await ada.get(f"{HERE}/4711/act/{PersonAction.LINK}")
        pages = [await ada.post(f"{HERE}/4711/act/{PersonAction.LINK}")]
        await ada.get(f"{HERE}/new")
        fields = {"login": "kim@x.example", "nick": "Kim", "lang": "en", "entrance": "invite"}
        return [*pages, await ada.post(f"{HERE}/new", **fields)]

    assert [(page.status_code, "/invite?token=" in page.text) for page in await send()] == [(200, True)] * 2
    await storage.tallies.record_seen(["4711"], studio.clock.now())
    await new_messages(studio)
    assert [(page.status_code, "token=" in page.text) for page in await send()] == [(303, False)] * 2
    assert ["/invite?token=" in one.text for one in await new_messages(studio)] == [True] * 2


async def test_every_action_on_a_person_asks_before_it_acts(console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    for action in PersonAction:
        page = await ada.get(f"{HERE}/{MAX}/act/{action}")
        assert (action, page.status_code) == (action, 200)
