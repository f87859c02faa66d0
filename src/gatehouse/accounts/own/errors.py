"""What can go wrong with one's own account."""

from gatehouse.accounts.errors import BadAccount
from gatehouse.kernel.errors import Conflict, Refused


class SameAddress(BadAccount):
    """The new address is the old one."""


class LastAdministrator(Conflict):
    public = "This is the last administrator. Make someone else an administrator first."


class SessionEnded(Refused):
    """Ended from elsewhere while its owner was proving himself."""

    public = "This session has ended; sign in again."


class NothingToProve(Refused):
    """An account that has neither a password nor a factor has no proof to repeat."""

    public = "This account has no password and no second factor. Set a password by email first."
