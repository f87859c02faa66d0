"""The demo studio on a running service, with every screen of a console full of data."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from playwright.async_api import Page

from gatehouse.app.endpoints import build_app
from gatehouse.app.services import open_services
from gatehouse.demo.accounts import BY_NAME, DemoSecrets
from gatehouse.demo.seeding import seed
from gatehouse.kernel.clock import SystemClock
from gatehouse.web.server.server import ShutdownSignal, serve_in_loop
from tests.support.processes import free_port
from tests.support.service import load_test_settings

GAME: Final = "/console/applications/50001"
HUB: Final = "/console/applications/50002"
RAIDERS: Final = "/console/projects/sky_raiders"
NOOR: Final = BY_NAME["noor"].user_id
JONAS: Final = BY_NAME["jonas"].user_id
SCREENS: Final = {
    "home": "/console",
    "people": "/console/people",
    "person": f"/console/people/{NOOR}",
    "projects": "/console/projects",
    "project": RAIDERS,
    "members": f"{RAIDERS}/members",
    "services": f"{RAIDERS}/services",
    "groups": f"{RAIDERS}/groups",
    "service-accounts": f"{RAIDERS}/service_accounts",
    "applications": "/console/applications",
    "application": GAME,
    "matrix": f"{GAME}/matrix",
    "users": f"{GAME}/users",
    "roles": "/console/roles",
    "role": "/console/roles/50001/game_master",
    "access": "/console/access",
    "check": f"/console/access/check?user_id={NOOR}&application_id=50001&rule=user.kick",
    "who": "/console/access/who?application_id=50001",
    "simulate": "/console/access/simulate",
    "games": "/console/games",
    "activity": "/console/activity",
    "refusals": "/console/activity/refusals",
    "settings": "/console/settings",
    "webhooks": "/console/settings/webhooks",
    "search": "/console/search?q=sky",
    "gallery": "/console/gallery",
}
TABS: Final = {  # more screens, behind tabs
    "people-import": "/console/people/import",
    "person-permissions": f"/console/people/{NOOR}/permissions",
    "person-timeline": f"/console/people/{NOOR}/timeline",
    "person-edit": f"/console/people/{NOOR}/edit",
    "members-invite": f"{RAIDERS}/members/invite",
    "person-access": f"/console/people/{JONAS}/access",
    "person-data": f"/console/people/{NOOR}/data",
    "people-selected": f"/console/people/selected?action=role&user_id={NOOR}&user_id={JONAS}",
    "person-sessions": f"/console/people/{NOOR}/sessions",
    "person-methods": f"/console/people/{NOOR}/methods",
    "person-new": "/console/people/new",
    "project-new": "/console/projects/new",
    "service": f"{RAIDERS}/services/50001",
    "person-bans": f"/console/people/{NOOR}/bans",
    "people-bans": "/console/people/bans",
    "person-activity": f"/console/people/{NOOR}/activity",
    "project-applications": f"{RAIDERS}/applications",
    "rules": f"{GAME}/rules",
    "rule": f"{GAME}/rules/private_data.user.kick",
    "several-rules": f"{GAME}/rules/several",
    "application-roles": f"{GAME}/roles",
    "application-settings": f"{GAME}/settings",
    "connect": f"{HUB}/connect",
    "connect-game": f"{GAME}/connect?snippet=game-unity",
    "new-application": "/console/applications/new",
    "new-product": "/console/applications/new/product",
    "versions": f"{HUB}/versions",
    "clients": f"{HUB}/clients",
    "client": f"{HUB}/clients/raiders-hub",
    "api": f"{GAME}/api",
    "sites": f"{HUB}/sites",
    "access-keys": f"{HUB}/access_keys",
    "public-keys": f"{GAME}/public_keys",
    "service-tokens": f"{GAME}/service_tokens",
    "role-settings": "/console/roles/50001/game_master/settings",
    "project-settings": f"{RAIDERS}/settings",
    "role-members": "/console/roles/50001/game_master/members",
    "email": "/console/settings/email",
    "branding": "/console/settings/branding",
    "settings-sign-in": "/console/settings/sign-in",
    "settings-sessions": "/console/settings/sessions",
    "settings-languages": "/console/settings/languages",
    "keys": "/console/settings/keys",
    "providers": "/console/settings/providers",
    "settings-terms": "/console/settings/terms",
    "health": "/console/settings/health",
    "configuration": "/console/settings/configuration",
}
Demo = tuple[str, DemoSecrets]  # base URL, and the passwords of its people


@asynccontextmanager
async def running_demo(url: str, data: Path) -> AsyncIterator[Demo]:
    clock, stopping, port = SystemClock(), ShutdownSignal(), free_port()
    loaded = load_test_settings(url, data, port=port)
    secrets = await seed(loaded, clock)
    assert secrets is not None
    async with open_services(loaded, clock=clock, serving=True) as services:
        await services.audit.sealer.seal_all()
        served = build_app(services, stopping=stopping, demo=True)
        async with serve_in_loop(served.app, port=port, clock=clock, stopping=stopping):
            yield loaded.settings.server.base_url, secrets


async def sign_in_to_demo(page: Page, demo: Demo, name: str) -> None:
    address, secrets = demo
    await page.goto(f"{address}/console")
    await page.fill("[name=login]", BY_NAME[name].login)
    await page.fill("[name=password]", secrets.passwords[name])
    await page.press("[name=password]", "Enter")
    await page.wait_for_url("**/console")
