"""Errors of accounts."""

from typing import Final

from gatehouse.accounts.bans.model import UserBan
from gatehouse.kernel.errors import BadInput, Conflict, NotFound, Refused


class UserNotFound(NotFound):
    public = "user not found"


class LoginTaken(Conflict):
    public = "An account with this email already exists."


class UsernameTaken(Conflict):
    """Another account has the name or had it before (R9)."""

    public = "This user name is not available."


class UsernameChangedRecently(Conflict):
    """The name was chosen less than 30 days ago (R9)."""

    public = "A user name can be changed every 30 days."


class UserIdTaken(Conflict):
    public = "This user ID is in use or was used before."


class UserChanged(Conflict):
    public = "The account was changed in the meantime."


class BadAccount(BadInput):
    """A field of an account is invalid; the detail says which and why, for the person who entered it."""


class PasswordWeak(BadAccount):
    """The password is too easy to guess, also for someone who knows the person."""


class PasswordBreached(BadAccount):
    """The password is in the operator's list of breached passwords."""


class DomainRefused(BadAccount):
    """Only addresses of certain domains may register."""


class RegistrationClosed(Refused):
    public = "Registration is closed. Ask an administrator for an invitation."


class LinkDead(Refused):
    """The link was used, has expired, was replaced, or was made for a former address; all look alike."""

    public = "This link is invalid: it was already used or has expired."


class LinkNeedsSession(Refused):
    """The link proves a later address: only in the session that asked, or after a second factor (R10)."""

    public = "Open this link in the browser where you asked for it."


class EmailCodeWrong(Refused):
    """`user_id`: of the account that the code was sent for, as the request names it."""

    public = "This code is wrong."

    def __init__(self, detail: str = "", *, user_id: str = "") -> None:
        super().__init__(detail)
        self.user_id = user_id


class EmailSignInGone(Refused):
    """The request was used, has expired, is of another browser, or its account may not use it; all look alike.

    `user_id`: as above, of a request that ended with this wrong code.
    """

    public = "This code or link is invalid: it was already used, has expired, or was requested in another browser."

    def __init__(self, detail: str = "", *, user_id: str = "") -> None:
        super().__init__(detail)
        self.user_id = user_id


class SignInRefused(Refused):
    """Wrong password, unknown account and blocked account look alike (R1)."""

    public = "Wrong email or password."


class LoginDenied(Refused):
    """`ban`: set if a ban is the reason, which the person is told; any other reason is not."""

    public = "This account is not allowed to use the application."

    def __init__(self, detail: str = "", *, ban: UserBan | None = None) -> None:
        super().__init__(detail)
        self.ban = ban


class ShortTokenDead(Refused):
    public = "This link is invalid: it was already used, has expired, or belongs to another site."


class SetupClosed(Refused):
    public = "An administrator already exists; setup is closed."


class SetupLinkDead(Refused):
    public = "This setup link is invalid: it was already used or has expired."


class UserBlocked(Refused):
    public = "This account is blocked."


# Identities (docs/interface.md R10).


MAX_IDENTITIES: Final = 20  # of one account


class IdentityTaken(Conflict):
    """The identity belongs to another account."""

    public = "This sign-in method is connected to another account."


class TooManyIdentities(Conflict):
    public = f"An account can have at most {MAX_IDENTITIES} connected sign-in methods."


class IdentityNotFound(Conflict):
    public = "This sign-in method is not connected."


class LastSignInMethod(Conflict):
    """Removing it would leave the account without a password, a passkey and an identity."""

    public = "This is the only sign-in method of this account. Add another one first."


class NotSignedIn(Refused):
    """An identity was proved, but it opens no account; the kinds differ in what a person can do."""


class NoAccountForIdentity(NotSignedIn):
    """Its owner linked it to no account, and the provider may not create accounts."""

    public = "No account is connected to this sign-in method."


class ForeignDomainRefused(NotSignedIn):
    """The provider is for verified addresses of certain domains."""

    public = "Your email address is not allowed to sign in with this provider."


class AddressHasAccount(NotSignedIn):
    """An account with this verified address exists; it is not joined (R10)."""

    public = "An account with your email address exists. Sign in first, then connect this sign-in method."


class IdentityBlocked(NotSignedIn):
    """The account of the identity is blocked."""

    public = "You cannot sign in with this account."
