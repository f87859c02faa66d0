"""Other spellings of plain letters, and accounts that share an address in them."""

from functools import partial
from typing import Final

from sqlalchemy import bindparam, update

from gatehouse.accounts.model import exact_login, login_key
from gatehouse.storage.runner import Runner
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import users

FULL_WIDTH: Final = 0xFEE0  # between a character of ASCII and its full-width form
SHARE_LOGIN = Statement(
    lambda: (
        update(users)
        .where(users.c.user_id == bindparam("of"))
        .values({name: bindparam(name) for name in ("login", "login_key", "shared_key")})
    )
)


def wide(text: str) -> str:
    """Return the text in full-width letters, which a Japanese keyboard types."""
    return "".join(chr(ord(one) + FULL_WIDTH) for one in text)


async def share_login(runner: Runner, user_id: str, login: str) -> None:
    """Give an account the address of another one in another spelling, as an upgrade leaves them."""
    await runner.write(partial(_share_login, user_id, login))


def _share_login(user_id: str, login: str) -> Verb[None]:
    yield SHARE_LOGIN(of=user_id, login=login, login_key=exact_login(login), shared_key=login_key(login))
