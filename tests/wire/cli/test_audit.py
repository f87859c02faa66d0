"""`gatehouse audit`."""

import asyncio
import re

import httpx2

from gatehouse.storage.database import open_storage
from tests.support.builders import ORIGIN, RECORDER
from tests.support.command_line import CommandLine, InstallationPaths, execute_statements
from tests.support.processes import Node
from tests.support.tls import NO_TRUST_STORE

BOB = ("--login", "bob@studio.example", "--nick", "Bob", "--no-password")


def test_r_25_a_log_that_was_changed_is_found_out_and_the_place_named(
    installation: InstallationPaths, gatehouse: CommandLine
) -> None:
    with Node(data=installation.data, environment=installation.settings) as node:
        gatehouse("user", "create", *BOB)
        node.terminate()  # which seals the records
    sound = gatehouse.json("audit", "verify")
    assert sound["problems"] == []
    assert (sound["records"], sound["first_place"], sound["unsealed"]) == (3, 1, 0)
    assert sound["head"] in gatehouse("audit", "verify")

    gatehouse("user", "block", "bob@studio.example")
    assert gatehouse.json("audit", "verify")["unsealed"] == 1
    [record] = gatehouse.json("audit", "show", "--event", "user.created")
    assert record["place"] is not None
    change = f"UPDATE audit_events SET actor = 'no_one' WHERE place = {record['place']}"  # noqa: S608
    execute_statements(installation.url, [change])
    broken = gatehouse.run("audit", "verify")
    assert broken.code == 1
    assert f"record {record['place']} ({record['record_id']}) was changed" in broken.err
    assert broken.out.startswith("Damaged: 3 records")


def test_the_log_verifies_while_a_running_service_seals_more(
    installation: InstallationPaths, gatehouse: CommandLine
) -> None:
    with Node(data=installation.data, environment=installation.settings):
        for number in range(20):
            login = f"u{number}@studio.example"
            gatehouse("user", "create", "--login", login, "--nick", "U", "--no-password")
            assert gatehouse.json("audit", "verify")["problems"] == []


def test_mk_03_breaks_are_cleared_only_from_a_whole_log(
    installation: InstallationPaths, gatehouse: CommandLine
) -> None:
    gatehouse("key", "list")
    assert gatehouse.run("audit", "clear-breaks", stdin="n\n").code == 1
    assert "not found broken" in gatehouse("audit", "clear-breaks", "--yes")
    execute_statements(installation.url, ["DELETE FROM installation WHERE name = 'audit_head'"])
    refusal = gatehouse.expect_failure("audit", "clear-breaks", "--yes")
    assert "the head of the audit log is missing or was changed" in refusal
    assert "nothing was cleared" in refusal


def test_a_refused_request_is_found_by_the_id_its_caller_was_shown(
    installation: InstallationPaths, gatehouse: CommandLine
) -> None:
    refusal = RECORDER.refusal("game.poll", ORIGIN, reason="the signature is wrong", subject="a-gsid")

    async def refuse() -> None:
        async with open_storage(installation.url, migrate=False) as storage:
            await storage.audit.add_refusal(refusal, max_refusals=1_000)

    asyncio.run(refuse())
    [record] = gatehouse.json("audit", "show", "--record", refusal.record_id)
    assert (record["refused"], record["reason"], record["subject"]) == (True, "the signature is wrong", "a-gsid")
    assert "the signature is wrong" in gatehouse("audit", "show", "--record", refusal.record_id)
    assert "nothing is stored under none: it was deleted because of its age" in gatehouse.expect_failure(
        "audit", "show", "--record", "none"
    )


def test_the_reference_of_an_error_page_shows_its_client_endpoint_and_reason(
    installation: InstallationPaths, gatehouse: CommandLine
) -> None:
    environment = {**installation.settings, "GATEHOUSE__LOG__LEVEL": "info"}
    gatehouse("client", "create", "shop", "--name", "Shop", "--redirect-uri", "https://shop.example/cb")
    with Node(data=installation.data, environment=environment) as node:
        query = {"client_id": "shop", "redirect_uri": "https://evil.example/cb"}
        page = httpx2.get(f"{node.base_url}/proxy/oauth/authorize", params=query, verify=NO_TRUST_STORE)
        assert page.status_code == 400
        found = re.search(r"Reference for support: <code>([0-9a-f]+)</code>", page.text)
        assert found is not None
        node.process.wait_for_line(found[1], node.process.stderr)
    [record] = gatehouse.json("audit", "show", "--reference", found[1])
    assert (record["event"], record["subject"], record["refused"]) == ("page.refused", "shop", True)
    assert record["reason"] == "redirect_uri is not registered for this client"
    assert record["details"] == {"endpoint": "oauth.authorize", "received": "https://evil.example/cb"}
    shown = gatehouse("audit", "show", "--reference", found[1])
    assert "page.refused  shop  refused" in shown
    assert "redirect_uri is not registered for this client endpoint=oauth.authorize" in shown


def test_no_whole_gsid_is_printed(installation: InstallationPaths, gatehouse: CommandLine) -> None:
    gsid = "7d4f0f0e-3c1b-4f6e-9d6a-0b8f7b1c2a3d"
    refusal = RECORDER.refusal("game_session.ended", ORIGIN, reason="canceled in the browser", subject=gsid)

    async def refuse() -> None:
        async with open_storage(installation.url, migrate=False) as storage:
            await storage.audit.add_refusal(refusal, max_refusals=1_000)

    asyncio.run(refuse())
    [record] = gatehouse.json("audit", "show", "--record", refusal.record_id)
    assert record["subject"] == "7d4f0f0e…"
    assert gsid not in gatehouse("audit", "show", "--record", refusal.record_id)


def test_records_are_shown_newest_first_and_as_many_as_asked_for(gatehouse: CommandLine) -> None:
    gatehouse("user", "create", *BOB)
    gatehouse("user", "block", "bob@studio.example")
    [one] = gatehouse.json("audit", "show", "--subject", "bob@studio.example", "--event", "user.created")
    assert one["personal"] == {"address": "", "login": "bob@studio.example", "nick": "Bob"}
    assert one["actor"].startswith("cli:")
    assert len(gatehouse.json("audit", "show", "--limit", "1")) == 1
    output = gatehouse("audit", "show", "--record", one["record_id"])
    assert "login=bob@studio.example" in output


def test_an_event_that_is_none_is_named_with_the_one_that_was_meant(gatehouse: CommandLine) -> None:
    output = gatehouse.expect_failure("audit", "show", "--event", "role.savd", code=2)
    assert "unknown event role.savd. Did you mean role.saved?" in output


def test_records_name_people_and_fit_a_terminal(gatehouse: CommandLine) -> None:
    user_id = gatehouse("user", "create", *BOB).strip()
    first, details, record, *_ = gatehouse("audit", "show", "--event", "user.created").splitlines()
    assert f"user.created  Bob ({user_id})  by cli:" in first
    assert "login=bob@studio.example" in details
    assert record.startswith("    record ")
    assert max(map(len, (first, details, record))) <= 100
