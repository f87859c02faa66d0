"""Whatever ends all that was ever issued to a person (checklist LG-20)."""

from collections.abc import Awaitable, Callable
from typing import Final

from gatehouse.accounts.model import User
from gatehouse.app.people import people
from gatehouse.audit.model import Origin
from tests.support.resident import LOGIN, Resident
from tests.support.service import Service
from tests.support.visitor import PASSWORD

NEW: Final = "a quite different phrase"
OURS: Final = Origin(actor="test")

# On which node, by whom, to whom.
Ending = Callable[[Service, Resident, User], Awaitable[None]]


async def block(node: Service, _: Resident, user: User) -> None:
    await node.house.administration.block(user.user_id, OURS)


async def delete(_: Service, resident: Resident, __: User) -> None:
    await resident.get("/account/delete")
    assert (await resident.submit("/account/delete", login=LOGIN)).status_code == 200


async def change_password(_: Service, resident: Resident, __: User) -> None:
    await resident.do("/account/password", current=PASSWORD, password=NEW, repeated=NEW)


async def sign_out_everywhere(node: Service, _: Resident, user: User) -> None:
    await people(node.house).sessions.sign_out_everywhere(user.user_id, OURS)


async def end_others(_: Service, resident: Resident, __: User) -> None:
    assert (await resident.send("/account/sessions/end-others")).status_code == 303


async def reset_factors(node: Service, _: Resident, user: User) -> None:
    await people(node.house).factors.reset(user, origin=OURS)


ENDINGS: Final[tuple[Ending, ...]] = (
    *(block, delete, change_password),
    *(sign_out_everywhere, end_others, reset_factors),
)
