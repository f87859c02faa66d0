"""Clients: made, checked, and their secrets rotated."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gatehouse.audit.events import Event
from gatehouse.audit.model import Origin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_secret
from gatehouse.kernel.text import is_plain_line
from gatehouse.keys.sealing import MasterKeys
from gatehouse.oauth.errors import BadClient
from gatehouse.oauth.model import SCOPES, Client, ClientSecret, Profile, SecretKind
from gatehouse.oauth.redirects import is_registrable_host, is_registrable_uri
from gatehouse.oauth.store import ClientStore

CLIENT_ID: Final = re.compile(r"[A-Za-z0-9._~-]{1,64}", re.ASCII)
NAME_LONGEST: Final = 64
OLD_SECRET_LIVES: Final = 7 * 86_400  # seconds the former secret is still accepted after a rotation


class Clients:
    def __init__(self, *, store: ClientStore, master_keys: MasterKeys, recorder: Recorder, clock: Clock) -> None:
        self._store = store
        self._master_keys = master_keys
        self._recorder = recorder
        self._clock = clock

    async def create(self, client: Client, origin: Origin) -> str | None:
        """Keep a new client; returns its secret, which is never shown again, or None for a public client."""
        check_client(client)
        secret = None if client.public else new_secret()
        kept = () if secret is None else (self.kept_secret(client, secret),)
        record = self._recorder.record(
            Event.CLIENT_CREATED, origin, subject=client.client_id, details={"profile": client.profile.value}
        )
        await self._store.create(replace(client, secrets=kept), record)
        return secret

    async def rotate_secret(self, client_id: str, origin: Origin) -> str:
        """Give the client a new secret; the old one stays good for a while, so that nobody is cut off."""
        client = await self._store.client(client_id)
        if client.public:
            raise BadClient("a public client has no secret")
        secret = new_secret()
        record = self._recorder.record(Event.CLIENT_SECRET_ROTATED, origin, subject=client_id)
        await self._store.rotate_secret(
            client_id,
            self.kept_secret(client, secret),
            record,
            old_ends_at=self._clock.now() + OLD_SECRET_LIVES,
        )
        return secret

    async def list(self) -> Sequence[Client]:
        return await self._store.clients()

    def kept_secret(self, client: Client, secret: str) -> ClientSecret:
        return kept_secret(client, secret, masters=self._master_keys, now=self._clock.now())


def kept_secret(client: Client, secret: str, *, masters: MasterKeys, now: int) -> ClientSecret:
    """The form in which a secret is stored: sealed where the proof needs it, else a digest (R3)."""
    if client.profile is Profile.NATIVE:
        kind = SecretKind.SEALED
        kept = masters.seal(secret.encode(), purpose=sealed_for(client.client_id))
    else:
        kind, kept = SecretKind.SHA256, sha256(secret)
    return ClientSecret(kind=kind, secret=kept, created_at=now)


def sealed_for(client_id: str) -> str:
    return f"client-secret:{client_id}"


def check_client(client: Client) -> None:
    """Raise BadClient for the first thing that is not acceptable."""
    problems = (
        (
            CLIENT_ID.fullmatch(client.client_id),
            "client_id takes 1 to 64 letters, digits, '.', '_', '~', '-'",
        ),
        (
            0 < len(client.name) <= NAME_LONGEST and is_plain_line(client.name),
            "name takes 1 to 64 characters",
        ),
        (set(client.scopes) <= set(SCOPES), f"scopes are {', '.join(SCOPES)}"),
        (
            all(map(is_registrable_host, client.redirect_hosts)),
            "a redirect host is a bare lower-case host name",
        ),
        (
            all(map(is_registrable_uri, client.redirect_uris + client.post_logout_uris)),
            "a redirect URI is https (or http on loopback), without user-info or fragment",
        ),
        (client.redirect_hosts or client.redirect_uris, "a client needs a redirect URI or host"),
        (
            client.profile is not Profile.OIDC or not client.redirect_hosts,
            "profile oidc takes exact redirect URIs only",
        ),
        (client.profile is Profile.OIDC or not client.public, "a public client needs profile oidc"),
    )
    for holds, problem in problems:
        if not holds:
            raise BadClient(problem)
