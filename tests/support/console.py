"""Console tests: a studio with one person of each kind, and a browser for each of them."""

from collections.abc import Sequence
from string import Template
from typing import Final

import httpx2
from playwright.async_api import Page

from gatehouse.app.services.provisioning import build_provisioning
from gatehouse.provision.document import read_document
from gatehouse.provision.file_secrets import SecretResolver
from gatehouse.provision.plan import SECTIONS
from gatehouse.provision.sections.section import Options, read_entries
from tests.support.browser import PASSWORD, HttpBrowser, hidden_fields
from tests.support.builders import ORIGIN
from tests.support.service import RunningService

SHOP: Final = 50001
WIKI: Final = 50002
PROJECT: Final = "mind_games"
ADA: Final = "1000000001"  # administers the installation
OLGA: Final = "1000000002"  # owns the project
DEV: Final = "1000000003"  # develops the shop
MAX: Final = "1000000004"  # manages what people may do in the shop
PIA: Final = "1000000005"  # a player who administers nothing

STUDIO: Final = """
users:
  - {login: ada@studio.example, nick: Ada, password: $password, user_id: "$ada", email_verified: true,
     administrator: true}
  - {login: olga@studio.example, nick: Olga, password: $password, user_id: "$olga", email_verified: true}
  - {login: dev@studio.example, nick: Dev, password: $password, user_id: "$dev", email_verified: true}
  - {login: max@studio.example, nick: Max, password: $password, user_id: "$max", email_verified: true}
  - {login: pia@players.example, nick: Pia, password: $password, user_id: "$pia", tags: [beta]}
projects:
  - {title: Mind Games, description: Puzzles and more, owners: ["$olga"], administrators: [], aliases: [mg]}
applications:
  - application_id: $shop
    name: Shop
    description: Where players buy things
    project_id: $project
    schema:
      private_data:
        user:
          kick: {value: false, protected: false, description: Throw someone out}
          mute: {value: false, protected: false, description: Silence someone}
        store:
          refund: {value: false, protected: false, description: Give money back}
          edit: {value: false, protected: false, description: Change offers}
      public_data:
        badge:
          gold: {value: false, protected: false, description: Wears the gold badge}
    roles:
      moderator:
        description: Keeps order
        meta: {private_data: {user: {kick: {value: true}, mute: {value: true}}}}
      cashier:
        description: Handles money
        user_limit: 3
        meta: {private_data: {store: {refund: {value: true}}}}
      beta:
        description: Sees what is new
        condition: {tag: beta}
        meta: {public_data: {badge: {gold: {value: true}}}}
    users: {"$pia": {roles: [moderator]}}
  - {application_id: $wiki, name: Wiki, project_id: $project}
groups:
  - {project_id: $project, title: Testers, users: ["$pia"], conditions: []}
  - {project_id: $project, title: Staff, users: [], conditions: [{title: Staff, condition: {domain: studio.example}}]}
memberships:
  - id: $project
    users:
      "$dev": {applications: {"$shop": {roles: [app_developer]}}}
      "$max": {applications: {"$shop": {roles: [app_users_manager]}}}
"""
NAMES: Final = {
    "password": f'"{PASSWORD}"',
    "project": PROJECT,
    "shop": str(SHOP),
    "wiki": str(WIKI),
    "ada": ADA,
    "olga": OLGA,
    "dev": DEV,
    "max": MAX,
    "pia": PIA,
}


async def apply_document(service: RunningService, document: str = STUDIO) -> None:
    """Apply a provisioning document to the installation, as `gatehouse apply` does."""
    entries = read_entries(read_document(Template(document).substitute(NAMES).encode(), ".yaml"), SECTIONS)
    terms = Options(secrets=SecretResolver(environment={}, read_file=str), allow_weak=True)
    await build_provisioning(service.services).apply(entries, terms, ORIGIN)


def login_of(user_id: str) -> str:
    return {
        ADA: "ada@studio.example",
        OLGA: "olga@studio.example",
        DEV: "dev@studio.example",
        MAX: "max@studio.example",
        PIA: "pia@players.example",
    }[user_id]


class ConsoleBrowsers:
    """Create signed-in browsers without JavaScript."""

    def __init__(self, service: RunningService) -> None:
        self._service = service
        self._browsers: list[HttpBrowser] = []

    async def __call__(self, user_id: str) -> HttpBrowser:
        """Return a new browser signed in as that person."""
        browser_client = HttpBrowser(self._service)
        self._browsers.append(browser_client)
        await browser_client.sign_in(login_of(user_id))
        return browser_client

    async def close(self) -> None:
        for browser_client in self._browsers:
            await browser_client.client.aclose()


async def sign_in_to_console(service: RunningService, page: Page, user_id: str, path: str = "/console") -> None:
    """Sign in with a real browser and wait until it arrives at the path it asked for."""
    await page.goto(f"{service.base_url}{path}")
    await page.get_by_label("Email").fill(login_of(user_id))
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await page.wait_for_url(f"**{path}")


async def post_form(browser: HttpBrowser, path: str, **fields: str | Sequence[str]) -> httpx2.Response:
    """Post a form whose rows are lists: the CSRF value and version of the current page, and the given fields."""
    assert browser.page is not None
    hidden = {name: value for name, value in hidden_fields(browser.page.text).items() if name in ("csrf", "version")}
    browser.page = await browser.client.post(path, data={**hidden, **fields})
    return browser.page
