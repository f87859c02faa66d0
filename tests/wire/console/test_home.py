"""The home page of the console: figures of a period, what expires soon, remaining setup steps, owners and players."""

import re

import pytest

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.times import DAY, HOUR
from tests.support.console import ADA, DEV, MAX, OLGA, PIA, PROJECT, SHOP, ConsoleBrowsers, apply_document
from tests.support.service import RunningService

HOME = "/console"
ENDING = """
applications:
  - application_id: $shop
    users: {"$pia": {roles: [{name: moderator, expired: %d}]}}
"""


def figures_on(page: str) -> dict[str, tuple[str, str]]:
    """The tiles: by name, the number and the change."""
    tiles = re.findall(r"<dt>([^<]+)</dt><dd>(?:<a [^>]*>)?(\d+)(?:</a>)?\s*<small[^>]*>([^<]*)</small>", page)
    return {name: (number, change) for name, number, change in tiles}


async def sign_in_at(studio: RunningService, ago: int, *people: str, app_id: int = SHOP) -> None:
    """Count a login of each person to the application, so long ago."""
    studio.clock.set_back(ago)
    for user_id in people:
        studio.services.core.recorder.record(
            AuditEvent.LOGGED_IN, AuditOrigin(actor=user_id), subject=user_id, details={"app_id": app_id}
        )
    studio.clock.set_back(-ago)
    await studio.services.core.tally.flush()


@pytest.mark.both_databases
async def test_figures_are_of_the_chosen_period_and_compared_with_the_one_before(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await sign_in_at(studio, 2 * HOUR, PIA, PIA, MAX)
    await sign_in_at(studio, 30 * HOUR, PIA, OLGA)
    await sign_in_at(studio, 10 * DAY, PIA, DEV, DEV, DEV)
    ada = await console_browsers(ADA)
    await studio.services.core.tally.flush()
    day, week, month = [(await ada.get(f"{HOME}?period={one}")).text for one in ("24h", "7d", "30d")]
    # Ada's own sign-in is in each.
    assert figures_on(day)["Sign-ins"] == ("4", "2 before")
    assert figures_on(day)["Active people"] == ("3", "2 before")
    assert figures_on(week)["Sign-ins"] == ("6", "4 before")
    assert figures_on(week)["Active people"] == ("4", "2 before")
    assert figures_on(month)["Sign-ins"] == ("10", "0 before")
    assert figures_on(month)["Active people"] == ("5", "0 before")
    assert 'aria-current="page">7 days' in week
    top = month.partition('id="top-title"')[2]
    assert re.search(rf'<a href="/console/applications/{SHOP}">Shop</a>.*?<span>9</span>', top, re.DOTALL)


@pytest.mark.both_databases
async def test_failures_latest_activity_and_what_ends_soon(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await apply_document(studio, ENDING % (studio.clock.now() + DAY + HOUR))
    await studio.client.post("/proxy/api/login", json={"login": "pia@players.example", "password": "wrong"})
    await studio.services.core.tally.flush()
    studio.clock.set_back(-1)  # the newest record
    ada = await console_browsers(ADA)
    page = (await ada.get(HOME)).text
    assert figures_on(page)["Failed sign-ins"][0] == "1"
    numbers = page.partition('id="numbers"')[2].partition("</details>")[0]
    assert '<a href="/console/activity/refusals">' in numbers
    assert "Role moderator" in page
    assert ">in 1 day</time>" in page
    assert "<bdi>Ada</bdi> signed in" in page
    assert "Turn on two-factor sign-in" in page
    assert "Done: </span>Create a project" in page


@pytest.mark.both_databases
async def test_counts_add_up_over_several_flushes(studio: RunningService, console_browsers: ConsoleBrowsers) -> None:
    await console_browsers(PIA)
    await studio.services.core.tally.flush()
    await studio.services.core.tally.flush()
    await console_browsers(PIA)
    await studio.services.core.tally.flush()
    assert [tally.times for tally in await studio.services.storage.tallies.counts_since(0)] == [2]


@pytest.mark.both_databases
async def test_owners_get_their_projects_and_players_their_account(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await apply_document(studio, ENDING % (studio.clock.now() + DAY))
    page = (await (await console_browsers(OLGA)).get(HOME)).text
    assert f'<a href="/console/projects/{PROJECT}">Mind Games</a>' in page
    assert "2 applications" in page
    assert "created project <bdi>Mind Games</bdi>" in page
    assert "Settings" not in page
    assert "Your applications" in (await (await console_browsers(MAX)).get(HOME)).text
    player = await (await console_browsers(PIA)).get(HOME)
    assert (player.status_code, player.headers["location"]) == (303, "/account")


async def test_an_unknown_period_shows_the_day(console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    assert 'aria-current="page">24 hours' in (await ada.get(f"{HOME}?period=year")).text
