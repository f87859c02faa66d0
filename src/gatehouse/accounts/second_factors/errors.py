"""What can go wrong with second factors."""

from gatehouse.accounts.second_factors.model import MAX_PASSKEYS
from gatehouse.kernel.errors import BadInput, Conflict, NotFound, Refused


class SecondFactorWrong(Refused):
    """Wrong, spent, too old, another user's: one error for all (checklist LG-11)."""

    public = "This code is wrong, too old, or was used already."


class PasskeyRefused(Refused):
    """One error for whatever is wrong with it; the detail is for the log."""

    public = "This passkey could not be used."


class FactorMissing(NotFound):
    public = "The account has no such second factor."


class FactorExists(Conflict):
    public = "The account has this second factor already."


class EnrollmentGone(Conflict):
    public = "This set-up has ended; start again."


class EmailNotVerified(Conflict):
    public = "The e-mail address has to be verified first."


class PasskeyTaken(Conflict):
    public = "This passkey is registered already."


class TooManyPasskeys(Conflict):
    public = f"An account has at most {MAX_PASSKEYS} passkeys."


class BadPasskeyName(BadInput):
    """The detail says what a name must be, for its writer."""
