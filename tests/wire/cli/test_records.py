"""`list` and `show` of accounts, applications, projects, groups and roles."""

import asyncio
from functools import partial
from pathlib import Path

from tests.support.command_line import CommandLine, InstallationPaths
from tests.support.console import ADA, PROJECT, SHOP, apply_document
from tests.support.service import running_service
from tests.support.studio import FACTOR


async def test_list_and_show_print_the_records_of_the_api(migrated_url: str, tmp_path: Path) -> None:
    run = partial(asyncio.to_thread, InstallationPaths(data=tmp_path, url=migrated_url).command_line().json)
    async with running_service(migrated_url, tmp_path) as service:
        await apply_document(service)
        ada = await service.services.storage.accounts.user(ADA)
        jwt = await service.services.accounts.user_tokens.issue(ada, auth="login", factor=FACTOR)
        headers = {"Authorization": f"Bearer {jwt}", "Factor": FACTOR}

        async def ask(path: str, action: str, data: object, **fields: object) -> object:
            body = {"action": action, "data": data, **fields}
            return (await service.client.post(f"/api/permissions/{path}", json=body, headers=headers)).json()["data"]

        groups = await ask("group", "list", {"query": "staff"})
        assert isinstance(groups, list)
        (staff,) = groups
        of_shop, in_project = {"application_id": SHOP}, {"filters": {"project_id": PROJECT}}
        shop = await ask("application", "get", of_shop, options={"full": True})
        for words, expected in (
            (("user", "list"), await ask("user", "search", {})),
            (("user", "list", "pi", "--limit", "1"), await ask("user", "search", {"query": "pi"})),
            (("application", "list"), await ask("application", "list", {})),
            (("application", "list", "--project", PROJECT), await ask("application", "list", in_project)),
            (("application", "show", "shop"), shop),
            (("application", "show", str(SHOP)), shop),
            (("project", "list", "Puzzles", "and"), await ask("project", "list", {"query": "Puzzles and"})),
            (("project", "show", "mg"), await ask("project", "get", {"id": "mg"})),
            (("group", "list", "staff", "--project", PROJECT), groups),
            (("group", "list", "--project", "other"), []),
            (("group", "show", staff["id"]), await one_group(ask, staff["id"])),
            (("role", "show", "shop", "Cashier"), await role_of(ask, "cashier")),
            (("role", "list", "shop", "money"), [await role_of(ask, "cashier")]),
        ):
            assert expected or "other" in words
            assert await run(*words) == expected, words


async def one_group(ask: partial, group_id: str) -> object:
    found = await ask("group", "get", {"project_id": PROJECT}, group_id=group_id)
    return found["groups"][0]


async def role_of(ask: partial, name: str) -> object:
    found = await ask("roles", "get", {"name": name}, application_id=SHOP)
    return {member: value for member, value in found.items() if member != "users_count"}


def test_people_get_a_table_and_a_line_for_each_member(gatehouse: CommandLine) -> None:
    user_id = gatehouse("user", "create", "--login", "bob@studio.example", "--nick", "Bob", "--no-password").strip()
    heading, row = gatehouse("user", "list").splitlines()
    assert heading.split() == ["user_id", "nick", "login", "blocked", "registered"]
    assert row.split()[:4] == [user_id, "Bob", "bob@studio.example", "no"]
    assert len(gatehouse("user", "list", "zoe").splitlines()) == 1
    assert gatehouse.facts("application", "show", "1")["application_id"] == "1"
    names = [line.split()[0] for line in gatehouse("role", "list", "1").splitlines()]
    assert "administrator" in names
    assert "no role missing" in gatehouse.expect_failure("role", "show", "1", "missing")
    assert "no application missing" in gatehouse.expect_failure("role", "list", "missing")
    gatehouse.expect_failure("project", "show", "missing")
    gatehouse.expect_failure("group", "show", "0" * 24)
