"""`gatehouse user revoke-all`, `user erase` and `admin reset-2fa`: with no server running."""

import asyncio

import pytest

from gatehouse.accounts.model import User
from gatehouse.app.services import Services, open_services
from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.clock import SystemClock
from gatehouse.settings.merge import load
from tests.support.builders import ORIGIN, PASSKEY_HOST, a_passkey
from tests.support.command_line import CommandLine, InstallationPaths

BOB = ("--login", "bob@studio.example", "--nick", "Bob", "--no-password")


@pytest.fixture
def bob(gatehouse: CommandLine) -> str:
    return gatehouse("user", "create", *BOB).strip()


def with_passkey(installation: InstallationPaths, user_id: str) -> None:
    async def work() -> None:
        loaded = load(data=installation.data, config=None, dev=True, environment=installation.settings, flags={})
        async with open_services(loaded, clock=SystemClock(), serving=False) as services:
            await add_passkey(services, user_id)

    asyncio.run(work())


async def add_passkey(services: Services, user_id: str) -> None:
    entry = services.core.recorder.record(AuditEvent.FACTOR_ADDED, ORIGIN, subject=user_id)
    await services.storage.passkeys.add_passkey(a_passkey(user_id=user_id), [bytes(32)], entry, (), host=PASSKEY_HOST)
    user: User = await services.storage.accounts.user(user_id)
    assert (await services.factors.second_factors.load_factors(user)).recovery_left == 1
    await services.accounts.user_tokens.issue_recorded(user_id, factor="f", origin=ORIGIN)


def rev(gatehouse: CommandLine, user_id: str) -> int:
    return int(gatehouse.facts("user", "show", user_id)["rev"])


def events(gatehouse: CommandLine, user_id: str) -> list[str]:
    return [record["event"] for record in gatehouse.json("audit", "show", "--subject", user_id)]


def test_revoke_all_raises_the_epoch_and_is_on_record(gatehouse: CommandLine, bob: str) -> None:
    before = rev(gatehouse, bob)
    assert gatehouse("user", "revoke-all", "BOB@studio.example") == f"{bob} signed out everywhere\n"
    after = gatehouse.json("user", "revoke-all", bob)["rev"]
    assert rev(gatehouse, bob) == after > before + 1
    assert events(gatehouse, bob).count("session.all_ended") == 2
    assert "no user 1000000009" in gatehouse.expect_failure("user", "revoke-all", "1000000009")


def test_op_12_reset_2fa_removes_every_factor_offline_and_is_on_record(
    installation: InstallationPaths, gatehouse: CommandLine, bob: str
) -> None:
    with_passkey(installation, bob)
    assert "2step_passkey" in gatehouse.facts("user", "show", bob)["system_tags"]
    result = gatehouse.json("admin", "reset-2fa", "bob@studio.example")
    assert (result["user_id"], result["second_factor"], result["rev"]) == (bob, False, rev(gatehouse, bob))
    assert gatehouse.facts("user", "show", bob)["system_tags"] == ""
    (record,) = gatehouse.json("audit", "show", "--subject", bob, "--event", "factor.all_removed")
    assert record["actor"].startswith("cli:")
    assert gatehouse("admin", "reset-2fa", bob) == f"Second factors of {bob} removed\n"


def test_op_14_erase_asks_first_and_leaves_nothing_but_the_number(
    installation: InstallationPaths, gatehouse: CommandLine, bob: str
) -> None:
    with_passkey(installation, bob)
    result = gatehouse.run("user", "erase", bob, stdin="n\n")
    assert (result.code, result.out) == (1, "")
    assert "Permanently erase" in result.err
    assert gatehouse.json("user", "show", bob)["user_id"] == bob
    assert gatehouse("user", "erase", "bob@studio.example", stdin="y\n") == f"{bob} erased\n"
    assert f"no user {bob}" in gatehouse.expect_failure("user", "show", bob)
    assert f"no user {bob}" in gatehouse.expect_failure("user", "erase", bob, "--yes")
    records = gatehouse.json("audit", "show", "--subject", bob)
    assert "user.erased" in {record["event"] for record in records}
    assert "bob@" not in str(records)
    assert gatehouse.json("audit", "verify")["problems"] == []


def test_the_last_administrator_is_erased_by_an_explicit_word_only(gatehouse: CommandLine) -> None:
    created = gatehouse.run(
        "admin", "create", "--login", "a@x.example", "--nick", "A", "--password-stdin", stdin="correct horse battery"
    )
    user_id = created.out.split()[0]
    assert "last administrator" in gatehouse.expect_failure("user", "erase", user_id, "--yes")
    assert gatehouse.json("user", "erase", user_id, "--yes", "--even-last-administrator") == {
        "user_id": user_id,
        "erased": True,
    }
    assert "setup is closed" in gatehouse.expect_failure("admin", "setup-link")
