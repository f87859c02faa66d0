"""`gatehouse application`."""

from pathlib import Path

from tests.support.command_line import CommandLine, InstallationPaths
from tests.support.service import running_service

PASSWORD = "correct horse battery"
BOB = ("--login", "bob@studio.example", "--nick", "Bob", "--password-stdin")


async def test_an_email_secret_is_printed_once_and_shows_the_login_at_login(
    installation: InstallationPaths, gatehouse: CommandLine
) -> None:
    gatehouse("user", "create", *BOB, stdin=PASSWORD)
    printed = gatehouse.run("application", "email-secret", "1")
    first = printed.out.strip()
    assert (printed.code, len(first), first in printed.err) == (0, 43, False)
    result = gatehouse.json("application", "email-secret", "1")
    assert (result["application_id"], first != result["email_secret"]) == (1, True)

    login = {"login": "bob@studio.example", "password": PASSWORD, "app_id": 1}
    async with running_service(installation.url, installation.data) as service:
        for secret, is_shown in ((first, True), (result["email_secret"], True), (first[:-1], False)):
            response = await service.client.post("/proxy/api/login", json={**login, "with_email": secret})
            assert response.json()["status"] == "OK"
            assert response.json().get("login") == ("bob@studio.example" if is_shown else None)

    events = gatehouse.json("audit", "show", "--subject", "application 1")
    assert [event["event"] for event in events] == ["application.email_secret_made"] * 2
    assert not [secret for secret in (first, result["email_secret"]) if secret in str(events)]


def test_an_unknown_application_gets_no_email_secret(gatehouse: CommandLine) -> None:
    assert "Application not found." in gatehouse.expect_failure("application", "email-secret", "50001")
    assert "not in the range" in gatehouse.expect_failure("application", "email-secret", "0", code=2)
    assert gatehouse.json("audit", "show", "--event", "application.email_secret_made") == []


APPLICATION = """
applications:
  - application_id: 50001
    name: Shop
    schema: {private_data: {user: {kick: {value: false, protected: false, description: "%s"}}}}
"""


def test_earlier_schema_versions_are_listed_and_printed(gatehouse: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    for words in ("Throw someone out", "Show someone the door"):
        file.write_text(APPLICATION % words)
        gatehouse("apply", file)
    newest, first = gatehouse.json("application", "versions", "50001")
    assert (newest["version"], first["version"]) == (2, 1)
    assert newest["actor"].startswith("cli:")
    assert newest["changes"] == [{"what": "rule", "how": "changed", "count": 1, "names": ["private_data.user.kick"]}]
    assert "1 rule changed" in gatehouse("application", "versions", "50001")
    assert "Throw someone out" in gatehouse("application", "versions", "50001", "--show", "1")
    assert "Version not found or no longer stored." in gatehouse.expect_failure(
        "application", "versions", "50001", "--show", "3"
    )
