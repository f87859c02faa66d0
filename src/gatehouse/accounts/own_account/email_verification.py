"""A link that verifies an address, either the current one of an account or its new one."""

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.address_proofs.model import ENDS_NOTHING, EndedMethods, proving_browser, verifies_address
from gatehouse.accounts.email_links import EmailLinks
from gatehouse.accounts.errors import EmailSignInGone, LinkDead, LinkNeedsSession
from gatehouse.accounts.model import FlowReference, User
from gatehouse.accounts.own_account.email_change import EmailChanges
from gatehouse.accounts.own_account.model import EmailChange
from gatehouse.accounts.pending_registrations import NO_FLOW, PendingRegistrations
from gatehouse.accounts.registration import SelfRegistration
from gatehouse.accounts.session_model import UserSession
from gatehouse.accounts.store import AccountStore
from gatehouse.audit.model import AuditOrigin


class AddressProof(Struct, frozen=True, kw_only=True):
    """What a link would prove in this browser."""

    owner: User  # with the address that is proved
    ending: EndedMethods = ENDS_NOTHING
    needs_session: bool = False  # it works only in the session that asked, or after a second factor
    registered_here: bool = False  # the browser chose the password at the registration, and keeps it
    registered_elsewhere: bool = False  # another browser did: only a new password finishes it here
    flow: FlowReference = NO_FLOW  # in which the person registered
    code: str = ""  # to type into the browser that registered, if that still waits


class VerifiedAddress(Struct, frozen=True, kw_only=True):
    """What a proof has done."""

    owner: User  # as it is now
    signs_in: bool = False  # the browser chose the password of the account, now or when it registered
    flow: FlowReference = NO_FLOW
    registered_here: bool = False


class EmailVerification:
    def __init__(
        self,
        *,
        registration: SelfRegistration,
        email_changes: EmailChanges,
        links: EmailLinks,
        pending: PendingRegistrations,
        accounts: AccountStore,
    ) -> None:
        self._pending = pending
        self._accounts = accounts
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
        pending = await self._pending.find_of(owner)
        here = owner.password_browser == digest.hex()
        elsewhere = bool(owner.password_browser) and not here and browser.session is None and not owner.email_verified
        return AddressProof(
            owner=owner,
            ending=await self._links.find_ending(owner, replace(browser, sets_password=elsewhere)),
            needs_session=not verifies_address(owner, browser),
            registered_here=here and not owner.email_verified,
            registered_elsewhere=elsewhere,
            flow=NO_FLOW if pending is None else pending.flow,
            code=self._pending.code_of(secret) if elsewhere and pending is not None else "",
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
    ) -> VerifiedAddress:
        """Use the link. Raises LinkDead, LinkNeedsSession, and BadAccount for a bad password.

        A registration of another browser needs a new password here: the earlier one ends (R10).
        """
        proof = await self.find_proof(secret, digest, signed_in)
        if proof.needs_session:
            raise LinkNeedsSession
        try:
            owner = await self._registration.find_unverified(secret)
        except LinkDead:
            changed = await self._email_changes.confirm_change(
                secret, digest, signed_in, origin=origin, device=device
            )
            return VerifiedAddress(owner=with_new_login(changed))
        await self._registration.verify_email(
            secret,
            proving_browser(owner, digest, signed_in),
            origin=origin,
            device=device,
            password=password,
            needs_password=proof.registered_elsewhere,
        )
        return await self._verified_address(proof, digest, sets_password=bool(password))

    async def confirm_by_code(
        self,
        code: str,
        digest: bytes,
        signed_in: UserSession | None,
        *,
        origin: AuditOrigin,
        device: str,
        confirmed: bool,
    ) -> VerifiedAddress | EndedMethods:
        """Finish the registration of this browser with the code that its link showed in another one.

        Returns what would end instead, if there is something and the person has not confirmed it. Raises
        EmailCodeWrong and EmailSignInGone.
        """
        link = await self._pending.check_code(code, browser=digest)
        pending = await self._pending.find(digest)
        if pending is None:
            raise EmailSignInGone
        owner = await self._accounts.user(pending.user_id)
        browser = proving_browser(owner, digest, signed_in)
        ending = await self._links.find_ending(owner, browser)
        if ending.names and not confirmed:
            return ending
        try:
            await self._registration.use_link(link, owner, browser, origin=origin, device=device)
        except LinkDead as used:
            raise EmailSignInGone from used
        proof = AddressProof(owner=owner, registered_here=True, flow=pending.flow)
        return await self._verified_address(proof, digest, sets_password=False)

    async def _verified_address(self, proof: AddressProof, digest: bytes, *, sets_password: bool) -> VerifiedAddress:
        owner = await self._accounts.user(proof.owner.user_id)
        keeps_own = owner.password_hash is not None and owner.password_browser == digest.hex()
        return VerifiedAddress(
            owner=owner,
            signs_in=sets_password or (proof.registered_here and keeps_own),
            flow=proof.flow,
            registered_here=proof.registered_here,
        )


def with_new_login(change: EmailChange) -> User:
    return replace(change.owner, login=change.login, email_verified=True)
