"""Changes of an account's fields, and user names made from a nick (R9)."""

import re
import secrets
import string
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from gatehouse.accounts.field_checks import MAX_USERNAME_LENGTH, MIN_USERNAME_LENGTH, SEPARATORS, is_reserved
from gatehouse.accounts.model import ACCOUNT_FIELDS, AccountField, AccountKind, User
from gatehouse.fields.model import DescribedField, Kind

AccountChanges = Mapping[str, Any]  # by the names of ACCOUNT_FIELDS, as given; the picture as a NewImage

DATED_FIELDS: Final = tuple(field.name for field in ACCOUNT_FIELDS if field.field.is_profile)
NOT_IN_USERNAMES: Final = re.compile(r"[^a-z0-9]+", re.ASCII)
FALLBACK_USERNAME: Final = "player"  # when the nick has no usable characters
SUFFIX_ALPHABET: Final = string.digits + string.ascii_lowercase
SUFFIX_LENGTHS: Final = (4, 4, 6, 8, 12)  # characters; more than four only after collisions


def apply_changes(user: User, changes: AccountChanges) -> User:
    """Return the account with the checked changes. Raises BadAccount.

    A service account has no address, and an account without one may stay so.
    """
    values = {
        field.name: checked_value(field, changes[field.name], field.value_of(user))
        for field in ACCOUNT_FIELDS
        if field.name in changes and not (field.name == "login" and user.kind is AccountKind.SERVICE)
    }
    after = replace(user, **values)
    return with_phone_state(
        user,
        replace(after, email_verified=after.email_verified and after.login is not None),
        is_vouched="phone_verified" in changes,
    )


def with_phone_state(before: User, after: User, *, is_vouched: bool) -> User:
    """Return the account after a change of its number: another one is unverified, and a factor no more.

    `is_vouched`: who changes it says whether it is verified.
    """
    if after.phone == before.phone:
        verified = after.phone_verified
    else:
        verified = is_vouched and after.phone_verified and bool(after.phone)
    is_same = verified and after.phone == before.phone
    return replace(
        after,
        phone_verified=verified,
        phone_code=after.phone_code and is_same,
        phone_closed=after.phone_closed and is_same,
    )


def checked_value(field: DescribedField[AccountField], value: Any, stored: Any) -> Any:  # noqa: ANN401 - the field's type
    if field.kind is Kind.IMAGE:
        return stored if value is UNSET else "" if value is None else value.image_id
    if value == (stored or ""):
        return stored
    if field.default is None and not value.strip():
        return None
    return value if field.field.check is None else field.field.check(value)


def date_profile(before: User, after: User, now: int) -> User:
    """Return the account after a change with the times of that change."""
    changed = [name for name in DATED_FIELDS if getattr(before, name) != getattr(after, name)]
    return replace(
        after,
        updated_at=now if changed else after.updated_at,
        username_at=now if "username" in changed else after.username_at,
    )


def username_candidates(nick: str) -> tuple[str, ...]:
    """Return user names made from a nick, the shortest first; each later one is less likely to be taken."""
    plain = unicodedata.normalize("NFKD", nick).encode("ascii", "ignore").decode().lower()
    base = NOT_IN_USERNAMES.sub("-", plain).strip("-")[:MAX_USERNAME_LENGTH].rstrip("-")
    usable = len(base) >= MIN_USERNAME_LENGTH and not base.isdigit() and not is_reserved(base)
    stem = base if len(base) >= MIN_USERNAME_LENGTH and not is_reserved(base) else FALLBACK_USERNAME
    suffixed = (
        f"{stem[: MAX_USERNAME_LENGTH - length - 1].rstrip('-')}-{random_suffix(length)}" for length in SUFFIX_LENGTHS
    )
    return ((base,) if usable else ()) + tuple(name for name in suffixed if not name.translate(SEPARATORS).isdigit())


def random_suffix(length: int) -> str:
    return "".join(secrets.choice(SUFFIX_ALPHABET) for _ in range(length))
