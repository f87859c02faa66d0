"""How a person signed in, as standard clients are told: `acr` and `amr` (R9, RFC 8176).

Both follow from the method that the session and the grant store. A password with a passkey counts as a second factor.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from gatehouse.accounts.model import SignInMethod, User

ONE_FACTOR: Final = "urn:gatehouse:1"
SECOND_FACTOR: Final = "urn:gatehouse:2"
PASSKEY: Final = "urn:gatehouse:phr"
ACR_VALUES: Final = (ONE_FACTOR, SECOND_FACTOR, PASSKEY)  # each one includes those before it

ACR_BY_METHOD: Final[Mapping[str, str]] = {SignInMethod.TWO_STEP: SECOND_FACTOR, SignInMethod.PASSKEY: PASSKEY}
# A passkey proves a key, the presence of a person, and their fingerprint, face or PIN: two factors.
AMR_BY_METHOD: Final[Mapping[str, tuple[str, ...]]] = {
    SignInMethod.LOGIN: ("pwd",),
    SignInMethod.TWO_STEP: ("pwd", "mfa"),
    SignInMethod.PASSKEY: ("pop", "user", "mfa"),
}


def acr_of(auth: str) -> str:
    return ACR_BY_METHOD.get(auth, ONE_FACTOR)


def amr_of(auth: str) -> tuple[str, ...]:
    return AMR_BY_METHOD.get(auth, ())


def best_acr(user: User) -> str:
    """Return the highest value that the person can reach with what is enabled for the account."""
    if user.passkeys:
        return PASSKEY
    return SECOND_FACTOR if user.has_second_factor else ONE_FACTOR


def includes(reached: str, wanted: str) -> bool:
    return ACR_VALUES.index(wanted) <= ACR_VALUES.index(reached)


def met_value(wanted: Sequence[str], reached: str) -> str:
    """Return the first of these values that was reached; "" for none."""
    return next((value for value in wanted if includes(reached, value)), "")
