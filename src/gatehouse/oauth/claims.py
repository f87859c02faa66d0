"""What a client learns about a person, by scope (interface §2.1, §4.2)."""

from collections.abc import Collection

from gatehouse.accounts.model import User
from gatehouse.oauth.vocabulary import EMAIL, PROFILE, TRUST


def email_for(user: User, scopes: Collection[str]) -> str | None:
    return user.login if EMAIL in scopes else None


def nickname_for(user: User, scopes: Collection[str]) -> str | None:
    return user.nick if PROFILE in scopes else None


def trust_claims(user: User, scopes: Collection[str]) -> dict[str, bool]:
    if TRUST not in scopes:
        return {}
    return {"email_verified": user.email_verified, "phone_verified": user.phone_verified}
