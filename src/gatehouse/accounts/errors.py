"""What can go wrong with accounts."""

from gatehouse.kernel.errors import BadInput, Conflict, NotFound, Refused


class UserNotFound(NotFound):
    public = "user not found"


class LoginTaken(Conflict):
    public = "An account with this email already exists."


class UserIdTaken(Conflict):
    public = "This user ID is in use or was used before."


class UserChanged(Conflict):
    public = "The account was changed in the meantime."


class BadAccount(BadInput):
    """A field of an account is not acceptable; the detail says which and why, for its writer."""


class PasswordWeak(BadAccount):
    """Too easy to guess, for someone who knows the person as well."""


class PasswordBreached(BadAccount):
    """In the operator's list of stolen passwords."""


class DomainRefused(BadAccount):
    """Only addresses of certain domains may register."""


class RegistrationClosed(Refused):
    public = "Registration is closed. Ask an administrator for an invitation."


class LinkDead(Refused):
    """Used, expired, replaced by a newer one, or made for an address the account no longer has: all alike."""

    public = "This link is invalid: it was already used or has expired."


class SignInRefused(Refused):
    """Wrong, unknown and blocked look alike (R1)."""

    public = "Wrong email or password."


class LoginDenied(Refused):
    public = "This account is not allowed to use the application."


class ShortTokenDead(Refused):
    public = "This link is invalid: it was already used, has expired, or belongs to another site."


class SetupClosed(Refused):
    public = "An administrator already exists; setup is closed."


class SetupLinkDead(Refused):
    public = "This setup link is invalid: it was already used or has expired."


class UserBlocked(Refused):
    public = "This account is blocked."
