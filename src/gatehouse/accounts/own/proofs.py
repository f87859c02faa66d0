"""A link that confirms an address, whichever it is: the one an account has, or the one it is to have."""

from dataclasses import replace

from gatehouse.accounts.errors import LinkDead
from gatehouse.accounts.model import User
from gatehouse.accounts.own.model import EmailChange
from gatehouse.accounts.own.new_address import EmailChanges
from gatehouse.accounts.registration import SelfRegistration
from gatehouse.audit.model import AuditOrigin


class EmailVerification:
    def __init__(self, *, registration: SelfRegistration, email_changes: EmailChanges) -> None:
        self._registration = registration
        self._email_changes = email_changes

    async def find_unverified(self, secret: str) -> User:
        """The account, with the address that the link would confirm. Raises LinkDead."""
        try:
            return await self._registration.find_unverified(secret)
        except LinkDead:
            return with_new_login(await self._email_changes.find_change(secret))

    async def verify_email(self, secret: str, origin: AuditOrigin) -> User:
        """Spend the link. Nobody is signed in by it. Raises LinkDead."""
        try:
            return await self._registration.verify_email(secret, origin)
        except LinkDead:
            return with_new_login(await self._email_changes.confirm_change(secret, origin=origin))


def with_new_login(change: EmailChange) -> User:
    return replace(change.owner, login=change.login, email_verified=True)
