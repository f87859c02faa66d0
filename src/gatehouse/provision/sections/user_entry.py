"""What a file may say about an account (R7)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from gatehouse.accounts.administration import check_nick
from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.labels import check_country, check_labels, check_lang, check_tags
from gatehouse.accounts.logins import check_login
from gatehouse.accounts.model import User
from gatehouse.provision.errors import Problems
from gatehouse.provision.given import FileSecret

# Generated ids have ten digits (R1); an import may bring shorter and longer ones.
USER_ID: Final = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)

Flag = bool | UnsetType | None
Words = frozenset[str] | UnsetType | None
Secret = FileSecret | UnsetType | None


class UserFileEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str | UnsetType = UNSET
    login: str | UnsetType = UNSET
    nick: str | UnsetType = UNSET
    password: Secret = UNSET
    totp_secret: Secret = UNSET
    lang: str | UnsetType | None = UNSET
    country: str | UnsetType | None = UNSET
    tags: Words = UNSET
    purchases: Words = UNSET
    email_verified: Flag = UNSET
    phone_verified: Flag = UNSET
    blocked: Flag = UNSET
    administrator: Flag = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundUser:
    """An entry and the account it is about."""

    place: str
    entry: UserFileEntry
    before: User | None  # None: to be made
    user_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedUser:
    """The same with its secrets in the form in which they are kept: all that the pure part of planning sees."""

    found: FoundUser
    password_hash: str | UnsetType | None = UNSET
    sealed_totp: bytes | UnsetType | None = UNSET


def check_user_id(text: str) -> str:
    if not USER_ID.fullmatch(text):
        raise BadAccount("must be 1 to 19 digits, not starting with 0")
    return text


FIELD_CHECKS: Final[Mapping[str, Callable[[Any], object]]] = {
    "user_id": check_user_id,
    "login": check_login,
    "nick": check_nick,
    "lang": check_lang,
    "country": check_country,
    "tags": check_tags,
    "purchases": check_labels,
}


def check_entry(entry: UserFileEntry, place: str, problems: Problems) -> UserFileEntry:
    """The entry with every value in the spelling that is kept."""
    given = {
        name: value for name in FIELD_CHECKS if (value := getattr(entry, name)) is not UNSET and value is not None
    }
    kept = {
        name: problems.check_value(f"{place}.{name}", FIELD_CHECKS[name], value, otherwise=value)
        for name, value in given.items()
    }
    return msgspec.structs.replace(entry, **kept)
