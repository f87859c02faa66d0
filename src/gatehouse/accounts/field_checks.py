"""Check the fields of an account. Each function returns the stored form, or raises BadAccount."""

import re
import zoneinfo
from functools import cache
from typing import Final

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.system_tags import SYSTEM_TAGS, is_service_tag
from gatehouse.kernel.text import is_plain_line, nfc
from gatehouse.tokens.claim_sizes import MAX_TAG_BYTES, json_length

MAX_NICK_LENGTH: Final = 64
MAX_TAG_LENGTH: Final = 64
MAX_TAGS: Final = 100
MAX_NAME_LENGTH: Final = 128  # characters
MIN_USERNAME_LENGTH: Final = 3
MAX_USERNAME_LENGTH: Final = 32
MAX_ZONE_LENGTH: Final = 64
USERNAME_CHARACTERS: Final = re.compile(r"[a-z0-9._-]+", re.ASCII)
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

MAX_CUSTOM_TAG_BYTES: Final = MAX_TAG_BYTES - 128  # the rest is for system tags
LANGUAGE_TAG: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}", re.ASCII)
COUNTRY_CODE: Final = re.compile(r"([A-Z]{2})?", re.ASCII)
# Generated ids have ten digits (R1); those of files may be shorter or longer.
USER_ID: Final = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)


def check_user_id(text: str) -> str:
    if not USER_ID.fullmatch(text):
        raise BadAccount("must be 1 to 19 digits, not starting with 0").on_screen("user_id_digits")
    return text


def check_nick(text: str) -> str:
    nick = nfc(text.strip())
    if not nick or len(nick) > MAX_NICK_LENGTH or not is_plain_line(nick):
        raise BadAccount(f"the nick must be 1 to {MAX_NICK_LENGTH} visible characters on one line").on_screen(
            "nick", max_nick_length=MAX_NICK_LENGTH
        )
    return nick


def check_lang(text: str) -> str:
    if not LANGUAGE_TAG.fullmatch(text):
        raise BadAccount("must be a language tag such as en or pt-BR").on_screen("language_tag")
    return text


def check_country(text: str) -> str:
    if not COUNTRY_CODE.fullmatch(text):
        raise BadAccount("must be two capital letters such as DE").on_screen("country")
    return text


def check_tags(tags: frozenset[str]) -> frozenset[str]:
    own = {tag for tag in tags if tag in SYSTEM_TAGS or is_service_tag(tag)}
    if own:
        raise BadAccount(f"{', '.join(sorted(own))}: managed automatically, cannot be set").on_screen(
            "tags_managed", names=", ".join(sorted(own))
        )
    if any("," in tag for tag in tags):
        raise BadAccount("a tag cannot contain a comma").on_screen(
            "tag_comma"
        )  # tags are sent joined by commas (R2, claim tgs)
    if json_length(",".join(check_labels(tags))) > MAX_CUSTOM_TAG_BYTES:
        raise BadAccount(f"all tags together are limited to {MAX_CUSTOM_TAG_BYTES} bytes").on_screen(
            "tag_bytes", max_custom_tag_bytes=MAX_CUSTOM_TAG_BYTES
        )
    return tags


def check_labels(words: frozenset[str]) -> frozenset[str]:
    if len(words) > MAX_TAGS:
        raise BadAccount(f"at most {MAX_TAGS} entries").on_screen("entries_tags", max_tags=MAX_TAGS)
    for word in words:
        if not 0 < len(word) <= MAX_TAG_LENGTH or word != word.strip() or not is_plain_line(word):
            raise BadAccount(f"each entry must be 1 to {MAX_TAG_LENGTH} visible characters on one line").on_screen(
                "tag_length", max_tag_length=MAX_TAG_LENGTH
            )
    return words


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


def is_reserved(name: str) -> bool:
    return name.translate(SEPARATORS) in RESERVED_USERNAMES | {""}
