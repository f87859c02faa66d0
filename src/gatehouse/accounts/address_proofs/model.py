"""What the first proof of an address ends: everything that the proving browser did not prove itself (R10).

A stranger may have registered the address, here or in the system that the account was imported from, and may know its
password or hold its identities and factors.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from gatehouse.accounts.model import Identity, SessionStrength, User
from gatehouse.accounts.second_factors.model import Factor, Passkey
from gatehouse.accounts.session_model import PASSWORD_PROOF, Session, UserSession, identity_proof, passkey_proof
from gatehouse.audit.model import AuditRecord
from gatehouse.mail.model import OutboxMail


class ProvingBrowser(Struct, frozen=True, kw_only=True):
    """The browser that uses a mailed link or code."""

    digest: str = ""  # of a secret that only this browser has
    session: Session | None = None  # its own live session of the account, with full strength
    proved: frozenset[str] = frozenset()  # what it proves in this step, as in `Session.proved`
    sets_password: bool = False  # in this step

    @property
    def all_proved(self) -> frozenset[str]:
        return self.proved | frozenset(self.session.proved if self.session else ())


def proving_browser(user: User, digest: bytes, signed_in: UserSession | None) -> ProvingBrowser:
    """Return the browser with its session, if that is a full one of the account."""
    session = signed_in.session if signed_in is not None and signed_in.user.user_id == user.user_id else None
    if session is not None and session.strength is not SessionStrength.FULL:
        session = None
    return ProvingBrowser(digest=digest.hex(), session=session)


class HeldMethods(Struct, frozen=True, kw_only=True):
    """What is stored beside an account of how it can be entered."""

    identities: Sequence[Identity]
    passkeys: Sequence[Passkey]
    recovery_left: int  # unused recovery codes
    sessions: Sequence[Session]
    applications: int  # sign-ins to applications, and consents


class EndedMethods(Struct, frozen=True, kw_only=True):
    password: bool = False
    identities: tuple[Identity, ...] = ()
    totp: bool = False
    passkeys: tuple[Passkey, ...] = ()
    email_code: bool = False
    recovery: bool = False
    phone: bool = False
    sessions: int = 0
    applications: bool = False  # sign-ins to applications and the consents for them, also of this browser

    @property
    def names(self) -> tuple[str, ...]:
        """What ended, as pages, emails and the audit log name it."""
        ended = {
            "password": self.password,
            "identity": bool(self.identities),
            Factor.TOTP.value: self.totp,
            Factor.PASSKEY.value: bool(self.passkeys),
            Factor.EMAIL.value: self.email_code,
            Factor.RECOVERY.value: self.recovery,
            "phone": self.phone,
            "session": self.sessions > 0,
            "application": self.applications,
        }
        return tuple(name for name, ends in ended.items() if ends)


ENDS_NOTHING = EndedMethods()
ProofNotices = Callable[[EndedMethods], tuple[Sequence[AuditRecord], Sequence[OutboxMail]]]


def methods_that_end(user: User, methods: HeldMethods, browser: ProvingBrowser) -> EndedMethods:
    """Return what ends when this browser proves the account's address by email; nothing but at the first proof."""
    if user.may_add_factors:
        return ENDS_NOTHING
    proved = browser.all_proved
    is_own_password = bool(browser.digest) and user.password_browser == browser.digest
    totp = user.sealed_totp is not None and Factor.TOTP not in proved
    passkeys = tuple(passkey for passkey in methods.passkeys if passkey_proof(passkey.passkey_id) not in proved)
    email_code = user.email_code and Factor.EMAIL not in proved
    keeps_factor = (
        (user.sealed_totp is not None and not totp)
        or len(passkeys) < len(methods.passkeys)
        or (user.email_code and not email_code)
    )
    own = browser.session.session_id if browser.session else ""
    return EndedMethods(
        password=user.password_hash is not None
        and not (is_own_password or browser.sets_password or PASSWORD_PROOF in proved),
        identities=tuple(
            identity
            for identity in methods.identities
            if identity_proof(identity.issuer, identity.subject) not in proved
        ),
        totp=totp,
        passkeys=passkeys,
        email_code=email_code,
        recovery=methods.recovery_left > 0 and not keeps_factor,
        phone=user.phone_verified or bool(user.phone),
        sessions=sum(1 for session in methods.sessions if session.session_id != own),
        applications=methods.applications > 0,
    )


def verifies_address(user: User, browser: ProvingBrowser) -> bool:
    """Return whether a mailed proof counts; of an address that was set later, only after the second factor (R10)."""
    if not user.needs_factor_for_address:
        return True
    return browser.session is not None and browser.session.has_second_factor
