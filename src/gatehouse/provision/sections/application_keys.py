"""The keys of an application: from what a file gives to what is kept, and back (R6)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from msgspec import UNSET

from gatehouse.kernel.digests import same_secret, sha256
from gatehouse.kernel.errors import BadInput
from gatehouse.permissions.commands.access_keys import kept_access_key, new_access_key
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.limits import refuse_access_keys, refuse_custom_keys
from gatehouse.permissions.errors import LimitReached, Malformed
from gatehouse.permissions.keys.published import new_key
from gatehouse.permissions.model.access_key import AccessKey, access_key_purpose
from gatehouse.permissions.model.application import PRIVATE_KEY_SEALED_FOR, Application
from gatehouse.permissions.model.application_key import KeySource
from gatehouse.provision.document import Document
from gatehouse.provision.given import GivenSecret
from gatehouse.provision.model import AddPublicKey, PutAccessKey, World
from gatehouse.provision.sections.application_entry import SERVICE_KEYS, AccessKeyEntry, FoundApplication
from gatehouse.provision.sections.section import Terms, Tools, reveal, sealed

VALUE: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedKeys:
    acts: tuple[PutAccessKey | AddPublicKey, ...] = ()
    generated: Mapping[str, str] = field(default_factory=dict, repr=False)  # values by comment, told once

    @property
    def fields(self) -> list[str]:
        kinds = {"access_keys": PutAccessKey, "public_keys": AddPublicKey}
        return [name for name, kind in kinds.items() if any(isinstance(act, kind) for act in self.acts)]


def with_service_meta(
    application: Application, given: Mapping[str, Any] | None, tools: Tools, terms: Terms, place: str
) -> Application:
    """Service metadata are replaced whole; the keys among them stay when they are absent. Raises Malformed."""
    members = given or dict.fromkeys(SERVICE_KEYS)
    plain = {name: value for name, value in members.items() if name not in SERVICE_KEYS}
    meta = grammar.check_service_meta(plain, place)
    public, key = members.get("public_key", UNSET), application.service_key
    if public is None:
        key = None
    elif public is not UNSET:
        new = new_key(
            public,
            application_id=application.application_id,
            source=KeySource.SERVICE_META,
            now=tools.now,
            place=f"{place}.public_key",
        )
        key = key if key is not None and key.pem == new.pem else new
    private = private_key(application, members.get("private_key", UNSET), tools, terms, f"{place}.private_key")
    shown = {} if key is None else {"public_key": key.pem}
    return replace(application, service_meta={**meta, **shown}, service_key=key, sealed_private_key=private)


def private_key(application: Application, given: object, tools: Tools, terms: Terms, place: str) -> bytes | None:
    kept = application.sealed_private_key
    if given is UNSET or given is None:
        return kept if given is UNSET else None
    text = revealed(given, tools, terms, private_purpose(application.application_id), place)
    grammar.check_private_key(text, place)
    opened = None if kept is None else tools.masters.opened(kept, purpose=PRIVATE_KEY_SEALED_FOR)
    if opened is not None and same_secret(text.encode(), opened):
        return kept
    return tools.masters.seal(text.encode(), purpose=PRIVATE_KEY_SEALED_FOR)


def revealed(given: object, tools: Tools, terms: Terms, purpose: str, place: str) -> str:
    try:
        secret = given if isinstance(given, GivenSecret) else GivenSecret.of(given)
        return reveal(secret, tools, terms, purpose=purpose).text
    except (BadInput, ValueError) as error:
        raise Malformed(f"{place}: {error}") from None


def wanted_keys(found: FoundApplication, world: World, tools: Tools, terms: Terms) -> WantedKeys:
    """Keys the record does not list stay: none is ever taken away by leaving it out (R7). Raises Malformed."""
    wanted = WantedKeys()
    if found.entry.access_keys is not UNSET:
        wanted = access_keys(found, found.entry.access_keys, world, tools, terms)
    if found.entry.public_keys is not UNSET:
        added = public_keys(found, found.entry.public_keys, world, tools)
        wanted = replace(wanted, acts=(*wanted.acts, *added))
    return wanted


def access_keys(
    found: FoundApplication, given: Sequence[AccessKeyEntry], world: World, tools: Tools, terms: Terms
) -> WantedKeys:
    """A key is found by its value, else by its comment; one that is new and has no value gets one."""
    place, number = f"{found.place}.access_keys", found.application_id
    kept = world.access_keys.get(number, ())
    values = [access_key_value(one, number, tools, terms, f"{place}[{at}]") for at, one in enumerate(given)]
    acts: list[PutAccessKey] = []
    generated: dict[str, str] = {}
    for at, (entry, value, before) in enumerate(zip(given, values, match(given, values, kept), strict=True)):
        comment = grammar.check_comment(entry.comment, f"{place}[{at}].comment")
        if value is not None:
            refuse_known(value, number, world, f"{place}[{at}].hash")
        if before is not None and (value is None or same_secret(sha256(value), before.digest)):
            renamed = PutAccessKey(before, replace(before, comment=comment, modified_at=tools.now))
            acts += [renamed] if before.comment != comment else []
            continue
        new = new_access_key(number, comment, masters=tools.masters, now=tools.now)
        if value is None:
            generated[comment or f"key {at + 1}"] = new.value
        else:
            new = kept_access_key(value, number, comment, masters=tools.masters, now=tools.now)
        acts.append(PutAccessKey(before, new.key))
    with those_not_listed_stay(place):
        refuse_access_keys(len(kept) + sum(act.before is None for act in acts))
    return WantedKeys(acts=tuple(acts), generated=generated)


def match(
    given: Sequence[AccessKeyEntry], values: Sequence[str | None], kept: Sequence[AccessKey]
) -> list[AccessKey | None]:
    """Which stored key each entry is about; those of the same value first."""
    found: list[AccessKey | None] = [None] * len(given)
    left = list(kept)
    for by_value in (True, False):
        for at, (entry, value) in enumerate(zip(given, values, strict=True)):
            if found[at] is not None or (by_value and value is None):
                continue
            candidates = (one for one in left if fits(one, entry, value if by_value else None))
            found[at] = next(candidates, None)
            left = [one for one in left if one is not found[at]]
    return found


def fits(key: AccessKey, entry: AccessKeyEntry, value: str | None) -> bool:
    return key.comment == entry.comment if value is None else same_secret(sha256(value), key.digest)


def access_key_value(entry: AccessKeyEntry, number: int, tools: Tools, terms: Terms, place: str) -> str | None:
    if entry.hash is UNSET:
        return None
    value = revealed(entry.hash, tools, terms, key_purpose(number), f"{place}.hash")
    if not VALUE.fullmatch(value):
        raise Malformed(f"{place}.hash: an access key must be 64 lower-case hexadecimal digits")
    return value


def refuse_known(value: str, number: int, world: World, place: str) -> None:
    digest = sha256(value)
    for other, keys in world.access_keys.items():
        if other != number and any(same_secret(digest, key.digest) for key in keys):
            raise Malformed(f"{place}: is already the access key of application {other}")


def public_keys(found: FoundApplication, given: Sequence[str], world: World, tools: Tools) -> list[AddPublicKey]:
    place, number = f"{found.place}.public_keys", found.application_id
    known = {key.pem for key in world.public_keys.get(number, ())}
    count, acts = len(known), []
    for at, text in enumerate(given):
        key = new_key(text, application_id=number, source=KeySource.CUSTOM, now=tools.now, place=f"{place}[{at}]")
        if key.pem not in known:
            known.add(key.pem)
            acts.append(AddPublicKey(key))
    with those_not_listed_stay(place):
        refuse_custom_keys(count + len(acts))
    return acts


@contextmanager
def those_not_listed_stay(place: str) -> Iterator[None]:
    """Why a short list may be one too many."""
    try:
        yield
    except LimitReached as full:
        raise Malformed(f"{place}: {full} Keys that are not listed are kept.") from None


def service_meta_document(application: Application, tools: Tools, *, secrets: bool) -> Document:
    meta = dict(application.service_meta)
    kept = application.sealed_private_key
    if kept is not None and secrets:
        text = tools.masters.open(kept, purpose=PRIVATE_KEY_SEALED_FOR).decode()
        meta["private_key"] = sealed(text, tools, purpose=private_purpose(application.application_id))
    return meta


def keys_document(number: int, world: World, tools: Tools, *, secrets: bool) -> Document:
    return {
        "access_keys": [
            {"comment": key.comment, **(access_key_secret(key, tools) if secrets else {})}
            for key in world.access_keys.get(number, ())
        ],
        "public_keys": [key.pem for key in world.public_keys.get(number, ())],
    }


def access_key_secret(key: AccessKey, tools: Tools) -> Document:
    value = tools.masters.open(key.sealed, purpose=access_key_purpose(key.key_id)).decode()
    return {"hash": sealed(value, tools, purpose=key_purpose(key.application_id))}


def key_purpose(number: int) -> str:
    return f"access-key:{number}"


def private_purpose(number: int) -> str:
    return f"private-key:{number}"
