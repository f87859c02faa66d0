"""A link that verifies an address, either the current one of an account or its new one."""

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.address_proofs.model import ENDS_NOTHING, EndedMethods, proving_browser, verifies_address
from gatehouse.accounts.email_links import EmailLinks
from gatehouse.accounts.errors import LinkDead, LinkNeedsSession
from gatehouse.accounts.model import User
from gatehouse.accounts.own_account.email_change import EmailChanges
from gatehouse.accounts.own_account.model import EmailChange
from gatehouse.accounts.registration import SelfRegistration
from gatehouse.accounts.session_model import UserSession
from gatehouse.audit.model import AuditOrigin


class AddressProof(Struct, frozen=True, kw_only=True):
    """What a link would prove in this browser."""

    owner: User  # with the address that is proved
    ending: EndedMethods = ENDS_NOTHING
    needs_session: bool = False  # it works only in the session that asked, or after a second factor


class EmailVerification:
    def __init__(self, *, registration: SelfRegistration, email_changes: EmailChanges, links: EmailLinks) -> None:
        self._registration = registration
        self._email_changes = email_changes
        self._links = links

    async def find_proof(self, secret: str, digest: bytes, signed_in: UserSession | None) -> AddressProof:
        """Return what the link would do in the browser of this digest. Raises LinkDead."""
        try:
            owner = await self._registration.find_unverified(secret)
        except LinkDead:
            change = await self._email_changes.find_change(secret)
            browser = proving_browser(change.owner, digest, signed_in)
            return AddressProof(owner=with_new_login(change), needs_session=not change.may_be_proved_in(browser))
        browser = proving_browser(owner, digest, signed_in)
        return AddressProof(
            owner=owner,
            ending=await self._links.find_ending(owner, browser),
            needs_session=not verifies_address(owner, browser),
        )

    async def verify_email(
        self,
        secret: str,
        digest: bytes,
        signed_in: UserSession | None,
        *,
        origin: AuditOrigin,
        device: str = "",
        password: str = "",
    ) -> User:
        """Use the link, without signing in. Raises LinkDead, LinkNeedsSession, and BadAccount for a bad password."""
        try:
            owner = await self._registration.find_unverified(secret)
        except LinkDead:
            return with_new_login(
                await self._email_changes.confirm_change(secret, digest, signed_in, origin=origin, device=device)
            )
        browser = proving_browser(owner, digest, signed_in)
        if not verifies_address(owner, browser):
            raise LinkNeedsSession
        return await self._registration.verify_email(secret, browser, origin=origin, device=device, password=password)


def with_new_login(change: EmailChange) -> User:
    return replace(change.owner, login=change.login, email_verified=True)
