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


class SignInRefused(Refused):
    """Wrong, unknown and blocked look alike (R1)."""

    public = "This e-mail and password do not match."


class SetupClosed(Refused):
    public = "An administrator exists already; setup is closed."


class SetupLinkDead(Refused):
    public = "This setup link is not valid: it was used, has expired, or never was one."


class UserBlocked(Refused):
    public = "This account is blocked."
