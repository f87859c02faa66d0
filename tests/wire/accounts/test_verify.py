"""The proof that an address is one's own."""

import httpx2

from gatehouse.accounts.model import User
from tests.support.browser import HttpBrowser
from tests.support.mailbox import link_in_new_message, new_messages
from tests.support.service import RunningService

LOGIN = "anna@studio.example"


async def ask_again(visitor: HttpBrowser, login: str = LOGIN) -> httpx2.Response:
    await visitor.get("/forgot")
    return await visitor.post("/verify-email/again", login=login)


async def is_proved(service: RunningService, user: User) -> bool:
    return (await service.services.storage.accounts.user(user.user_id)).email_verified


async def test_looking_at_the_link_spends_nothing_and_the_button_spends_it_once(
    service: RunningService, visitor: HttpBrowser, anna: User
) -> None:
    assert (await ask_again(visitor)).status_code == 200
    link = await link_in_new_message(service)
    for _ in range(3):
        page = await visitor.get(link)
        assert (page.status_code, LOGIN in page.text) == (200, True)
    assert (await visitor.client.head(link)).status_code == 200
    assert not await is_proved(service, anna)
    assert (await visitor.post("/verify-email")).status_code == 200
    assert await is_proved(service, anna)
    again = await visitor.get(link)
    assert again.status_code == 403
    assert "This link no longer works" in again.text


async def test_the_link_can_be_opened_in_another_browser_than_the_one_that_asked(
    service: RunningService, visitor: HttpBrowser, other: HttpBrowser, anna: User
) -> None:
    await ask_again(visitor)
    await other.get(await link_in_new_message(service))
    await other.post("/verify-email")
    assert await is_proved(service, anna)


async def test_a_newer_link_ends_the_older_one_and_time_ends_both(
    service: RunningService, visitor: HttpBrowser, anna: User
) -> None:
    await ask_again(visitor)
    old = await link_in_new_message(service)
    await ask_again(visitor)
    new = await link_in_new_message(service)
    assert (await visitor.get(old)).status_code == 403
    assert (await visitor.get(new)).status_code == 200
    await service.clock.advance(1_799)
    assert (await visitor.get(new)).status_code == 200
    page = visitor.page
    await service.clock.advance(1)
    assert (await visitor.get(new)).status_code == 403
    visitor.page = page
    assert (await visitor.post("/verify-email")).status_code == 403
    assert not await is_proved(service, anna)


async def test_no_letter_goes_to_who_is_confirmed_blocked_or_no_one(
    service: RunningService, visitor: HttpBrowser, anna: User
) -> None:
    await ask_again(visitor)
    link = await link_in_new_message(service)
    await visitor.get(link)
    await visitor.post("/verify-email")
    answers = [await ask_again(visitor), await ask_again(visitor, "no_one@studio.example")]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert await new_messages(service) == []
    assert await is_proved(service, anna)


async def test_a_guess_is_no_link(visitor: HttpBrowser) -> None:
    assert (await visitor.get("/verify-email?token=guess")).status_code == 403
    assert (await visitor.get("/verify-email")).status_code == 400
