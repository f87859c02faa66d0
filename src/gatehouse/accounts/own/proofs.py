"""A link that confirms an address, whichever it is: the one an account has, or the one it is to have."""

from dataclasses import replace

from gatehouse.accounts.errors import LinkDead
from gatehouse.accounts.model import User
from gatehouse.accounts.own.model import EmailChange
from gatehouse.accounts.own.new_address import NewAddress
from gatehouse.accounts.registration import Registration
from gatehouse.audit.model import Origin


class AddressProofs:
    def __init__(self, *, registration: Registration, new_address: NewAddress) -> None:
        self._registration = registration
        self._new_address = new_address

    async def unproved(self, secret: str) -> User:
        """The account, with the address that the link would confirm. Raises LinkDead."""
        try:
            return await self._registration.unproved(secret)
        except LinkDead:
            return moved(await self._new_address.asked(secret))

    async def verify(self, secret: str, origin: Origin) -> User:
        """Spend the link. Nobody is signed in by it. Raises LinkDead."""
        try:
            return await self._registration.verify(secret, origin)
        except LinkDead:
            return moved(await self._new_address.take_over(secret, origin=origin))


def moved(change: EmailChange) -> User:
    return replace(change.owner, login=change.login, email_verified=True)
