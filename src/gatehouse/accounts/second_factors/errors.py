"""What can go wrong with second factors."""

from gatehouse.accounts.second_factors.model import MAX_PASSKEYS
from gatehouse.kernel.errors import BadInput, Conflict, NotFound, Refused


class SecondFactorWrong(Refused):
    """Wrong, spent, too old, another user's: one error for all (checklist LG-11)."""

    public = "This code is wrong, expired or already used."


class PasskeyRefused(Refused):
    """One error for whatever is wrong with it; the detail is for the log."""

    public = "This passkey could not be verified."


class FactorMissing(NotFound):
    public = "The account does not have this second factor."


class FactorExists(Conflict):
    public = "The account already has this second factor."


class EnrollmentGone(Conflict):
    public = "This setup has expired. Start again."


class EmailNotVerified(Conflict):
    public = "Verify the email address first."


class PasskeyTaken(Conflict):
    public = "This passkey is already registered."


class TooManyPasskeys(Conflict):
    public = f"An account can have at most {MAX_PASSKEYS} passkeys."


class BadPasskeyName(BadInput):
    """The detail says what a name must be, for its writer."""
