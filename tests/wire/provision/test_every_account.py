"""An export is applied without changes, whatever way its accounts came about (R7)."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gatehouse.app.services.provisioning import build_provisioning
from gatehouse.provision.document import write_json
from gatehouse.provision.file_secrets import SecretResolver
from gatehouse.provision.model import Plan, Unfit, show_no_progress
from gatehouse.provision.plan import SECTIONS
from gatehouse.provision.sections.section import Options, read_entries
from tests.support.browser import HttpBrowser
from tests.support.builders import ORIGIN
from tests.support.guests import NEW, Device, confirm_upgrade, register_account, register_upgrade
from tests.support.permission_builders import create_application
from tests.support.platforms import run_token_issuer
from tests.support.service import RunningService, running_service
from tests.support.studio import a_studio, create_administrator
from tests.wire.accounts.test_imported_passwords import import_lines
from tests.wire.accounts.test_platform_tokens import GAME_CLIENT, log_in
from tests.wire.accounts.test_providers import a_vendor, sign_in_with


@pytest.fixture
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    environment = {
        "GATEHOUSE__GUESTS__ENABLED": "true",
        "GATEHOUSE__ACCOUNTS__REGISTRATION": "true",
        "GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8",
    }
    async with running_service(installed_url, tmp_path, environment=environment) as running:
        yield running


async def export(service: RunningService) -> dict[str, Any]:
    """The export as a file has it."""
    sections = await build_provisioning(service.services).export(secrets=True)
    document: dict[str, Any] = json.loads(write_json(sections, show_no_progress))
    return document


async def apply(service: RunningService, document: dict[str, Any]) -> Plan:
    options = Options(secrets=SecretResolver(environment={}, read_file=str))
    return await build_provisioning(service.services).apply(read_entries(document, SECTIONS), options, ORIGIN)


async def make_accounts(service: RunningService, browser: HttpBrowser) -> None:
    """One account of each kind."""
    studio = await a_studio(service)  # created by an administrator, and a service account
    admin = await create_administrator(studio)
    account = {"project_id": "mind_games", "name": "ci"}
    await studio.expect_ok("serviceAccount", {"action": "save", "data": account}, studio.owner.headers)
    created = {"action": "create", "data": {"login": "made@studio.example", "nick": "Made"}}
    await studio.expect_ok("user", created, admin.headers)
    await service.services.registration.invitations.invite(
        login="invited@studio.example", nick="Invited", lang="en", origin=ORIGIN
    )
    await Device().log_in(service)  # a guest
    upgraded = Device()
    await upgraded.log_in(service)
    game = await register_upgrade(service, upgraded)
    await register_account(service, browser)
    await confirm_upgrade(browser, game, NEW)
    merged = Device()
    await merged.log_in(service)
    await confirm_upgrade(browser, await register_upgrade(service, merged), NEW)
    application = (await create_application(service.services.storage, name="Raiders")).application_id
    async with run_token_issuer("unity", service.clock) as issuer:
        await service.services.settings_editor.save(issuer.settings(f"{application}:{GAME_CLIENT}"), ORIGIN)
        await log_in(service, application, issuer.token())
        gone = dict.fromkeys(issuer.settings(f"{application}:{GAME_CLIENT}"))
        await service.services.settings_editor.save(gone, ORIGIN)
    async with a_vendor(service, "oidc") as vendor:
        await import_lines(service, "vendor;person-9;4711", header="provider;subject;user_id")
        await sign_in_with(browser, vendor, email="", email_verified=False)


async def test_op_92_export_is_applied_without_changes_for_every_way_an_account_comes_about(
    service: RunningService,
) -> None:
    browser = HttpBrowser(service)
    await make_accounts(service, browser)
    await browser.client.aclose()
    document = await export(service)
    without_address = [user["user_id"] for user in document["users"] if user["login"] is None]
    assert len(without_address) >= 4  # guest, ticket, provider, imported identity
    plan = await apply(service, document)
    assert (plan.changes, plan.spared) == ((), ())


async def test_file_neither_removes_an_address_nor_creates_an_account_that_it_cannot_name(
    service: RunningService,
) -> None:
    await a_studio(service)
    (first, *_) = (await export(service))["users"]
    with pytest.raises(Unfit, match="cannot be removed"):
        await apply(service, {"users": [{"user_id": first["user_id"], "login": None}]})
    with pytest.raises(Unfit, match="needs a user_id"):
        await apply(service, {"users": [{"login": None, "nick": "Guest"}]})
    plan = await apply(service, {"users": [{"user_id": "1001", "login": None, "nick": "Guest"}]})
    assert plan.spared == ("1 new users have no email address and cannot sign in until they get one",)
    assert (await apply(service, await export(service))).changes == ()
