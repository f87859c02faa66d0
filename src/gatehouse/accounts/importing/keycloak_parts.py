"""What a Keycloak realm export contains beside the accounts, and an account beside what is imported."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from gatehouse.accounts.importing.dropped import MAX_NAME_LENGTH, DroppedParts

REALM_NAMES: Final = frozenset({"id", "realm", "keycloakVersion"})
REALM_KINDS: Final[Mapping[str, str]] = {"authenticatorConfig": "authenticator configurations"}
ITEM_NAMES: Final = ("clientId", "name", "alias", "username", "client", "clientScope", "id")
# Taken, or derived from the rest.
ACCOUNT_NAMES: Final = frozenset(
    {
        *("id", "username", "email", "emailVerified", "enabled", "firstName", "lastName", "federatedIdentities"),
        *("credentials", "totp", "self", "origin", "access", "disableableCredentialTypes", "userProfileMetadata"),
    }
)
ACCOUNT_KINDS: Final[Mapping[str, str]] = {
    "attributes": "attributes of accounts",
    "realmRoles": "realm roles of accounts",
    "clientRoles": "client roles of accounts",
    "groups": "groups of accounts",
    "requiredActions": "required actions of accounts",
    "clientConsents": "consents of accounts",
}
OTHER_FIELDS: Final = "other fields of accounts"
CREDENTIALS: Final = "credentials of accounts"
SETTINGS: Final = "realm settings"
TAKEN_CREDENTIALS: Final = ("password", "otp")
EMPTY: Final = ("", 0, None)


def count_realm(realm: Mapping[str, msgspec.Raw], dropped: DroppedParts) -> None:
    """Count what a realm has beside its accounts; its plain values are its settings."""
    settings: list[str] = []
    for field, raw in realm.items():
        value = decode_or_none(raw)
        if field in REALM_NAMES or is_empty(value):
            continue
        if field == "roles" and isinstance(value, dict):
            dropped.add("realm roles", item_names(value.get("realm")))
            dropped.add("client roles", grouped_names(value.get("client")))
        elif field == "groups":
            dropped.add(field, group_paths(value))
        elif is_list_of_objects(value):
            dropped.add(kind_of(field), item_names(value))
        elif isinstance(value, dict) and all(is_list_of_objects(inner) for inner in value.values()):
            dropped.add(kind_of(field), grouped_names(value))
        else:
            settings.append(field)
    dropped.add(SETTINGS, settings)


def count_account(raw: msgspec.Raw, dropped: DroppedParts, *, without: frozenset[str] = frozenset()) -> None:
    """Count what an account has beside what is imported; `without` are more fields that are."""
    account = decode_or_none(raw)
    if not isinstance(account, dict):
        return
    for field, value in account.items():
        if field in ACCOUNT_NAMES or field in without or is_empty(value):
            continue
        if field == "clientRoles":
            dropped.add(ACCOUNT_KINDS[field], grouped_names(value))
        elif field in ACCOUNT_KINDS:
            dropped.add(ACCOUNT_KINDS[field], item_names(value))
        else:
            dropped.add(OTHER_FIELDS, [field])
    kinds = [str(one.get("type", "")) for one in account.get("credentials") or () if isinstance(one, dict)]
    for taken in TAKEN_CREDENTIALS:
        if taken in kinds:
            kinds.remove(taken)
    dropped.add(CREDENTIALS, kinds)


def decode_or_none(raw: msgspec.Raw) -> Any:  # noqa: ANN401 - any JSON
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def is_empty(value: object) -> bool:
    return value in EMPTY if not isinstance(value, list | dict) else not value


def is_list_of_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def item_names(items: object) -> Iterator[str]:
    """Yield a name for each item; of an object the names of its members that have a value."""
    if isinstance(items, dict):
        yield from (str(name) for name, value in items.items() if not is_empty(value))
    for item in items if isinstance(items, list) else ():
        yield item_name(item)


def item_name(item: object) -> str:
    if isinstance(item, dict):
        return next((str(item[name]) for name in ITEM_NAMES if item.get(name)), "")
    return str(item)


def grouped_names(groups: object) -> Iterator[str]:
    """Yield the names of items that are grouped, by client or type."""
    for group, items in groups.items() if isinstance(groups, dict) else ():
        for name in item_names(items):
            yield f"{group}/{name}"


def group_paths(groups: object) -> Iterator[str]:
    waiting: list[tuple[str, object]] = [("", groups)]
    while waiting:
        parent, children = waiting.pop()
        for group in children if isinstance(children, list) else ():
            path = f"{parent}/{item_name(group)}"[:MAX_NAME_LENGTH]
            yield path
            if isinstance(group, dict):
                waiting.append((path, group.get("subGroups")))


def kind_of(field: str) -> str:
    return REALM_KINDS.get(field) or re.sub("[A-Z]", lambda letter: f" {letter[0].lower()}", field)
