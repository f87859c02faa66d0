"""A client's secrets: from what a file gives to what is kept, and back (R3)."""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET, Struct

from gatehouse.kernel.digests import same_secret, sha256
from gatehouse.kernel.errors import BadInput
from gatehouse.kernel.ids import new_secret
from gatehouse.keys.errors import Tampered, WrongMasterKey
from gatehouse.oauth.clients import kept_secret, sealed_for
from gatehouse.oauth.errors import BadClient
from gatehouse.oauth.model import SECRETS_MOST, Client, ClientSecret, Profile, SecretKind
from gatehouse.provision.document import Document
from gatehouse.provision.errors import Problems
from gatehouse.provision.sections.client_entry import FoundClient, WantedClient
from gatehouse.provision.sections.section import Terms, Tools, reveal, sealed

STRONG: Final = 32  # characters; a shorter secret needs a slow hash, or --allow-weak (R7)
LONGEST: Final = 1_024
KINDS: Final = {
    Profile.NATIVE: frozenset({SecretKind.SEALED}),
    Profile.OIDC: frozenset({SecretKind.SHA256, SecretKind.ARGON2}),
}


class Carried(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One secret inside the sealed text of an export; of a native client in the clear, else its digest."""

    slot: int
    kind: SecretKind
    secret: bytes
    created_at: int
    expires_at: int

    def __repr__(self) -> str:
        return f"Carried(slot={self.slot})"


async def settled(found: FoundClient, tools: Tools, terms: Terms, problems: Problems) -> WantedClient:
    """Compare the secret with the one that is kept: an equal one is no change, also when it is hashed."""
    try:
        return await wanted(found, tools, terms)
    except BadInput as error:
        problems.add(f"{found.place}.client_secret", str(error))
        return WantedClient(found=found, secrets=())


async def wanted(found: FoundClient, tools: Tools, terms: Terms) -> WantedClient:
    given = found.entry.client_secret
    if given is UNSET:
        return kept_or_generated(found, tools)
    if given is None:
        return WantedClient(found=found, secrets=())
    if found.after.public:
        raise BadClient("a public client has no secret")
    revealed = reveal(given, tools, terms, purpose=sealed_for(found.after.client_id))
    if revealed.was_sealed:
        return WantedClient(found=found, secrets=unpacked(found, revealed.text, tools))
    return WantedClient(found=found, secrets=await replaced(found, revealed.text, tools, terms))


def kept_or_generated(found: FoundClient, tools: Tools) -> WantedClient:
    before, after = found.before, found.after
    if after.public:
        return WantedClient(found=found, secrets=())
    if before is None or before.public:
        secret = new_secret()
        kept = kept_secret(after, secret, masters=tools.masters, now=tools.now)
        return WantedClient(found=found, secrets=(kept,), generated_secret=secret)
    if before.secrets and before.profile is not after.profile:
        raise BadClient(f"must be set again: profile {after.profile} stores it in another form")
    return WantedClient(found=found, secrets=before.secrets)


async def replaced(found: FoundClient, secret: str, tools: Tools, terms: Terms) -> tuple[ClientSecret, ...]:
    before = found.before
    if before is not None and await is_newest(secret, before, found.after.profile, tools):
        return before.secrets
    check_secret(secret, allow_weak=terms.allow_weak)
    if found.after.profile is Profile.OIDC and len(secret) < STRONG:
        hashed = await tools.passwords.hash(secret)
        return (ClientSecret(kind=SecretKind.ARGON2, secret=hashed.encode(), created_at=tools.now),)
    return (kept_secret(found.after, secret, masters=tools.masters, now=tools.now),)


async def is_newest(secret: str, client: Client, profile: Profile, tools: Tools) -> bool:
    """True for the secret in force; the one before it, still good for a while, is not what a file should name."""
    live = living(client.secrets, tools.now)
    if not live or live[-1].kind not in KINDS[profile]:
        return False
    newest = live[-1]
    if newest.kind is SecretKind.ARGON2:
        return await tools.passwords.matches(secret, newest.secret.decode())
    if newest.kind is SecretKind.SHA256:
        return same_secret(sha256(secret), newest.secret)
    kept = tools.masters.opened(newest.secret, purpose=sealed_for(client.client_id))
    return kept is not None and same_secret(secret, kept)


def check_secret(secret: str, *, allow_weak: bool) -> None:
    if len(secret) > LONGEST:
        raise BadClient(f"is longer than {LONGEST} characters")
    if len(secret) < STRONG and not allow_weak:
        raise BadClient(f"is shorter than {STRONG} characters; use --allow-weak to accept it")


def living(secrets: Sequence[ClientSecret], now: int) -> tuple[ClientSecret, ...]:
    return tuple(secret for secret in secrets if not 0 < secret.expires_at <= now)


def opened(secret: ClientSecret, client: Client, tools: Tools) -> bytes:
    if secret.kind is not SecretKind.SEALED:
        return secret.secret
    return tools.masters.open(secret.secret, purpose=sealed_for(client.client_id))


def carried(client: Client, tools: Tools) -> list[Carried]:
    """Every live secret of the client, ready to travel."""
    return [
        Carried(
            slot=secret.slot,
            kind=secret.kind,
            secret=opened(secret, client, tools),
            created_at=secret.created_at,
            expires_at=secret.expires_at,
        )
        for secret in living(client.secrets, tools.now)
    ]


def unpacked(found: FoundClient, text: str, tools: Tools) -> tuple[ClientSecret, ...]:
    """The secrets an export took along; those that are kept, when they are the same."""
    arriving = [one for one in msgspec.json.decode(text, type=list[Carried]) if not 0 < one.expires_at <= tools.now]
    if len(arriving) > SECRETS_MOST or any(one.kind not in KINDS[found.after.profile] for one in arriving):
        raise BadClient(f"was exported from a client with another profile than {found.after.profile}")
    before = found.before
    if before is not None and has_these(before, arriving, tools):
        return before.secrets
    return tuple(kept(one, found.after, tools) for one in arriving)


def has_these(client: Client, arriving: Sequence[Carried], tools: Tools) -> bool:
    """False also where one is damaged: what a file gives takes its place."""
    try:
        return carried(client, tools) == arriving
    except (Tampered, WrongMasterKey):
        return False


def kept(one: Carried, client: Client, tools: Tools) -> ClientSecret:
    native = one.kind is SecretKind.SEALED
    stored = tools.masters.seal(one.secret, purpose=sealed_for(client.client_id)) if native else one.secret
    return ClientSecret(
        slot=one.slot, kind=one.kind, secret=stored, created_at=one.created_at, expires_at=one.expires_at
    )


def secrets_document(client: Client, tools: Tools) -> Document:
    """The secrets as an export writes them, all in one text; null says that there is none."""
    if client.public:
        return {}
    arriving = carried(client, tools)
    if not arriving:
        return {"client_secret": None}
    text = msgspec.json.encode(arriving).decode()
    return {"client_secret": sealed(text, tools, purpose=sealed_for(client.client_id))}
