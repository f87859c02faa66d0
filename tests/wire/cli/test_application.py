"""`gatehouse application`."""

from tests.support.command_line import CommandLine, Place
from tests.support.service import running_service

PASSWORD = "correct horse battery"
BOB = ("--login", "bob@studio.example", "--nick", "Bob", "--password-stdin")


async def test_an_email_secret_is_printed_once_and_shows_the_login_at_login(
    place: Place, gatehouse: CommandLine
) -> None:
    gatehouse("user", "create", *BOB, stdin=PASSWORD)
    printed = gatehouse.try_("application", "email-secret", "1")
    first = printed.out.strip()
    assert (printed.code, len(first), first in printed.err) == (0, 43, False)
    told = gatehouse.json("application", "email-secret", "1")
    assert (told["application_id"], first != told["email_secret"]) == (1, True)

    asked = {"login": "bob@studio.example", "password": PASSWORD, "app_id": 1}
    async with running_service(place.url, place.data) as service:
        for secret, shown in ((first, True), (told["email_secret"], True), (first[:-1], False)):
            answer = await service.client.post("/proxy/api/login", json={**asked, "with_email": secret})
            assert answer.json()["status"] == "OK"
            assert answer.json().get("login") == ("bob@studio.example" if shown else None)

    events = gatehouse.json("audit", "show", "--subject", "application 1")
    assert [one["event"] for one in events] == ["application.email_secret_made"] * 2
    assert not [secret for secret in (first, told["email_secret"]) if secret in str(events)]


def test_an_unknown_application_gets_no_email_secret(gatehouse: CommandLine) -> None:
    assert "There is no such application." in gatehouse.refused("application", "email-secret", "50001")
    assert "not in the range" in gatehouse.refused("application", "email-secret", "0", code=2)
    assert gatehouse.json("audit", "show", "--event", "application.email_secret_made") == []
