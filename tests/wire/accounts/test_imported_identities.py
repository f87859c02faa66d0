"""An imported identity is the one that a sign-in with its provider finds (R10)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.browser import HttpBrowser
from tests.support.service import RunningService, running_service
from tests.support.vendors import STEAM_ID, TENANT
from tests.wire.accounts.test_imported_passwords import import_lines
from tests.wire.accounts.test_providers import a_vendor, sign_in_with


@pytest.fixture
async def service(migrated_sqlite_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    """Only one database: test_imports.py in conformance has both."""
    allow = {"GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8"}
    async with running_service(migrated_sqlite_url, tmp_path, environment=allow) as running:
        yield running


@pytest.mark.parametrize(
    ("kind", "subject", "claims"),
    [
        ("oidc", "person-1", {}),
        ("google", "person-1", {}),
        ("github", "583231", {"id": 583231, "login": "kim", "emails": []}),
        ("microsoft", "object-1", {"oid": "object-1"}),
        ("steam", STEAM_ID, {}),
    ],
)
async def test_im_10_an_imported_identity_signs_its_owner_in(
    service: RunningService, browser_client: HttpBrowser, kind: str, subject: str, claims: dict[str, object]
) -> None:
    more = {"tenant": TENANT} if kind == "microsoft" else {}
    async with a_vendor(service, kind, create_accounts=False, **more) as vendor:
        vendor.tenant = more.get("tenant", vendor.tenant)
        await import_lines(service, f"vendor;{subject};4711", header="provider;subject;user_id")
        response = await sign_in_with(browser_client, vendor, **claims)
    assert (response.status_code, response.headers.get("location")) == (303, "/account"), response.text
    [session] = await service.services.accounts.sessions.of_user("4711")
    assert session.auth == "provider"
