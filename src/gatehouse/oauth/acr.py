"""How a person signed in, as standard clients are told: `acr` and `amr` (R9, RFC 8176).

Both follow from the method and the second factor that the session and the grant store.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from gatehouse.accounts.model import SignInMethod, User
from gatehouse.accounts.second_factors.model import Factor
from gatehouse.oauth.model import Grant
from gatehouse.sign_in_flow.model import SignInProof

ONE_FACTOR: Final = "urn:gatehouse:1"
SECOND_FACTOR: Final = "urn:gatehouse:2"
PASSKEY: Final = "urn:gatehouse:phr"
ACR_VALUES: Final = (ONE_FACTOR, SECOND_FACTOR, PASSKEY)  # each one includes those before it

# A key that its owner unlocks. `hwk` or `swk` would say where the key is stored, which only attestation proves.
PASSKEY_AMR: Final = ("pop", "user")
AMR_BY_FACTOR: Final[Mapping[str, tuple[str, ...]]] = {
    Factor.TOTP: ("otp",),
    Factor.PASSKEY: PASSKEY_AMR,
    Factor.EMAIL: ("otp", "mca"),  # a code through another channel; RFC 8176 has no value for email
    Factor.PHONE: ("otp", "sms", "mca"),
    Factor.RECOVERY: ("otp",),
}


def acr_of(signed_in: SignInProof | Grant) -> str:
    """Return the value that was reached; a passkey cannot be phished, alone or after a password."""
    if signed_in.auth == SignInMethod.PASSKEY or signed_in.second_factor == Factor.PASSKEY:
        return PASSKEY
    return SECOND_FACTOR if signed_in.auth == SignInMethod.TWO_STEP else ONE_FACTOR


def amr_of(signed_in: SignInProof | Grant) -> tuple[str, ...]:
    """Return the methods; two factors are `mfa` alone where the first is no password or the second is not stored."""
    match signed_in.auth:
        case SignInMethod.LOGIN:
            return ("pwd",)
        case SignInMethod.TWO_STEP:
            second = AMR_BY_FACTOR.get(signed_in.second_factor)
            return ("mfa",) if second is None else ("pwd", *second, "mfa")
        case SignInMethod.PASSKEY:
            return (*PASSKEY_AMR, "mfa")  # a key, and a fingerprint, face or PIN
        case SignInMethod.EMAIL:
            return AMR_BY_FACTOR[Factor.EMAIL]
    return ()  # RFC 8176 has no value for other identity providers


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
