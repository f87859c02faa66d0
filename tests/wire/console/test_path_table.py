"""The table of paths has every screen of the console, and nothing else."""

from importlib import import_module

import pytest

from gatehouse.app.console.shared import ConsoleServices
from gatehouse.web.api.health import Readiness
from gatehouse.web.console.lazy_console import SignInGate
from gatehouse.web.console.path_table import CONSOLE_PATHS
from gatehouse.web.pages.assets import Assets
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.setup import NO_SAMPLES
from tests.support.console import ADA, ConsoleBrowsers
from tests.support.service import RunningService

FIRST_PAGES = [
    min((path for path, methods in paths.items() if "GET" in methods), key=len) for paths in CONSOLE_PATHS.values()
]


@pytest.fixture
def console(service: RunningService) -> ConsoleServices:
    services = service.services
    gate = SignInGate(browsers=services.accounts.browsers, sign_in_flows=services.sign_in_flows)
    readiness = Readiness({}, clock=service.clock, is_stopping=lambda: False)
    return ConsoleServices(
        services, sign_in_gate=gate, readiness=readiness, pages=PageRenderer(Assets()), samples=NO_SAMPLES
    )


@pytest.mark.parametrize("section", CONSOLE_PATHS)
def test_a_section_builds_exactly_the_routes_of_the_table(console: ConsoleServices, section: str) -> None:
    routes = import_module(f"gatehouse.app.console.{section}").build(console)
    built = [(route.method, route.path) for route in routes]
    assert sorted(built) == sorted(
        (method, path) for path, methods in CONSOLE_PATHS[section].items() for method in methods
    )


async def test_the_first_page_of_each_section_opens(console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    for path in FIRST_PAGES:
        response = await ada.get(f"/console{path}")
        assert response.status_code == 200, path


async def test_a_form_sent_to_a_page_without_one_is_refused(console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    response = await ada.client.post("/console/people/bans")
    assert (response.status_code, response.headers["allow"]) == (405, "GET")
    assert (await ada.client.post("/console/nonsense")).status_code == 404
