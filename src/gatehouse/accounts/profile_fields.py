"""Fields of a profile: names, the user name and the time zone (R9)."""

import re
import secrets
import string
import unicodedata
import zoneinfo
from dataclasses import replace
from functools import cache
from typing import Final

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.model import User
from gatehouse.kernel.text import is_plain_line, nfc

MAX_NAME_LENGTH: Final = 128  # characters
MIN_USERNAME_LENGTH: Final = 3
MAX_USERNAME_LENGTH: Final = 32
MAX_ZONE_LENGTH: Final = 64
USERNAME_CHARACTERS: Final = re.compile(r"[a-z0-9._-]+", re.ASCII)
NOT_IN_USERNAMES: Final = re.compile(r"[^a-z0-9]+", re.ASCII)
SEPARATORS: Final = str.maketrans("", "", "._-")
ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}", re.ASCII)

# Names that people take for the operator, the service or a part of it; compared without separators.
RESERVED_USERNAMES: Final = frozenset(
    {
        *("abuse", "account", "accounts", "admin", "administration", "administrator", "admins", "anonymous", "api"),
        *("auth", "billing", "bot", "console", "contact", "daemon", "deleted", "dev", "developer", "everyone"),
        *("gamemaster", "gatehouse", "guest", "help", "helpdesk", "host", "hostmaster", "info", "legal", "login"),
        *("logout", "mail", "mailerdaemon", "me", "mod", "moderator", "moderators", "news", "none"),
        *("noreply", "null", "official", "oauth", "operator", "owner", "password", "postmaster", "privacy", "proxy"),
        *("register", "root", "sales", "security", "self", "server", "service", "settings", "setup", "signin"),
        *("signup", "staff", "status", "sudo", "superuser", "support", "sysadmin", "system", "team", "test"),
        *("undefined", "unknown", "user", "username", "webmaster", "www"),
    }
)

PROFILE_FIELDS: Final = ("name", "given_name", "family_name", "username", "zoneinfo")
DATED_FIELDS: Final = ("nick", "lang", "picture", *PROFILE_FIELDS)

FALLBACK_USERNAME: Final = "player"  # when the nick has no usable characters
SUFFIX_ALPHABET: Final = string.digits + string.ascii_lowercase
SUFFIX_LENGTHS: Final = (4, 4, 6, 8, 12)  # characters; more than four only after collisions


def check_name(text: str) -> str:
    """Return the name in its stored form; it may be empty. Raises BadAccount."""
    name = nfc(text.strip())
    if len(name) > MAX_NAME_LENGTH or not is_plain_line(name):
        raise BadAccount(f"a name must be at most {MAX_NAME_LENGTH} visible characters on one line").on_screen(
            "name_length", max_name_length=MAX_NAME_LENGTH
        )
    return name


def check_zoneinfo(text: str) -> str:
    """Return the name of a time zone, or nothing. Raises BadAccount."""
    zone = text.strip()
    known = time_zones()
    well_formed = len(zone) <= MAX_ZONE_LENGTH and ZONE.fullmatch(zone)
    if zone and (not well_formed or (known and zone not in known)):
        raise BadAccount("must be a time zone such as Europe/Berlin").on_screen("time_zone")
    return zone


@cache
def time_zones() -> frozenset[str]:
    """Return the names of the IANA database; empty on a system without it."""
    return frozenset(zoneinfo.available_timezones())


def username_key(text: str) -> str:
    """Return the spelling by which a user name is compared and stored."""
    name = text.strip(" ")
    return name.lower() if name.isascii() else name


def check_username(text: str) -> str:
    """Return the user name in its stored form. Raises BadAccount."""
    name = username_key(text)
    if not MIN_USERNAME_LENGTH <= len(name) <= MAX_USERNAME_LENGTH or not USERNAME_CHARACTERS.fullmatch(name):
        raise BadAccount(
            "a user name must be 3 to 32 of the letters a to z, digits, dots, hyphens and underscores"
        ).on_screen("username")
    if name.isdigit():
        raise BadAccount("a user name must not consist of digits only").on_screen("username_digits")
    if is_reserved(name):
        raise BadAccount("this user name is reserved").on_screen("username_reserved")
    return name


def date_profile(before: User, after: User, now: int) -> User:
    """Return the account after a change with the times of that change."""
    changed = [name for name in DATED_FIELDS if getattr(before, name) != getattr(after, name)]
    return replace(
        after,
        updated_at=now if changed else after.updated_at,
        username_at=now if "username" in changed else after.username_at,
    )


def is_reserved(name: str) -> bool:
    return name.translate(SEPARATORS) in RESERVED_USERNAMES | {""}


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
