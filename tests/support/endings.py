"""Every action that ends all sessions and tokens of a person (checklist LG-20)."""

from collections.abc import Awaitable, Callable
from typing import Final

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import LOGIN, PASSWORD, AccountBrowser
from tests.support.service import RunningService

NEW_PASSWORD: Final = "a quite different phrase"
TEST_ORIGIN: Final = AuditOrigin(actor="test")

# Arguments: the node, the acting person, the affected person.
Ending = Callable[[RunningService, AccountBrowser, User], Awaitable[None]]


async def block(node: RunningService, _: AccountBrowser, user: User) -> None:
    await node.services.accounts.administration.block(user.user_id, TEST_ORIGIN)


async def delete(_: RunningService, account_browser: AccountBrowser, __: User) -> None:
    await account_browser.get("/account/delete")
    assert (await account_browser.submit("/account/delete", login=LOGIN)).status_code == 200


async def change_password(_: RunningService, account_browser: AccountBrowser, __: User) -> None:
    await account_browser.submit_and_read_notice("/account/password", current=PASSWORD, password=NEW_PASSWORD)


async def sign_out_everywhere(node: RunningService, _: AccountBrowser, user: User) -> None:
    await node.services.accounts.sessions.sign_out_everywhere(user.user_id, TEST_ORIGIN)


async def end_others(_: RunningService, account_browser: AccountBrowser, __: User) -> None:
    assert (await account_browser.post_with_csrf("/account/sessions/end-others")).status_code == 303


async def reset_factors(node: RunningService, _: AccountBrowser, user: User) -> None:
    await node.services.factors.second_factors.reset(user, origin=TEST_ORIGIN)


ENDINGS: Final[tuple[Ending, ...]] = (
    *(block, delete, change_password),
    *(sign_out_everywhere, end_others, reset_factors),
)
