"""The public keys of clients (RFC 7517, 7518)."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gatehouse.keys.jwk_parsing import Jwk, KeyOfSet, parse_jwk
from gatehouse.keys.model import BadPublicKey
from gatehouse.oauth.errors import BadClient

MAX_KEYS: Final = 8
PRIVATE_MEMBERS: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})  # RFC 7518 §6


class ClientJwkSet(msgspec.Struct, frozen=True, kw_only=True):
    keys: tuple[Jwk, ...]


def parse_client_keys(jwks: Mapping[str, object]) -> tuple[KeyOfSet, ...]:
    """Return every key of the set; none for an empty one. Raises BadClient with a text for its author."""
    if not jwks:
        return ()
    refuse_private_keys(jwks.get("keys"))
    try:
        written = msgspec.convert(jwks, ClientJwkSet)
        keys = tuple(map(parse_jwk, written.keys))
    except (msgspec.ValidationError, BadPublicKey, ValueError) as error:
        raise BadClient(f"jwks: {error}", field="jwks") from None
    if not 0 < len(keys) <= MAX_KEYS:
        raise BadClient(f"jwks must have 1 to {MAX_KEYS} keys", field="jwks")
    if len({key.kid for key in keys}) < len(keys):
        raise BadClient("jwks: several keys need different kids", field="jwks")
    return keys


def refuse_private_keys(keys: object) -> None:
    """Refuse private keys before anything else reads them, so that none is stored or quoted."""
    if isinstance(keys, list | tuple) and any(PRIVATE_MEMBERS & set(key) for key in keys if isinstance(key, Mapping)):
        raise BadClient("jwks contains a private key; keep it secret and register the public key", field="jwks")
