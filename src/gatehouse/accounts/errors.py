"""What can go wrong with accounts."""

from gatehouse.kernel.errors import BadInput, Conflict, NotFound, Refused


class UserNotFound(NotFound):
    public = "user not found"


class LoginTaken(Conflict):
    public = "An account with this e-mail address exists already."


class UserIdTaken(Conflict):
    public = "This user id is, or once was, in use."


class UserChanged(Conflict):
    public = "The account was changed meanwhile."


class BadAccount(BadInput):
    """A field of an account is not acceptable; the detail says which and why, for its writer."""


class PasswordWeak(BadAccount):
    """Too easy to guess, for someone who knows the person as well."""


class PasswordBreached(BadAccount):
    """In the operator's list of stolen passwords."""


class DomainRefused(BadAccount):
    """Only addresses of certain domains may register."""


class RegistrationClosed(Refused):
    public = "Nobody can register here; ask an administrator for an invitation."


class LinkDead(Refused):
    """Used, expired, replaced by a newer one, or made for an address the account no longer has: all alike."""

    public = "This link is not valid: it was used, has expired, or never was one."


class SignInRefused(Refused):
    """Wrong, unknown and blocked look alike (R1)."""

    public = "This e-mail and password do not match."


class LoginDenied(Refused):
    public = "The application does not let this account in."


class ShortTokenDead(Refused):
    public = "This link is not valid: it was used, has expired, or belongs to another place."


class SetupClosed(Refused):
    public = "An administrator exists already; setup is closed."


class SetupLinkDead(Refused):
    public = "This setup link is not valid: it was used, has expired, or never was one."


class UserBlocked(Refused):
    public = "This account is blocked."
