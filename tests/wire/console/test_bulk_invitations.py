"""Many people invited at once: pasted addresses, selected people, those of an import; by project owners (R9)."""

import csv
import io
import re
from html import unescape
from typing import Any

import pytest

from gatehouse.admin.bulk_invitations import Address, parse_addresses
from gatehouse.audit.events import AuditEvent
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.invitation import MAX_PROJECT_INVITATIONS
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.builders import ORIGIN
from tests.support.console import ADA, DEV, OLGA, PIA, PROJECT, SHOP, ConsoleBrowsers, login_of, post_form
from tests.support.mailbox import link_in_message, new_messages
from tests.support.service import RunningService
from tests.wire.console.test_access_invitations import account, events, roles_of
from tests.wire.console.test_people_import import confirm, upload

NEW = "/console/people/new"
SELECTED = "/console/people/selected"
LINKS = "/console/people/invite/links"
INVITE = f"/console/projects/{PROJECT}/members/invite"
PARTS = re.compile(r'<textarea name="parts" hidden>\n(.*?)</textarea>', re.DOTALL)
MODERATOR = f"{SHOP}/moderator"
DAY = 86_400


def people(count: int) -> list[str]:
    return [f"p{number:02}@elsewhere.example" for number in range(count)]


async def invite(browser: HttpBrowser, login: str, **more: str) -> Any:
    await browser.get(NEW)
    return await post_form(browser, NEW, login=login, entrance="invite", lang="en", **more)


async def downloaded_links(browser: HttpBrowser) -> list[dict[str, str]]:
    """The rows of the file that the page offers."""
    assert browser.page is not None
    parts = [unescape(part) for part in PARTS.findall(browser.page.text)]
    file = await post_form(browser, LINKS, parts=parts)
    assert file.headers["content-disposition"] == 'attachment; filename="invitations.csv"'
    assert file.headers["cache-control"] == "no-store"
    return list(csv.DictReader(io.StringIO(file.text)))


async def accept(studio: RunningService, link: str) -> None:
    browser = HttpBrowser(studio)
    await browser.get(link.removeprefix(studio.base_url))
    response = await browser.post("/invite", nick="Bob", password=PASSWORD)
    assert response.status_code == 303, response.text
    await browser.client.aclose()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a@x.example", ["a@x.example"]),
        ("a@x.example, b@x.example;c@x.example\r\nd@x.example e@x.example", [f"{c}@x.example" for c in "abcde"]),
        ("A@x.example\na@X.example", ["A@x.example"]),
    ],
)
def test_addresses_are_pasted_with_any_separator_and_each_counts_once(text: str, found: list[str]) -> None:
    assert [one.login for one in parse_addresses(text)] == found


def test_addresses_are_pasted_with_names() -> None:
    pasted = '"Lovelace, Ada" <ada@x.example>, Bob <bob@x.example>;\nCy Z <cy@x.example>'
    assert parse_addresses(pasted) == [
        Address("ada@x.example", "Lovelace, Ada"),
        Address("bob@x.example", "Bob"),
        Address("cy@x.example", "Cy Z"),
    ]


@pytest.mark.parametrize("text", ["", " ,;\n", "bob", "a@x.example, bob", "a@x.example\n" + ",".join(people(501))])
def test_what_is_no_list_of_addresses_is_refused_whole(text: str) -> None:
    more = text.replace("p", "q") if len(text) > 99 else ""
    with pytest.raises(Malformed):
        parse_addresses(text + more + ("" if len(text) < 99 else "".join(f",x{n}@y.example" for n in range(500))))


async def test_pasted_addresses_are_invited_with_a_role_that_ends_and_the_known_accept_signed_in(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    browser = await console_browsers(ADA)
    await studio.services.accounts.administration.block(PIA, ORIGIN)
    pasted = "\n".join([*people(3), login_of(DEV), login_of(PIA)])
    page = await invite(browser, pasted, role=MODERATOR, end="day")
    assert page.status_code == 200, page.text
    assert "4 invitations created" in page.text
    assert "1 person was not invited" in page.text
    end = studio.clock.now() + DAY
    links = {row["email"]: row["link"] for row in await downloaded_links(browser)}
    assert list(links) == people(3)  # an account that was signed in to has none

    await accept(studio, links[people(3)[0]])
    shown = await account(studio, people(3)[0])
    assert shown is not None
    assert (shown.email_verified, await roles_of(studio, shown.user_id)) == (False, [("", "moderator", end)])
    mails = {message.to: link_in_message(studio, message) for message in await new_messages(studio)}
    assert mails[login_of(DEV)] == "/account/invitations"
    await accept(studio, mails[people(3)[1]])
    mailed = await account(studio, people(3)[1])
    assert mailed is not None
    assert (mailed.email_verified, await roles_of(studio, mailed.user_id)) == (True, [("", "moderator", end)])


async def test_wrong_addresses_and_what_needs_an_invitation_are_refused_at_the_form(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    browser = await console_browsers(ADA)
    page = await invite(browser, f"{people(1)[0]}, bob, cy@")
    assert (page.status_code, "Not an email address: bob, cy@" in page.text) == (400, True)
    for fields, said in (
        ({"login": ",".join(people(2)), "entrance": "none"}, "Only invitations can go to several addresses"),
        ({"login": people(1)[0], "entrance": "none", "role": MODERATOR}, "needs an invitation"),
        ({"login": people(1)[0], "entrance": "invite", "end": "day"}, "role"),
        ({"login": people(1)[0], "entrance": "invite", "role": "no such role"}, "no such role"),
    ):
        await browser.get(NEW)
        page = await post_form(browser, NEW, lang="en", **fields)
        assert (page.status_code, said in unescape(page.text)) == (400, True), page.text
    assert await account(studio, people(1)[0]) is None


async def test_selected_people_get_links_unless_they_have_signed_in(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    browser = await console_browsers(ADA)
    made = await studio.services.accounts.administration.create(
        login=people(1)[0], nick="Fresh", password=None, origin=ORIGIN
    )
    await browser.get(f"{SELECTED}?action=invite&user_id={made.user_id}&user_id={DEV}")
    page = await post_form(browser, SELECTED, action="invite", user_id=[made.user_id, DEV])
    assert page.status_code == 200, page.text
    assert "1 invitation created" in page.text
    assert "An account with this email already exists." in page.text
    (row,) = await downloaded_links(browser)
    assert (row["name"], row["email"]) == ("Fresh", people(1)[0])
    (message,) = await new_messages(studio)
    assert message.to == people(1)[0]


@pytest.mark.both_databases
async def test_import_invites_those_without_a_password_and_its_report_leads_to_them(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    browser = await console_browsers(ADA)
    form = await browser.get("/console/people/import")
    assert re.search(r'name="invite" value="yes" checked', form.text)
    content = ("login,nick\n" + "\n".join(f"{one},Player" for one in people(3))).encode()
    plan = await upload(browser, content, emails="verified", invite="yes", role=MODERATOR, end="week")
    assert "3 people without a password will be invited" in plan.text, plan.text
    assert await new_messages(studio) == []
    report = await confirm(browser, plan.text)
    browser.page = report
    assert "3 invitations created" in report.text
    assert len(await new_messages(studio)) == 3
    assert len(await downloaded_links(browser)) == 3
    link = re.search(r'href="(/console/people\?import_id=[^"]+)"', report.text)
    assert link is not None
    listed = await browser.get(unescape(link[1]))
    assert listed.text.count("/console/people/") > 3
    assert [one for one in people(3) if one.partition("@")[0] in listed.text] == people(3)
    assert login_of(DEV) not in listed.text.replace("<wbr>", "")

    await accept(studio, (await invited_links(browser, unescape(link[1])))[0])
    assert people(3)[0].partition("@")[0] not in (await browser.get(unescape(link[1]))).text


async def invited_links(browser: HttpBrowser, listed: str) -> list[str]:
    """Links of new invitations for everyone of the import, which end the earlier ones."""
    import_id = listed.partition("import_id=")[2]
    await browser.get("/console/people/import")
    await post_form(browser, "/console/people/invite", import_id=import_id.replace("%3A", ":"))
    rows = sorted(await downloaded_links(browser), key=lambda row: row["email"])
    return [row["link"] for row in rows]


async def test_import_without_the_switch_sends_nothing_and_offers_to(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    browser = await console_browsers(ADA)
    plan = await upload(browser, b"login\nnew@elsewhere.example\n")
    report = await confirm(browser, plan.text)
    assert "Send invitations" in report.text
    assert await new_messages(studio) == []


@pytest.mark.both_databases
async def test_owner_invites_from_the_members_and_withdraws(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    browser = await console_browsers(OLGA)
    page = await browser.get(INVITE)
    assert f'value="{MODERATOR}"' in page.text
    sent = await post_form(browser, INVITE, login=f"{people(1)[0]}, {login_of(DEV)}", role=MODERATOR, end="week")
    assert sent.status_code == 303, sent.text
    page = await browser.get(INVITE)
    assert page.text.count(">Withdraw<") == 2
    assert PARTS.search(page.text) is None  # owners never see a link
    assert {message.to for message in await new_messages(studio)} == {people(1)[0], login_of(DEV)}
    for _ in range(2):
        number = re.search(r'name="invitation_id" value="([^"]+)"', browser.page.text if browser.page else "")
        assert number is not None
        assert (await post_form(browser, f"{INVITE}/withdraw", invitation_id=number[1])).status_code == 303
        await browser.get(INVITE)
    assert len(await events(studio, AuditEvent.ACCESS_WITHDRAWN)) == 2

    wrong = await post_form(browser, INVITE, login=people(1)[0], role="1/administrator")
    assert wrong.status_code in (400, 403), wrong.text
    await browser.get(INVITE)
    nothing = await post_form(browser, INVITE, login=people(1)[0])
    assert nothing.status_code == 400
    many = await post_form(browser, INVITE, login=",".join(people(MAX_PROJECT_INVITATIONS + 1)), role=MODERATOR)
    assert (many.status_code, "At most 100 addresses" in many.text) == (400, True)


async def test_pa_13_only_owners_and_administrators_reach_the_invitations(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    browser = await console_browsers(DEV)
    assert (await browser.get(INVITE)).status_code in (403, 404)
    await browser.get("/console")
    for path, fields in (
        (INVITE, {"login": people(1)[0], "role": MODERATOR}),
        ("/console/people/invite", {"import_id": "x"}),
        (LINKS, {"parts": "x"}),
        (NEW, {"login": people(1)[0]}),
    ):
        assert (await post_form(browser, path, **fields)).status_code in (403, 404), path
    assert await account(studio, people(1)[0]) is None
