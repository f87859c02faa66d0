"""`gatehouse user`, `admin` and `client`."""

import asyncio
import json
from base64 import urlsafe_b64decode
from functools import partial
from pathlib import Path
from typing import Any

from gatehouse.tokens.claims import factor_digest
from tests.support.command_line import CommandLine, InstallationPaths
from tests.support.service import running_service
from tests.support.studio import a_studio, create_administrator

PASSWORD = "correct horse battery"
BOB = ("--login", "bob@studio.example", "--nick", "Bob")


def claims_of(jwt: str) -> Any:
    payload = jwt.split(".")[1]
    return json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def test_a_role_is_assigned_with_an_end_found_and_taken_away(gatehouse: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text("applications: [{application_id: 50001, name: Shop, roles: {moderator: {}}}]")
    gatehouse("apply", file)
    gatehouse("user", "create", *BOB, "--password-stdin", stdin=PASSWORD)
    bob, role = "bob@studio.example", ("50001", "moderator")
    assert gatehouse.json("user", "search", "bob") == gatehouse.json("user", "list", "bob")
    added = gatehouse.json("user", "role", "add", bob, "Shop", "moderator")
    assert (added["assigned"], added["changed"], added["expired"]) == (True, True, 0)
    until = gatehouse.json("user", "role", "add", bob, *role, "--until", "2099-01-01")
    assert (until["changed"], until["expired"]) == (True, 4_070_995_199), "with that day"
    assert gatehouse.json("user", "role", "add", bob, *role, "--until", "4070995199")["changed"] is False
    assert gatehouse.json("user", "role", "remove", bob, *role)["changed"]
    assert not gatehouse.json("user", "role", "remove", bob, *role)["changed"]
    assert "no role judge" in gatehouse.expect_failure("user", "role", "add", bob, "50001", "judge")


def test_an_account_is_made_shown_blocked_and_let_in_again(gatehouse: CommandLine, tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text(f"{PASSWORD}\n")
    user_id = gatehouse("user", "create", *BOB, "--password-file", secret).strip()
    user = gatehouse.json("user", "show", "BOB@Studio.example")
    assert (user["user_id"], user["login"], user["nick"]) == (user_id, "bob@studio.example", "Bob")
    before = gatehouse.facts("user", "show", user_id)
    assert (before["login"], before["password"], before["blocked"]) == ("bob@studio.example", "yes", "no")
    assert (before["roles"], user["blocked"]) == ("", False)
    for secret_text in (PASSWORD, "argon2"):
        assert secret_text not in json.dumps([user, before])

    assert gatehouse.json("user", "block", user_id)["blocked"]
    blocked = gatehouse.facts("user", "show", user_id)
    assert (blocked["blocked"], int(blocked["rev"]) > int(before["rev"])) == ("yes", True)
    assert "is blocked" in gatehouse.expect_failure("user", "token", user_id, "--factor", "f")
    assert not gatehouse.json("user", "unblock", "bob@studio.example")["blocked"]
    free = gatehouse.facts("user", "show", user_id)
    assert int(free["rev"]) > int(blocked["rev"])

    events = [record["event"] for record in gatehouse.json("audit", "show", "--subject", "bob@studio.example")]
    assert sorted(events) == ["user.blocked", "user.created", "user.unblocked"]


async def test_json_is_the_record_of_the_api(migrated_url: str, tmp_path: Path) -> None:
    run = partial(asyncio.to_thread, InstallationPaths(data=tmp_path, url=migrated_url).command_line().json, "user")
    async with running_service(migrated_url, tmp_path) as service:
        studio = await a_studio(service)
        administrator = await create_administrator(studio)
        created = await run("create", *BOB, "--no-password")

        async def record() -> object:
            ask = {"action": "get", "data": {"user_id": created["user_id"]}}
            return (await studio.expect_ok("user", ask, administrator.headers))["data"]

        assert await record() == created == await run("show", created["user_id"])
        assert await run("block", created["user_id"]) == await record() != created
        assert await run("unblock", created["user_id"]) == await record()


def test_a_token_for_a_script_is_printed_alone_and_bound_to_its_factor(gatehouse: CommandLine) -> None:
    user_id = gatehouse("user", "create", *BOB, "--no-password").strip()
    output = gatehouse("user", "token", user_id, "--factor", "a-factor")
    assert output.count("\n") == 1
    claims = claims_of(output.strip())
    assert (claims["uid"], claims["iss"], claims["rev"]) == (user_id, "http://localhost:8080", 0)
    assert claims["fac"] == factor_digest("a-factor", claims["slt"])
    result = gatehouse.json("user", "token", "bob@studio.example", "--factor", "a-factor")
    assert claims_of(result["jwt"])["uid"] == result["user_id"] == user_id
    assert [record["event"] for record in gatehouse.json("audit", "show", "--event", "user.token_made")] == [
        "user.token_made",
        "user.token_made",
    ]


def test_invalid_input_is_refused_with_an_error_message(gatehouse: CommandLine, tmp_path: Path) -> None:
    gatehouse("user", "create", *BOB, "--no-password")
    assert "already exists" in gatehouse.expect_failure("user", "create", *BOB, "--no-password")
    assert "no account with the login eve@" in gatehouse.expect_failure("user", "show", "eve@studio.example")
    assert "no user 1000000009" in gatehouse.expect_failure("user", "block", "1000000009")
    assert "not an email address" in gatehouse.expect_failure(
        "user", "create", "--login", "bob", "--nick", "Bob", "--no-password"
    )
    assert "no terminal to ask" in gatehouse.expect_failure("admin", "create", *BOB, code=2)
    two_lines = tmp_path / "two"
    two_lines.write_text("one line\nanother line\n")
    assert "must be a single line" in gatehouse.expect_failure("admin", "create", *BOB, "--password-file", two_lines)
    short = gatehouse.run("admin", "create", "--login", "eve@x.example", "--nick", "E", "--password-stdin", stdin="x")
    assert (short.code, "at least 10 characters" in short.err) == (1, True)


def test_a_client_is_made_listed_and_given_a_new_secret(gatehouse: CommandLine) -> None:
    client = gatehouse.json(
        "client", "create", "web", "--name", "Web shop", "--profile", "native", "--redirect-host", "localhost"
    )
    secret = gatehouse("client", "rotate-secret", "web").strip()
    assert len(secret) == len(client["client_secret"]) == 43
    assert secret != client["client_secret"]
    oidc = ("--profile", "oidc", "--redirect-uri", "https://spa.example/cb", "--public", "--scope", "openid")
    assert gatehouse.json("client", "create", "spa", "--name", "SPA", *oidc)["client_secret"] is None

    spa, web = gatehouse.json("client", "list")
    assert (web["client_id"], web["redirect_hosts"], web["may_exchange"]) == ("web", ["localhost"], True)
    assert (spa["profile"], spa["public"], spa["scopes"], spa["may_exchange"]) == ("oidc", True, ["openid"], False)
    old, new = web["secrets"]
    assert old["expires_at"] > new["created_at"]
    assert new["expires_at"] == 0
    output = gatehouse("client", "list")
    assert "Web shop" in output
    assert secret not in output

    assert "has no secret" in gatehouse.expect_failure("client", "rotate-secret", "spa")
    assert "Client not found" in gatehouse.expect_failure("client", "rotate-secret", "none")
    assert "needs a redirect URI" in gatehouse.expect_failure("client", "create", "bare", "--name", "Bare")
    events = [record["event"] for record in gatehouse.json("audit", "show", "--subject", "web")]
    assert sorted(events) == ["client.created", "client.secret_rotated"]


def test_a_person_is_invited_by_mail_and_the_link_is_not_printed(gatehouse: CommandLine) -> None:
    invited = gatehouse.json("user", "invite", "eve@studio.example", "--nick", "Eve", "--lang", "de")
    user = gatehouse.json("user", "show", "eve@studio.example")
    assert (user["user_id"], user["nick"], user["lang"]) == (invited["user_id"], "Eve", "de")
    assert not user["email_verified"]
    assert gatehouse.facts("user", "show", user["user_id"])["password"] == "no"
    assert invited["expires_in"] == 7 * 86_400
    printed = gatehouse.run("user", "invite", "eve@studio.example")
    assert (printed.out.strip(), "token" in printed.out + printed.err) == (invited["user_id"], False)
    assert "eve@studio.example" in printed.err
    events = [record["event"] for record in gatehouse.json("audit", "show", "--subject", invited["user_id"])]
    assert events == ["user.invited", "user.invited"]
    gatehouse("user", "create", *BOB, "--password-stdin", stdin=PASSWORD)
    assert "already exists" in gatehouse.expect_failure("user", "invite", "bob@studio.example")
    assert "not an email address" in gatehouse.expect_failure("user", "invite", "bob")


def test_several_people_are_invited_with_a_role_that_ends(gatehouse: CommandLine) -> None:
    logins = ("eve@studio.example", "rob@studio.example")
    role = ("--role", "1/administrator", "--until", "2038-01-01")
    invited = gatehouse.json("user", "invite", *logins, *role)
    assert [one["login"] for one in invited] == list(logins)
    events = [record["event"] for record in gatehouse.json("audit", "show", "--subject", invited[0]["user_id"])]
    assert sorted(events) == ["invitation.sent", "user.invited"]
    assert "no application" in gatehouse.expect_failure("user", "invite", *logins, "--role", "Nothing/at_all")
    assert "APPLICATION/ROLE" in gatehouse.expect_failure("user", "invite", *logins, "--role", "moderator", code=2)
    assert "need --role" in gatehouse.expect_failure("user", "invite", *logins, "--project", "x", code=2)


def test_a_person_is_banned_listed_and_let_in_again(gatehouse: CommandLine) -> None:
    user_id = gatehouse("user", "create", *BOB, "--no-password").strip()
    saved = gatehouse.json("user", "ban", user_id, "--text", "Cheating", "--reason", "ticket 1", "--days", "3")
    assert (saved["state"], saved["public_text"], saved["reason"]) == ("active", "Cheating", "ticket 1")
    assert saved["author"].startswith("cli:")
    assert "application_id" not in saved
    assert [one["ban_id"] for one in gatehouse.json("user", "bans", "--state", "active")] == [saved["ban_id"]]
    assert "Cheating" in gatehouse("user", "bans", user_id)
    assert gatehouse.json("user", "lift-ban", "bob@studio.example")["state"] == "lifted"
    assert gatehouse.json("user", "bans", "--state", "active") == []
    assert "no such ban" in gatehouse.expect_failure("user", "lift-ban", user_id)
    assert gatehouse.json("user", "ban", user_id, "--device", "--confirm")["state"] == "active"
    assert "either" in gatehouse.expect_failure(
        "user", "ban", user_id, "--application", "1", "--project", "p", code=2
    )
    assert "Application not found" in gatehouse.expect_failure("user", "ban", user_id, "--application", "99999")
    assert "data.until" in gatehouse.expect_failure("user", "ban", user_id, "--until", "2001-01-01")
