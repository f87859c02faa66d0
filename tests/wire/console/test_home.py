"""The home page of the console: recent sign-ins, what expires soon, remaining setup steps."""

from tests.support.console import ADA, MAX, OLGA, PIA, SHOP, ConsoleBrowsers, apply_document
from tests.support.service import RunningService

ENDING = """
applications:
  - application_id: $shop
    users: {"$pia": {roles: [{name: moderator, expired: %d}]}}
"""


async def test_the_day_is_counted_and_what_ends_soon_is_named(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, pia = await console_browsers(ADA), await console_browsers(PIA)
    await pia.get("/sign-in")
    await pia.client.post("/proxy/api/login", json={"login": "pia@players.example", "password": "wrong"})
    await studio.services.tally.flush()
    end = studio.clock.now() + 86_400
    await apply_document(studio, ENDING % end)
    page = (await ada.get("/console")).text
    assert "[[" in page
    counted = await studio.services.storage.tallies.counts_since(0)
    assert {tally.what.value: tally.times for tally in counted} == {"signed_in": 2, "refused": 1}
    assert "Role moderator" in page
    assert f'href="/console/applications/{SHOP}">Shop' in page
    assert "Turn on two-factor sign-in" in page
    assert "Done: </span>Create a project" in page


async def test_the_refused_sign_ins_lead_to_their_hours_and_from_there_to_what_else_was_refused(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    await studio.client.post("/proxy/api/login", json={"login": "pia@players.example", "password": "wrong"})
    await studio.services.tally.flush()
    page = (await ada.get("/console")).text
    assert '<dt>Refused sign-ins</dt><dd><a href="#numbers">1</a></dd>' in page
    numbers = page.partition('id="numbers"')[2].partition("</details>")[0]
    assert '<a href="/console/activity/refusals">' in numbers


async def test_sign_in_tally_adds_up_over_several_flushes(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await console_browsers(PIA)
    tallies = studio.services.storage.tallies
    await studio.services.tally.flush()
    await studio.services.tally.flush()
    await console_browsers(PIA)
    await studio.services.tally.flush()
    assert [tally.times for tally in await tallies.counts_since(0)] == [2]


async def test_others_are_greeted_with_what_they_look_after(console_browsers: ConsoleBrowsers) -> None:
    for user_id, words in ((OLGA, "1 project"), (MAX, "Your applications"), (PIA, "You don't manage anything yet.")):
        page = (await (await console_browsers(user_id)).get("/console")).text
        assert words in page
        assert "Settings" not in page
