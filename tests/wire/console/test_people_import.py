"""Import people in the console and over the API (R10)."""

import re
from html import unescape
from typing import Any

import httpx2
import pytest

from gatehouse.web.console.people_import import MAX_FILE_BYTES
from tests.support.browser import HttpBrowser, hidden_fields
from tests.support.builders import ORIGIN
from tests.support.console import ADA, OLGA, ConsoleBrowsers, login_of
from tests.support.mailbox import new_messages
from tests.support.service import RunningService
from tests.support.studio import FACTOR
from tests.wire.console.test_api_calls import jwt_of

PATH = "/console/people/import"
PARTS = re.compile(r'<textarea name="parts" hidden>\n(.*?)</textarea>', re.DOTALL)
HEADER = "login,nick"


async def upload(browser: HttpBrowser, content: bytes, emails: str = "unverified", **more: str) -> httpx2.Response:
    csrf = hidden_fields((await browser.get(PATH)).text)["csrf"]
    data = {"csrf": csrf, "emails": emails, **more}
    return await browser.client.post(PATH, data=data, files={"file": ("players.csv", content)})


async def confirm(browser: HttpBrowser, plan: str) -> httpx2.Response:
    """Send the form of the plan, as a browser does: line breaks are CR LF."""
    fields = hidden_fields(plan)
    parts = [unescape(part).replace("\n", "\r\n") for part in PARTS.findall(plan)]
    data = {name: value for name, value in fields.items() if name != "parts"} | {"parts": parts}
    return await browser.client.post(f"{PATH}/run", data=data)


async def find(studio: RunningService, login: str) -> Any:
    return await studio.services.storage.accounts.user_by_login(login)


async def test_a_file_is_planned_confirmed_and_reported(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    browser = await console_browsers(ADA)
    many = [f"p{number}@studio.example,{'né<b>' * 8}" for number in range(1_500)]  # several hidden fields
    content = "\r\n".join(("\ufeff" + HEADER, *many, f"{login_of(ADA)},Eve", "<b>bad,x", "")).encode()
    plan = await upload(browser, content)
    assert plan.status_code == 200, plan.text
    assert len(PARTS.findall(plan.text)) > 1
    assert "Import accounts: 1,500" in plan.text
    assert f"the login belongs to user {ADA}" in plan.text
    assert "&lt;b&gt;bad" in plan.text
    assert await find(studio, "p0@studio.example") is None

    report = await confirm(browser, plan.text)
    assert report.status_code == 200, report.text
    assert "Import report" in report.text
    assert (await find(studio, "p1499@studio.example")).nick == "né<b>" * 8
    again = await confirm(browser, plan.text)
    assert "<dt>Imported before</dt><dd>1500</dd>" in again.text


async def test_im_09_files_are_bounded_and_only_administrators_import(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    browser = await console_browsers(ADA)
    for content, reason in (
        (b"", "Choose a CSV file."),
        (b"x" * (MAX_FILE_BYTES + 1), "use gatehouse import"),
        (b"login\n\xff", "not UTF-8"),
        (b"login,pasword\n", "unknown column"),
    ):
        answer = await upload(browser, content)
        assert reason in unescape(answer.text), answer.text

    olga = await console_browsers(OLGA)
    assert (await olga.get(PATH)).status_code == 403
    csrf = hidden_fields((await olga.get("/console")).text)["csrf"]
    answer = await olga.client.post(
        f"{PATH}/run", data={"csrf": csrf, "import_id": "x", "parts": "login\nq@b.example"}
    )
    assert answer.status_code == 403
    forged = await browser.client.post(f"{PATH}/run", data={"csrf": "x", "parts": "login\nq@b.example"})
    assert forged.status_code in {400, 403}
    assert await find(studio, "q@b.example") is None


async def call(studio: RunningService, user_id: str, action: str, **data: Any) -> httpx2.Response:
    jwt = await jwt_of(studio, user_id)
    return await studio.client.post(
        "/api/permissions/user/import",
        json={"action": action, "data": {"emails": "unverified", **data}},
        headers={"Authorization": f"Bearer {jwt}", "Factor": FACTOR},
    )


async def test_im_11_console_and_api_ask_whether_emails_are_verified(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    browser = await console_browsers(ADA)
    content = b"login,totp_secret\nnew@studio.example,JBSWY3DPEHPK3PXP\n"
    refused = await upload(browser, content, emails="")
    assert (refused.status_code, "does not say whether emails are verified" in refused.text) == (400, True)
    plan = await upload(browser, content)
    assert "1 accounts with an unverified email have a second factor or identity." in plan.text
    plan = await upload(browser, content, emails="verified")
    assert "unverified email" not in plan.text
    await confirm(browser, plan.text)
    assert (await find(studio, "new@studio.example")).email_verified
    lines = content.decode().replace("new@", "other@").splitlines()
    assert (await call(studio, ADA, "import", lines=lines, emails="")).status_code == 400
    done = (await call(studio, ADA, "import", lines=lines)).json()["data"]
    assert (done["imported"], done["unverified"], done["loses_methods"]) == (1, 1, 1)
    assert not (await find(studio, "other@studio.example")).email_verified


async def test_im_09_the_api_plans_and_imports_for_administrators_only(studio: RunningService) -> None:
    lines = [HEADER, "new@studio.example,New", "bad,x"]
    refused = await call(studio, OLGA, "import", lines=lines)
    assert refused.status_code == 403
    plan = (await call(studio, ADA, "plan", lines=lines)).json()["data"]
    assert (plan["rows"], plan["imported"], plan["refused"]) == (2, 1, 1)
    assert await find(studio, "new@studio.example") is None
    done = (await call(studio, ADA, "import", lines=lines)).json()["data"]
    assert done == {**plan, "imported": 1}
    assert done["refused_rows"] == [{"row": 3, "account": "bad", "reason": "login: not an email address"}]
    assert (await find(studio, "new@studio.example")).nick == "New"
    again = (await call(studio, ADA, "import", lines=lines)).json()["data"]
    assert (again["imported"], again["known"]) == (0, 1)
    jsonl = await call(studio, ADA, "import", format="jsonl", lines=['{"login": "x@studio.example"}'])
    assert jsonl.json()["data"]["imported"] == 1
    malformed = await call(studio, ADA, "import", lines=["nick"])
    assert malformed.status_code == 400
    assert "needs a column login" in malformed.text


@pytest.mark.both_databases
async def test_api_invites_those_without_a_password_once_imported(studio: RunningService) -> None:
    lines = [HEADER, "new@studio.example,New", "other@studio.example,Other"]
    done = (await call(studio, ADA, "import", lines=lines, invite=True)).json()["data"]
    assert (done["without_password"], done["invitations"]["invited"], done["invitations"]["after"]) == (2, 2, "")
    messages = [message for message in await new_messages(studio) if "/invite?token=" in message.text]
    assert sorted(message.to for message in messages) == ["new@studio.example", "other@studio.example"]
    other = await find(studio, "other@studio.example")
    await studio.services.accounts.administration.block(other.user_id, ORIGIN)
    again = (await call(studio, ADA, "invite", import_id=done["import_id"])).json()["data"]
    assert (again["invited"], again["not_invited"]) == (1, [])  # a blocked account gets no link
    assert (await call(studio, OLGA, "invite", import_id=done["import_id"])).status_code == 403


async def test_import_refuses_what_is_no_mailbox_like_every_form(studio: RunningService) -> None:
    lines = [HEADER, "not-a-mail@x,New", "new@localhost,Local"]
    done = (await call(studio, ADA, "import", lines=lines)).json()["data"]
    assert (done["imported"], done["refused_rows"][0]["reason"]) == (1, "login: not an email address")
    moved = [
        f"user_id,{HEADER}",
        "7000000001,root@intranet,Root",
        ",new@intranet,New",
    ]  # an ID: had an account before
    done = (await call(studio, ADA, "import", lines=moved)).json()["data"]
    assert (done["imported"], [one["row"] for one in done["refused_rows"]]) == (1, [3])
