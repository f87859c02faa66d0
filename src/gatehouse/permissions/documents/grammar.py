"""The grammar of ids, names, titles and tags, and the limits of service_meta.config_schema.

config_schema is a JSON schema that is stored and returned, and never run here (checklist AP-09). So no pattern of it
is matched and no reference followed; only its size is limited. References to other documents are refused, to protect
applications that do run it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Annotated, Final

from msgspec import Meta

from gatehouse.kernel.addresses import Network, any_network_contains, is_public_address
from gatehouse.kernel.web_urls import MAX_URL_LENGTH, WebUrl, parse_web_url
from gatehouse.permissions.documents.fields import (
    printable,
    read_line,
    read_lines,
    read_list,
    read_members,
    read_number,
    refuse_repeated,
)
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.objects import MAX_OBJECT_KEY_LENGTH, OBJECT_KEY

MAX_CONFIG_SCHEMA_DEPTH: Final = 32
MAX_CONFIG_SCHEMA_VALUES: Final = 5_000
MAX_CONFIG_SCHEMA_CHARACTERS: Final = 65_536  # of all names and texts together
MAX_INTEGER: Final = 2**63 - 1
REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
NUL: Final = "\0"  # PostgreSQL cannot store NUL


def check_config_schema(document: object, place: str) -> Mapping[str, object]:
    schema = read_members(document, place)
    values: list[tuple[object, int]] = [(schema, 1)]
    characters = 0
    for value, depth in values:  # grows while it is walked: no recursion, however deep the document is
        if depth > MAX_CONFIG_SCHEMA_DEPTH:
            raise Malformed(f"{place}: nested more than {MAX_CONFIG_SCHEMA_DEPTH} levels deep")
        characters += _text_length(value, place)
        if characters > MAX_CONFIG_SCHEMA_CHARACTERS:
            raise Malformed(f"{place}: at most {MAX_CONFIG_SCHEMA_CHARACTERS} characters")
        values.extend((child, depth + 1) for child in _children(value, place))
        if len(values) > MAX_CONFIG_SCHEMA_VALUES:
            raise Malformed(f"{place}: at most {MAX_CONFIG_SCHEMA_VALUES} values")
    return schema


def _children(value: object, place: str) -> Iterable[object]:
    if isinstance(value, Mapping):
        members = read_members(value, place)
        _refuse_foreign_references(members, place)
        return members.values()
    return value if isinstance(value, list | tuple) else ()


def _refuse_foreign_references(members: Mapping[str, object], place: str) -> None:
    for name in REFERENCES:
        target = members.get(name)
        if isinstance(target, str) and not target.startswith("#"):
            raise Malformed(f"{place}: {name} refers outside the schema, to {printable(target)}")


def _text_length(value: object, place: str) -> int:
    """Return the length of a value's text; raises for values that JSON or a database cannot store."""
    match value:
        case str():
            return _storable_length(value, place)
        case Mapping():
            return sum(_storable_length(name, place) for name in read_members(value, place))
        case bool() | None | list() | tuple():
            return 0
        case int() if -MAX_INTEGER <= value <= MAX_INTEGER:
            return 0
        case float() if isfinite(value):
            return 0
        case _:
            raise Malformed(f"{place}: {printable(value)} is not allowed").on_screen(
                "value_refused", value=printable(value)
            )


def _storable_length(text: str, place: str) -> int:
    if NUL in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise Malformed(f"{place}: NUL and surrogates are not allowed").on_screen("surrogates")
    return len(text)


# How ids, names, titles, aliases and tags are written (interface §2.3 to §2.7, §8, R5). Pure.
#
# Patterns are ASCII and match the whole text: a `$` would accept a trailing newline (checklist PR-02).


MAX_ID: Final = 2**63 - 1
MAX_COUNT: Final = 2**31 - 1

MAX_NAME_LENGTH: Final = 128  # of an application
MAX_DESCRIPTION_LENGTH: Final = 1_024
MAX_COMMENT_LENGTH: Final = 256
MAX_ENV_LENGTH: Final = 64
MAX_PRIVATE_KEY_LENGTH: Final = 16_384
MAX_TITLE_LENGTH: Final = 32
MAX_ROLE_NAME_LENGTH: Final = 64
MAX_DOMAIN_LENGTH: Final = 253
MAX_ALIASES: Final = 10
MAX_TAGS: Final = 10
MAX_DOMAINS: Final = 100
MAX_SOURCES: Final = 20
MAX_GROUP_USERS: Final = 100  # listed in a group; interface §8

RESERVED_PROJECT_IDS: Final = frozenset({"internal", "game"})  # interface §2.4

APPLICATION_ID: Final = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
USER_ID: Final = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
GROUP_ID: Final = re.compile(r"[0-9a-f]{24}", re.ASCII)
PROJECT_ID: Final = re.compile(r"[a-z0-9_]{1,32}", re.ASCII)
TITLE: Final = re.compile(r"[A-Za-z0-9_]+( [A-Za-z0-9_]+)*", re.ASCII)
ROLE_NAME: Final = re.compile(r"[A-Za-z0-9_-]+( [A-Za-z0-9_-]+)*", re.ASCII)
SERVICE_NAME: Final = re.compile(r"[A-Za-z0-9 _.]{0,32}", re.ASCII)
TAG: Final = re.compile(r"[A-Za-z0-9:_]{1,64}", re.ASCII)
LABEL: Final = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
DOMAIN: Final = re.compile(rf"{LABEL}(\.{LABEL})*", re.ASCII)


def parse_application_id(value: object, place: str = "application_id") -> int:
    """Parse an integer, or its canonical digits: each id has one spelling (checklist AP-02)."""
    if isinstance(value, str) and APPLICATION_ID.fullmatch(value):
        number: object = int(value)
    else:
        number = value
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MAX_ID:
        raise Malformed(f"{place}: must be a positive integer, or one as text")
    return number


def check_project_id(value: object, place: str) -> str:
    """The id of a project, or an alias: they are written alike."""
    return _match_pattern(value, PROJECT_ID, place, "must be at most 32 lower case letters, digits and underscores")


def check_group_id(value: object, place: str) -> str:
    return _match_pattern(value, GROUP_ID, place, "must be 24 hexadecimal digits")


def check_user_id(value: object, place: str) -> str:
    return _match_pattern(value, USER_ID, place, "must be a user ID, as a string of digits")


def parse_user_ids(value: object, place: str, most: int = MAX_GROUP_USERS) -> tuple[str, ...]:
    """Distinct user ids in the given order (checklist GR-03)."""
    if not isinstance(value, list | tuple):
        raise Malformed(f"{place}: must be a list of user IDs")
    for index, user_id in enumerate(value):
        if not isinstance(user_id, str) or not USER_ID.fullmatch(user_id):
            check_user_id(user_id, f"{place}[{index}]")
    ids = tuple(dict.fromkeys(value))
    if len(ids) > most:
        raise Malformed(f"{place}: at most {most} users").on_screen("users_most", most=most)
    return ids


def project_id_of(title: str) -> str:
    """Interface §2.4; titles are ASCII, so lower() is exact."""
    return title.lower().replace(" ", "_")


def check_title(value: object, place: str) -> str:
    """The title of a project."""
    title = check_group_title(value, place)
    if project_id_of(title) in RESERVED_PROJECT_IDS:
        raise Malformed(f"{place}: the ID {project_id_of(title)} is reserved")
    return title


def check_group_title(value: object, place: str) -> str:
    words = "must be 1 to 32 letters, digits, underscores and single spaces between them"
    return _match_pattern(value, TITLE, place, words, MAX_TITLE_LENGTH)


def check_alias(value: object, place: str) -> str:
    alias = check_project_id(value, place)
    if alias in RESERVED_PROJECT_IDS:
        raise Malformed(f"{place}: {alias} is reserved")
    return alias


def check_aliases(value: object, place: str) -> tuple[str, ...]:
    aliases = read_list(value, place, MAX_ALIASES)
    checked = tuple(check_alias(alias, f"{place}[{index}]") for index, alias in enumerate(aliases))
    refuse_repeated(checked, place)
    return checked


def check_object_key(value: object, place: str) -> str:
    """The type and the id of an object: `map:7`."""
    words = "must be type:id, the id 1 to 128 of A-Z a-z 0-9 . _ ~ @ -"
    return _match_pattern(value, OBJECT_KEY, place, words, MAX_OBJECT_KEY_LENGTH)


def check_role_name(value: object, place: str) -> str:
    words = "must be 1 to 64 letters, digits, underscores, hyphens and single spaces between them"
    return _match_pattern(value, ROLE_NAME, place, words, MAX_ROLE_NAME_LENGTH)


def check_user_limit(value: object, place: str) -> int:
    """How many users a role may have; 0 is no limit (interface §2.7)."""
    return read_number(value, place, MAX_COUNT)


def check_tags(value: object, place: str) -> tuple[str, ...]:
    """Tags of a service, a project or a group (interface §2.3)."""
    tags = read_list(value, place, MAX_TAGS)
    words = "must be 1 to 64 of A-Z a-z 0-9 : _"
    checked = tuple(_match_pattern(tag, TAG, f"{place}[{index}]", words) for index, tag in enumerate(tags))
    refuse_repeated(checked, place)
    return checked


def check_name(value: object, place: str) -> str:
    """The name of an application or a service account."""
    name = read_line(value, place, MAX_NAME_LENGTH, shortest=1)
    if name != name.strip():
        raise Malformed(f"{place}: must not start or end with a space").on_screen("outer_space")
    return name


def check_description(value: object, place: str) -> str:
    return read_lines(value, place, MAX_DESCRIPTION_LENGTH)


def check_comment(value: object, place: str) -> str:
    return read_line(value, place, MAX_COMMENT_LENGTH)


def parse_domain(value: object, place: str) -> str:
    """A domain of login addresses, as these are compared: ASCII, lower case."""
    # Checked before lower(), which would turn the Kelvin sign into a plain k: another domain with the same name.
    text = value.lower() if isinstance(value, str) and value.isascii() else None
    return _match_pattern(text, DOMAIN, place, "must be a domain such as studio.example", MAX_DOMAIN_LENGTH)


def parse_allowed_domains(value: object, place: str) -> tuple[str, ...]:
    """Domains of login addresses, each once: allowed_domains of a project, restricted_domains of an application."""
    domains = read_list(value, place, MAX_DOMAINS)
    return tuple(dict.fromkeys(parse_domain(domain, f"{place}[{index}]") for index, domain in enumerate(domains)))


def check_service_meta(document: object, place: str) -> dict[str, object]:
    """Check exactly the members of interface §2.3; null counts as absent. The keys have their own rules."""
    members = read_members(document, place, SERVICE_MEMBERS)
    return {
        name: check(members[name], f"{place}.{name}")
        for name, check in SERVICE_MEMBERS.items()
        if members.get(name) is not None
    }


def check_private_key(value: object, place: str = "data.service_meta.private_key") -> str:
    """Check a private key, which is never used here: it must be text of limited length that can be sealed."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_PRIVATE_KEY_LENGTH or not value.isascii():
        raise Malformed(f"{place}: must be PEM text of at most {MAX_PRIVATE_KEY_LENGTH} characters").on_screen(
            "pem", max_private_key_length=MAX_PRIVATE_KEY_LENGTH
        )
    return value


def check_application_settings(document: object, place: str, allowed: tuple[Network, ...] = ()) -> dict[str, object]:
    """Interface §2.3; `allowed` are the addresses that outbound requests may reach although they are not public."""
    members = read_members(document, place, ("game", "gdpr", "restricted_domains"))
    checked: dict[str, object] = {}
    if members.get("gdpr") is not None:
        checked["gdpr"] = _gdpr(members["gdpr"], f"{place}.gdpr", allowed)
    if members.get("restricted_domains") is not None:
        domains = parse_allowed_domains(members["restricted_domains"], f"{place}.restricted_domains")
        checked["restricted_domains"] = list(domains)
    if members.get("game") is not None:
        checked["game"] = _game(members["game"], f"{place}.game")
    return checked


def _game(document: object, place: str) -> dict[str, object]:
    """Check the game settings: whether games may sign players in, and only with a code to pick (R4, S-14)."""
    members = read_members(document, place, ("enabled", "code_match"))
    for name, value in members.items():
        if not isinstance(value, bool):
            raise Malformed(f"{place}.{name}: must be true or false").on_screen("true_or_false")
    return dict(members)


def _gdpr(document: object, place: str, allowed: tuple[Network, ...]) -> dict[str, object]:
    members = read_members(document, place, ("char_sources", "data_sources"))
    checked: dict[str, object] = {}
    if members.get("char_sources") is not None:
        where = f"{place}.char_sources"
        urls = read_list(members["char_sources"], where, MAX_SOURCES)
        checked["char_sources"] = [
            check_outbound_url(url, f"{where}[{index}]", allowed) for index, url in enumerate(urls)
        ]
    if members.get("data_sources") is not None:
        where = f"{place}.data_sources"
        sources = read_list(members["data_sources"], where, MAX_SOURCES)
        checked["data_sources"] = [
            _data_source(source, f"{where}[{index}]", allowed) for index, source in enumerate(sources)
        ]
    return checked


def _data_source(document: object, place: str, allowed: tuple[Network, ...]) -> dict[str, str]:
    """Check the data source; both URLs are required, because data that can be exported must be removable too."""
    members = read_members(document, place, DATA_SOURCE)
    return {name: check_outbound_url(members.get(name), f"{place}.{name}", allowed) for name in DATA_SOURCE}


def check_outbound_url(value: object, place: str, allowed: tuple[Network, ...] = ()) -> str:
    """Check an outbound URL: https, and no internal address (R6, checklist AP-08).

    The address of a host name is checked again at each call. If the installation allows more, http and internal names
    are accepted here and checked at the call.
    """
    url = parse_web_url(value) if isinstance(value, str) else None
    if url is None or url.fragment:
        raise Malformed(
            f"{place}: must be an https URL of at most {MAX_URL_LENGTH} characters, without fragment"
        ).on_screen("https_url", max_url_length=MAX_URL_LENGTH)
    if not _is_public_url(url, allowed):
        raise Malformed(f"{place}: private and local addresses are not allowed").on_screen("private_address")
    if url.scheme != "https" and not allowed:
        raise Malformed(f"{place}: must be https").on_screen("https_only")
    return str(value)


def _is_public_url(url: WebUrl, allowed: tuple[Network, ...]) -> bool:
    if url.address is None:
        return bool(allowed) or not url.is_internal_name
    return is_public_address(url.address) or any_network_contains(allowed, url.address)


def _service_name(value: object, place: str) -> str:
    name = _match_pattern(value, SERVICE_NAME, place, "must be at most 32 of A-Z a-z 0-9 space _ .")
    if name.isspace():
        raise Malformed(f"{place}: must not consist of spaces only").on_screen("spaces_only")
    return name


def _service_tags(value: object, place: str) -> list[str]:
    return list(check_tags(value, place))


def _env(value: object, place: str) -> str:
    return read_line(value, place, MAX_ENV_LENGTH)


def _link(value: object, place: str) -> str:
    """Check a link that people follow; the service never calls it, so it may also lead to internal addresses."""
    if value != "" and (not isinstance(value, str) or parse_web_url(value) is None):
        raise Malformed(f"{place}: must be an http or https URL of at most {MAX_URL_LENGTH} characters").on_screen(
            "url", max_url_length=MAX_URL_LENGTH
        )
    return str(value)


def _match_pattern(value: object, pattern: re.Pattern[str], place: str, words: str, longest: int = 64) -> str:
    # The length is checked first: a pattern is slow on a megabyte.
    if not isinstance(value, str) or len(value) > longest or not pattern.fullmatch(value):
        raise Malformed(f"{place}: {words}")
    return value


DATA_SOURCE: Final = ("fetch", "remove")
SERVICE_MEMBERS: Final[Mapping[str, Callable[[object, str], object]]] = {
    "name": _service_name,
    "description": check_description,
    "doc": _link,
    "url": _link,
    "env": _env,
    "tags": _service_tags,
    "config_schema": check_config_schema,
}


# What the OpenAPI document says about ids and names: their spelling, beside the type that is read.
#
# Nothing is checked here: documents/grammar.py refuses invalid values by name. These annotations only document what
# it accepts.


ApplicationNumber = Annotated[int, Meta(extra_json_schema={"minimum": 1, "maximum": MAX_ID})]
ApplicationDigits = Annotated[str, Meta(extra_json_schema={"pattern": f"^{APPLICATION_ID.pattern}$"})]
ApplicationId = ApplicationNumber | ApplicationDigits
GroupId = Annotated[str, Meta(extra_json_schema={"pattern": f"^{GROUP_ID.pattern}$"})]
Title = Annotated[str, Meta(extra_json_schema={"pattern": f"^{TITLE.pattern}$", "maxLength": MAX_TITLE_LENGTH})]
