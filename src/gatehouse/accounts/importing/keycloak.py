"""Keycloak: `kc.sh export --users same_file` or `different_files`."""

import base64
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import BinaryIO, Final

import msgspec
from msgspec.structs import replace

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.field_checks import check_tags
from gatehouse.accounts.importing.dropped import DroppedParts
from gatehouse.accounts.importing.hashes import BadHash, decode_base64, encode_base64
from gatehouse.accounts.importing.keycloak_parts import ACCOUNT_KINDS, count_account, count_realm, decode_or_none
from gatehouse.accounts.importing.lines import json_problem
from gatehouse.accounts.importing.model import BadImportFile, FileRow, ForeignIdentity, ImportEntry
from gatehouse.accounts.importing.vendors import (
    BASE32,
    LOST_FACTOR,
    TOTP_ALGORITHM,
    TOTP_DIGITS,
    TOTP_PERIOD,
    decode_entries,
    full_name,
    split_document,
)


class KeycloakCredential(msgspec.Struct, rename="camel"):
    type: str = ""
    secret_data: str | None = None  # JSON
    credential_data: str | None = None  # JSON


class KeycloakLink(msgspec.Struct, rename="camel"):
    identity_provider: str = ""
    user_id: str = ""


class KeycloakUser(msgspec.Struct, rename="camel"):
    id: str | None = None
    username: str | None = None
    email: str | None = None
    email_verified: bool | None = None
    enabled: bool = True
    first_name: str | None = None
    last_name: str | None = None
    service_account_client_id: str | None = None
    realm_roles: list[str] | None = None
    client_roles: dict[str, list[str]] | None = None
    credentials: list[KeycloakCredential] = []
    federated_identities: list[KeycloakLink] = []


class KeycloakSecret(msgspec.Struct, rename="camel"):
    value: str = ""
    salt: str | None = None


class KeycloakParameters(msgspec.Struct, rename="camel"):
    algorithm: str = ""
    hash_iterations: int = 0
    additional_parameters: dict[str, list[str]] = {}
    sub_type: str = "totp"
    digits: int = TOTP_DIGITS
    period: int = TOTP_PERIOD
    secret_encoding: str | None = None


PBKDF2_NAMES: Final = {"pbkdf2": "sha1", "pbkdf2-sha256": "sha256", "pbkdf2-sha512": "sha512"}
DEFAULT_ROLES: Final = "default-roles-"  # begins the name of the role that each account of a realm has
KEYCLOAK_PASSKEYS: Final = frozenset({"webauthn", "webauthn-passwordless"})
ARGON2_VERSIONS: Final = {"1.0": 16, "1.3": 19}


ROLE_FIELDS: Final = frozenset({"realmRoles", "clientRoles"})
USERS: Final = "users"


def read_keycloak(file: BinaryIO, dropped: DroppedParts, *, roles_as_tags: bool) -> tuple[int, Iterator[FileRow]]:
    """Return the number of accounts and the accounts; what is not imported is counted in `dropped` meanwhile."""
    realm = split_document(file, dict[str, msgspec.Raw])
    try:
        users = msgspec.json.decode(realm.pop(USERS, msgspec.Raw(b"[]")), type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise BadImportFile(f"the file {json_problem(error)}") from error
    count_realm(realm, dropped)
    default_role = f"{DEFAULT_ROLES}{decode_or_none(realm.get('realm', msgspec.Raw()))}"
    return len(users), read_accounts(users, dropped, default_role if roles_as_tags else None)


def read_accounts(users: Sequence[msgspec.Raw], dropped: DroppedParts, default_role: str | None) -> Iterator[FileRow]:
    """Yield the accounts; with the role that all of them have, the other roles are tags."""
    taken = frozenset() if default_role is None else ROLE_FIELDS

    def convert(user: KeycloakUser) -> ImportEntry:
        entry = keycloak_entry(user)
        return entry if default_role is None else replace(entry, tags=role_tags(user, default_role, dropped))

    for row, user in zip(decode_entries(users, KeycloakUser, convert), users, strict=True):
        if not row.problem:
            count_account(user, dropped, without=taken)
        yield row


def role_tags(user: KeycloakUser, default_role: str, dropped: DroppedParts) -> frozenset[str]:
    """Return the roles of the account as tags: those of a client with its ID before them."""
    roles = {ACCOUNT_KINDS["realmRoles"]: list(user.realm_roles or ())}
    clients = (user.client_roles or {}).items()
    roles[ACCOUNT_KINDS["clientRoles"]] = [f"{client}:{role}" for client, names in clients for role in names]
    tags = {kind: [role for role in names if role != default_role and is_tag(role)] for kind, names in roles.items()}
    for kind, names in roles.items():
        dropped.add(kind, (name for name in names if name not in tags[kind]))
    return frozenset(chain(*tags.values()))


def is_tag(text: str) -> bool:
    try:
        check_tags(frozenset({text}))
    except BadAccount:
        return False
    return True


def keycloak_entry(user: KeycloakUser) -> ImportEntry:
    if user.service_account_client_id:
        raise BadAccount("is the service account of a client, not a person")
    username, email = user.username or "", user.email or ""
    if "@" in username:  # a realm whose user names are email addresses
        username, email = "", email or username
    credentials = {credential.type: credential for credential in user.credentials}
    if "otp" not in credentials and credentials.keys() & KEYCLOAK_PASSKEYS:
        raise BadAccount(LOST_FACTOR)
    return ImportEntry(
        login=email,
        nick=username,
        name=full_name(user.first_name or "", user.last_name or ""),
        given_name=user.first_name or "",
        family_name=user.last_name or "",
        username=username,
        password_hash=keycloak_hash(credentials["password"]) if "password" in credentials else "",
        totp_secret=keycloak_totp(credentials["otp"]) if "otp" in credentials else "",
        email_verified=user.email_verified,
        blocked=not user.enabled,
        source_id=user.id or "",
        identities=tuple(
            ForeignIdentity(identity.identity_provider, identity.user_id) for identity in user.federated_identities
        ),
    )


def credential_parts(credential: KeycloakCredential) -> tuple[KeycloakSecret, KeycloakParameters]:
    try:
        return (
            msgspec.json.decode(credential.secret_data or "{}", type=KeycloakSecret),
            msgspec.json.decode(credential.credential_data or "{}", type=KeycloakParameters),
        )
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise BadAccount(f"the credential {credential.type} {json_problem(error)}") from None


def keycloak_hash(credential: KeycloakCredential) -> str:
    secret, parameters = credential_parts(credential)
    salt, value = encode_base64(decode_base64(secret.salt or "")), encode_base64(decode_base64(secret.value))
    if parameters.algorithm in PBKDF2_NAMES:
        return f"$pbkdf2-{PBKDF2_NAMES[parameters.algorithm]}${parameters.hash_iterations}${salt}${value}"
    if parameters.algorithm == "argon2":
        options = {name: values[0] for name, values in parameters.additional_parameters.items() if values}
        version = ARGON2_VERSIONS.get(options.get("version", "1.3"), 0)
        costs = f"m={options.get('memory', '0')},t={parameters.hash_iterations},p={options.get('parallelism', '1')}"
        return f"$argon2{options.get('type', 'id')}$v={version}${costs}${salt}${value}"
    raise BadHash(f"the password is hashed with {parameters.algorithm[:40]!r}, which is not supported")


def keycloak_totp(credential: KeycloakCredential) -> str:
    """Return the secret in base32; Keycloak stores the text whose bytes are the secret, unless it says base32."""
    secret, parameters = credential_parts(credential)
    standard = (TOTP_DIGITS, TOTP_PERIOD, "totp", TOTP_ALGORITHM)
    settings = (parameters.digits, parameters.period, parameters.sub_type, parameters.algorithm or TOTP_ALGORITHM)
    if settings != standard:
        raise BadAccount("the second factor is not TOTP with 6 digits, 30 seconds and SHA-1")
    return secret.value if parameters.secret_encoding == BASE32 else base64.b32encode(secret.value.encode()).decode()
