"""The keys of an application, read and exported (R6)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from gatehouse.fields.secrets import HIDDEN, SecretRecord
from gatehouse.kernel.digests import constant_time_equal, first_equal, sha256
from gatehouse.kernel.errors import BadInput
from gatehouse.permissions.authentication.application_keys import new_application_key, new_service_key
from gatehouse.permissions.commands.access_keys import new_access_key, stored_access_key
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.limits import refuse_access_keys, refuse_custom_keys
from gatehouse.permissions.errors import LimitReached, Malformed
from gatehouse.permissions.model.access_key import AccessKey, access_key_purpose
from gatehouse.permissions.model.application import PRIVATE_KEY_PURPOSE, Application, KeySource
from gatehouse.provision.document import Document
from gatehouse.provision.file_secrets import FileSecret
from gatehouse.provision.model import AddPublicKey, PermissionState, PutAccessKey
from gatehouse.provision.sections.application_entry import SERVICE_KEYS, AccessKeyFileEntry, ApplicationEdit
from gatehouse.provision.sections.section import Context, Options, reveal_secret, sealed_document

ACCESS_KEY_VALUE: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


class WantedKeys(SecretRecord, frozen=True, kw_only=True):
    writes: tuple[PutAccessKey | AddPublicKey, ...] = ()
    generated: Annotated[Mapping[str, str], HIDDEN] = msgspec.field(
        default_factory=dict
    )  # values by comment, printed once

    @property
    def fields(self) -> list[str]:
        kinds = {"access_keys": PutAccessKey, "public_keys": AddPublicKey}
        return [name for name, kind in kinds.items() if any(isinstance(write, kind) for write in self.writes)]


def with_service_meta(
    application: Application, given: Mapping[str, Any] | None, context: Context, options: Options, place: str
) -> Application:
    """Replace service_meta as a whole, except for keys that are absent: these stay. Raises Malformed."""
    members = given or dict.fromkeys(SERVICE_KEYS)
    plain = {name: value for name, value in members.items() if name not in SERVICE_KEYS}
    meta = grammar.check_service_meta(plain, place)
    public, key = members.get("public_key", UNSET), application.service_key
    if public is None:
        key = None
    elif public is not UNSET:
        key = new_service_key(
            public,
            application_id=application.application_id,
            now=context.now,
            before=key,
            place=f"{place}.public_key",
        )
    private = wanted_private_key(
        application, members.get("private_key", UNSET), context, options, f"{place}.private_key"
    )
    shown = {} if key is None else {"public_key": key.pem}
    return replace(application, service_meta={**meta, **shown}, service_key=key, sealed_private_key=private)


def wanted_private_key(
    application: Application, given: object, context: Context, options: Options, place: str
) -> bytes | None:
    kept = application.sealed_private_key
    if given is UNSET or given is None:
        return kept if given is UNSET else None
    text = reveal_text(given, context, options, private_key_file_purpose(application.application_id), place)
    grammar.check_private_key(text, place)
    opened = None if kept is None else context.masters.try_open(kept, purpose=PRIVATE_KEY_PURPOSE)
    if opened is not None and constant_time_equal(text.encode(), opened):
        return kept
    return context.masters.seal(text.encode(), purpose=PRIVATE_KEY_PURPOSE)


def reveal_text(given: object, context: Context, options: Options, purpose: str, place: str) -> str:
    try:
        secret = given if isinstance(given, FileSecret) else FileSecret.parse(given)
        return reveal_secret(secret, context, options, purpose=purpose).text
    except (BadInput, ValueError) as error:
        raise Malformed(f"{place}: {error}") from None


def wanted_keys(
    found: ApplicationEdit, permissions: PermissionState, context: Context, options: Options
) -> WantedKeys:
    """Keys that the entry does not list stay (R7). Raises Malformed."""
    wanted = WantedKeys()
    if found.entry.access_keys is not UNSET:
        wanted = wanted_access_keys(found, found.entry.access_keys, permissions, context, options)
    if found.entry.public_keys is not UNSET:
        added = wanted_public_keys(found, found.entry.public_keys, permissions, context)
        wanted = replace(wanted, writes=(*wanted.writes, *added))
    return wanted


def wanted_access_keys(
    found: ApplicationEdit,
    given: Sequence[AccessKeyFileEntry],
    permissions: PermissionState,
    context: Context,
    options: Options,
) -> WantedKeys:
    """Find keys by value, else by comment; a new key without a value gets a generated one."""
    place, number = f"{found.place}.access_keys", found.after.application.application_id
    kept = permissions.access_keys.get(number, ())
    values = [access_key_value(one, number, context, options, f"{place}[{at}]") for at, one in enumerate(given)]
    writes: list[PutAccessKey] = []
    generated: dict[str, str] = {}
    for at, (entry, value, before) in enumerate(
        zip(given, values, match_access_keys(given, values, kept), strict=True)
    ):
        comment = grammar.check_comment(entry.comment, f"{place}[{at}].comment")
        if value is not None:
            refuse_key_of_other_application(value, number, permissions, f"{place}[{at}].hash")
        if before is not None and (value is None or constant_time_equal(sha256(value), before.digest)):
            renamed = PutAccessKey(before, replace(before, comment=comment, modified_at=context.now))
            writes += [renamed] if before.comment != comment else []
            continue
        new = new_access_key(number, comment, masters=context.masters, now=context.now)
        if value is None:
            generated[comment or f"key {at + 1}"] = new.value
        else:
            new = stored_access_key(value, number, comment, masters=context.masters, now=context.now)
        writes.append(PutAccessKey(before, new.key))
    with limit_as_malformed(place):
        refuse_access_keys(len(kept) + sum(write.before is None for write in writes))
    return WantedKeys(writes=tuple(writes), generated=generated)


def match_access_keys(
    given: Sequence[AccessKeyFileEntry], values: Sequence[str | None], kept: Sequence[AccessKey]
) -> list[AccessKey | None]:
    """The stored key of each entry; those of the same value first."""
    found: list[AccessKey | None] = [None] * len(given)
    left = list(kept)
    for by_value in (True, False):
        for at, (entry, value) in enumerate(zip(given, values, strict=True)):
            if found[at] is not None or (by_value and value is None):
                continue
            candidates = (one for one in left if key_matches(one, entry, value if by_value else None))
            found[at] = next(candidates, None)
            left = [one for one in left if one is not found[at]]
    return found


def key_matches(key: AccessKey, entry: AccessKeyFileEntry, value: str | None) -> bool:
    return key.comment == entry.comment if value is None else constant_time_equal(sha256(value), key.digest)


def access_key_value(
    entry: AccessKeyFileEntry, number: int, context: Context, options: Options, place: str
) -> str | None:
    if entry.hash is UNSET:
        return None
    value = reveal_text(entry.hash, context, options, access_key_file_purpose(number), f"{place}.hash")
    if not ACCESS_KEY_VALUE.fullmatch(value):
        raise Malformed(f"{place}.hash: an access key must be 64 lower-case hexadecimal digits")
    return value


def refuse_key_of_other_application(value: str, number: int, permissions: PermissionState, place: str) -> None:
    digest = sha256(value)
    for other, keys in permissions.access_keys.items():
        if other != number and first_equal((digest, key.digest) for key in keys) is not None:
            raise Malformed(f"{place}: is already the access key of application {other}")


def wanted_public_keys(
    found: ApplicationEdit, given: Sequence[str], permissions: PermissionState, context: Context
) -> list[AddPublicKey]:
    place, number = f"{found.place}.public_keys", found.after.application.application_id
    known = {key.pem for key in permissions.public_keys.get(number, ())}
    count, writes = len(known), []
    for at, text in enumerate(given):
        key = new_application_key(
            text, application_id=number, source=KeySource.CUSTOM, now=context.now, place=f"{place}[{at}]"
        )
        if key.pem not in known:
            known.add(key.pem)
            writes.append(AddPublicKey(key))
    with limit_as_malformed(place):
        refuse_custom_keys(count + len(writes))
    return writes


@contextmanager
def limit_as_malformed(place: str) -> Iterator[None]:
    """Say why a short list can exceed the limit."""
    try:
        yield
    except LimitReached as full:
        raise Malformed(f"{place}: {full} Keys that are not listed are kept.") from None


def service_meta_document(application: Application, context: Context) -> Document:
    meta = dict(application.service_meta)
    kept = application.sealed_private_key
    if kept is not None and context.secrets:
        text = context.masters.open(kept, purpose=PRIVATE_KEY_PURPOSE).decode()
        meta["private_key"] = sealed_document(
            text, context, purpose=private_key_file_purpose(application.application_id)
        )
    return meta


def keys_document(number: int, permissions: PermissionState, context: Context) -> Document:
    return {
        "access_keys": [
            {"comment": key.comment, **(access_key_secret(key, context) if context.secrets else {})}
            for key in permissions.access_keys.get(number, ())
        ],
        "public_keys": [key.pem for key in permissions.public_keys.get(number, ())],
    }


def access_key_secret(key: AccessKey, context: Context) -> Document:
    value = context.masters.open(key.sealed, purpose=access_key_purpose(key.key_id)).decode()
    return {"hash": sealed_document(value, context, purpose=access_key_file_purpose(key.application_id))}


def access_key_file_purpose(number: int) -> str:
    return f"access-key:{number}"


def private_key_file_purpose(number: int) -> str:
    return f"private-key:{number}"
