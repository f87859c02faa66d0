"""Sign-in from a game in a real browser: on the game's device and on a different one, with and without JavaScript."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import PASSWORD
from tests.support.game import ANNA, Game, poll_ended_session, register_game, register_game_elsewhere
from tests.support.guide_pictures import Camera
from tests.support.permission_builders import create_application
from tests.support.service import RunningService

pytestmark = pytest.mark.asyncio(loop_scope="session")

WARNING = "This sign-in started on another network"
YES, NO = "Sign in", "Cancel"
BACK = "You're signed in"
OVER = "This sign-in has ended"
ASKS = 30  # of game_end.html, 2 seconds apart


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def anna(service: RunningService) -> User:
    return await service.services.accounts.administration.create(
        login=ANNA, nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
    )


@pytest_asyncio.fixture(loop_scope="session")
async def page_without_script(browser: Browser) -> AsyncIterator[Page]:
    """A page without JavaScript."""
    context = await browser.new_context(locale="en-GB", java_script_enabled=False)
    yield await context.new_page()
    await context.close()


@pytest_asyncio.fixture(params=["script", "no script"], loop_scope="session")
async def page_with_or_without_script(page: Page, page_without_script: Page, request: pytest.FixtureRequest) -> Page:
    return page if request.param == "script" else page_without_script


async def open_link(page: Page, game: Game) -> None:
    """Open the link as a person who is not signed in yet."""
    await page.goto(f"{game.service.base_url}/?gsid={game.gsid}")
    await page.get_by_label("Email").fill(ANNA)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await expect(page.get_by_role("button", name=YES)).to_be_visible()


@pytest.mark.both_databases
@pytest.mark.pictures("game-login-question")
async def test_beside_the_game_the_question_is_plain_and_a_yes_leads_back(
    service: RunningService, page_with_or_without_script: Page, anna: User, picture: Camera
) -> None:
    application = await create_application(service.services.storage, name="Sky Raiders")
    game = await register_game(service, app_id=application.application_id, code="1")
    await service.clock.advance(12)
    await open_link(page_with_or_without_script, game)
    await expect(
        page_with_or_without_script.get_by_role("heading", name="Sign in to Sky Raiders on your PC?")
    ).to_be_visible()
    await expect(page_with_or_without_script.get_by_text("Started 12 seconds ago from your network.")).to_be_visible()
    await expect(page_with_or_without_script.get_by_text("The game is waiting.")).to_be_visible()
    await expect(page_with_or_without_script.get_by_role("alert")).to_have_count(0)
    await expect(page_with_or_without_script.get_by_role("radio")).to_have_count(0)
    boxes = [await page_with_or_without_script.get_by_role("button", name=name).bounding_box() for name in (NO, YES)]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert (boxes[0]["width"], boxes[0]["height"]) == (boxes[1]["width"], boxes[1]["height"])
    await picture(page_with_or_without_script, "game-login-question", width=760)
    await page_with_or_without_script.get_by_role("button", name=YES).click()
    await expect(page_with_or_without_script.get_by_role("heading", name=BACK)).to_be_visible()
    assert (await game.poll()).json()["user_id"] == anna.user_id


@pytest.mark.pictures("game-login-far")
async def test_far_from_the_game_a_number_is_picked_with_the_keyboard_alone(
    service: RunningService, page: Page, anna: User, picture: Camera
) -> None:
    application = await create_application(service.services.storage, name="Sky Raiders")
    game = await register_game_elsewhere(service, app_id=application.application_id, code="1")
    await page.goto(f"{service.base_url}/?gsid={game.gsid}")
    await expect(page.get_by_label("Email")).to_be_focused()
    await page.keyboard.type(ANNA)
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")  # past the link to reset the password
    await page.keyboard.type(PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text(WARNING)
    numbers = page.get_by_role("radio")
    await expect(numbers).to_have_count(3)
    await expect(page.get_by_role("radio", checked=True)).to_have_count(0)
    await picture(page, "game-login-far", width=760)
    offered = [await option.get_attribute("value") for option in await numbers.all()]
    index = offered.index(game.answer["code"])
    while not await numbers.first.evaluate("radio => radio === document.activeElement"):
        await page.keyboard.press("Tab")
    await page.keyboard.press("Space")
    for _ in range(index):
        await page.keyboard.press("ArrowRight")
    await expect(numbers.nth(index)).to_be_checked()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name=BACK)).to_be_visible()
    assert (await game.poll()).json()["user_id"] == anna.user_id


async def test_far_from_the_game_a_yes_without_a_number_is_not_sent_and_a_wrong_one_ends_it(
    service: RunningService, page_with_or_without_script: Page
) -> None:
    game = await register_game_elsewhere(service, code="1")
    await open_link(page_with_or_without_script, game)
    await page_with_or_without_script.get_by_role("button", name=YES).click()
    await expect(page_with_or_without_script.get_by_role("alert")).to_contain_text(WARNING)
    for number in await page_with_or_without_script.get_by_role("radio").all():
        if await number.get_attribute("value") != game.answer["code"]:
            await number.check()
    await page_with_or_without_script.get_by_role("button", name=YES).click()
    await expect(page_with_or_without_script.get_by_role("heading", name="Wrong number")).to_be_visible()
    assert (await poll_ended_session(game)).json()["status"] == "ERROR"


async def test_a_no_needs_no_number_and_ends_it(service: RunningService, page_with_or_without_script: Page) -> None:
    game = await register_game_elsewhere(service, code="1")
    await open_link(page_with_or_without_script, game)
    await page_with_or_without_script.get_by_role("button", name=NO).click()
    await expect(page_with_or_without_script.get_by_role("heading", name="Sign-in canceled")).to_be_visible()
    assert (await poll_ended_session(game)).json()["status"] == "ERROR"


async def test_too_late_is_no_dead_end_without_javascript(service: RunningService, page_without_script: Page) -> None:
    game = await register_game(service)
    await open_link(page_without_script, game)
    await service.clock.advance(120)
    await page_without_script.get_by_role("button", name=YES).click()
    await expect(page_without_script.get_by_role("heading", name=OVER)).to_be_visible()


async def test_the_question_goes_away_by_itself_when_no_one_waits_for_the_answer(
    service: RunningService, page: Page
) -> None:
    game = await register_game(service)
    await open_link(page, game)
    await service.clock.advance(60)
    await expect(page.get_by_text("The game seems to have stopped waiting.")).to_be_visible()
    await expect(page.get_by_text("The game is waiting.")).to_be_hidden()
    await service.clock.advance(60)
    await expect(page.get_by_role("heading", name=OVER)).to_be_visible()


@pytest.mark.parametrize(
    ("closing", "says"), [("Success", "Signed in to the game"), ("Error", "Game sign-in failed")]
)
async def test_the_last_page_follows_what_the_game_says(
    service: RunningService, page: Page, closing: str, says: str
) -> None:
    game = await register_game(service)
    await open_link(page, game)
    await page.get_by_role("button", name=YES).click()
    await expect(page.get_by_role("heading", name=BACK)).to_be_visible()
    assert (await game.poll()).json()["status"] == "OK"
    await game.close(closing)
    await expect(page.get_by_role("heading", name=says)).to_be_visible()


async def test_the_last_page_asks_a_silent_game_for_a_minute_only(service: RunningService, page: Page) -> None:
    asked: list[str] = []
    game = await register_game(service)
    await page.clock.install()
    await open_link(page, game)
    await page.get_by_role("button", name=YES).click()
    await expect(page.get_by_role("heading", name=BACK)).to_be_visible()
    page.on("requestfinished", lambda request: asked.append(request.url) if "/game/state" in request.url else None)
    while len(asked) < ASKS:
        await page.clock.run_for(1_000)
    for _ in range(5):
        await page.clock.run_for(2_000)
    assert len(asked) == ASKS


async def test_result_page_is_linked_without_javascript(service: RunningService, page_without_script: Page) -> None:
    game = await register_game(service)
    await open_link(page_without_script, game)
    await page_without_script.get_by_role("button", name=YES).click()
    assert (await game.poll()).json()["status"] == "OK"
    await game.close()
    await page_without_script.get_by_role("link", name="Show the result").click()
    await expect(page_without_script.get_by_role("heading", name="Signed in to the game")).to_be_visible()


async def test_a_phone_goes_on_where_the_picture_leads(service: RunningService, browser: Browser, page: Page) -> None:
    game = await register_game(service)
    await page.goto(f"{service.base_url}/?gsid={game.gsid}")
    picture = page.get_by_role("img", name="QR code with the link to this sign-in")
    await expect(picture).to_be_hidden()
    await page.get_by_text("Use your phone").click()
    await expect(picture).to_be_visible()
    context = await browser.new_context(locale="en-GB", has_touch=True, is_mobile=True)
    phone = await context.new_page()
    await open_link(phone, game)
    await expect(phone.get_by_text("Use your phone")).to_be_hidden()
    await phone.get_by_role("button", name=YES).tap()
    await expect(phone.get_by_role("heading", name=BACK)).to_be_visible()
    await context.close()
