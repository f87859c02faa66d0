"""How a step ends, for the model and for the service alike."""

from typing import Final

IN: Final = "in"  # signed in, or done
FACTOR: Final = "second factor asked"  # which the person does not have
BANNED: Final = "banned"
REFUSED: Final = "refused"
STALE: Final = "stale"  # the account page asks for a fresh sign-in
NO_MAIL: Final = "no email"
