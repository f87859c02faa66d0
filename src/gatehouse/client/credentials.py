"""The credentials an application uses to ask about a user (interface §4.1, §4.8, R2, R6)."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Protocol

import msgspec
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from gatehouse.client.clock import Clock, SystemClock
from gatehouse.client.decoding import encode_base64url
from gatehouse.client.transport import Request

PERMISSIONS_PATH: Final = "/api/permissions/meta/data"
JWT_LIFETIME: Final = 300  # seconds: the longest that a service JWT signed by an application may live (R2)
RENEW_AFTER: Final = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionQuery:
    """Asks what the owner of a JWT holds in the application; without a JWT, which roles `about_user_id` has there."""

    base_url: str
    application_id: int
    jwt: str = field(default="", repr=False)
    about_user_id: str = ""  # a user id
    address: str | None = None  # the person's, when it is known
    now: int

    def to_request(self, headers: Mapping[str, str], **more: object) -> Request:
        data = {"type": "list_short"} if self.jwt else {"type": "roles", "user_id": self.about_user_id}
        content = {"action": "get", "application_id": self.application_id, "data": data, **more}
        return Request(
            method="POST",
            path=PERMISSIONS_PATH,
            headers={"Content-Type": "application/json", **headers},
            body=msgspec.json.encode(content),
        )


class Credential(Protocol):
    def build_request(self, query: PermissionQuery) -> Request:
        """Build the HTTP request with the application's credentials."""

    def own_headers(self, base_url: str) -> Mapping[str, str]:
        """Build the headers of a request that the application makes for itself."""


@dataclass(frozen=True, slots=True)
class AccessKey:
    """Signs the person's address into the request when it is known: `ip` conditions and `fip` need it (R5)."""

    value: str = field(repr=False)

    def build_request(self, query: PermissionQuery) -> Request:
        if query.address is None:
            return query.to_request(bearer_header(self.value), jwt=query.jwt)
        plain = query.to_request(bearer_header(query.jwt), ip=query.address, ts=query.now)
        proof = {
            "Application-Id": str(query.application_id),
            "Signature": sign_request(self.value, plain.method, plain.path, body=plain.body),
        }
        return Request(method=plain.method, path=plain.path, headers={**plain.headers, **proof}, body=plain.body)

    def own_headers(self, base_url: str) -> Mapping[str, str]:  # noqa: ARG002 - other credentials need it
        return bearer_header(self.value)


@dataclass(frozen=True, slots=True)
class ServiceJwt:
    """A service JWT that an administrator issued.

    It contains no address, so a user JWT with `fip` is refused with it.
    """

    value: str = field(repr=False)

    def build_request(self, query: PermissionQuery) -> Request:
        return query.to_request({**bearer_header(query.jwt), "Service-Jwt": self.value})

    def own_headers(self, base_url: str) -> Mapping[str, str]:  # noqa: ARG002 - other credentials need it
        return {"Service-Jwt": self.value}


@dataclass(frozen=True)
class ServiceKey:
    """A private key whose public half is registered on the application: makes its own service JWTs (R2)."""

    application_id: int
    kid: str
    private_pem: str = field(repr=False)
    clock: Clock = field(default_factory=SystemClock, repr=False)
    _jwt_cache: dict[str, tuple[int, str]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def jwt(self, base_url: str) -> str:
        """Return a service JWT that is valid for five minutes at that service only."""
        now = self.clock.now()
        claims = {
            "iss": str(self.application_id),
            "aud": base_url,
            "iat": now,
            "exp": now + JWT_LIFETIME,
            "typ": "service_jwt",
            "kid": self.kid,
        }
        message = encode_segment({"alg": "RS256", "kid": self.kid, "typ": "JWT"}) + b"." + encode_segment(claims)
        signature = self._private.sign(message, PKCS1v15(), SHA256())
        return (message + b"." + encode_base64url(signature)).decode()

    def build_request(self, query: PermissionQuery) -> Request:
        return query.to_request({**bearer_header(query.jwt), **self.own_headers(query.base_url)})

    def own_headers(self, base_url: str) -> Mapping[str, str]:
        return {"Service-Jwt": self._cached_jwt(base_url)}

    def _cached_jwt(self, base_url: str) -> str:
        """Return a cached JWT: signing takes a millisecond, and one JWT is valid for minutes."""
        made_at, jwt = self._jwt_cache.get(base_url, (0, ""))
        if not 0 <= self.clock.now() - made_at < RENEW_AFTER:
            made_at, jwt = self.clock.now(), self.jwt(base_url)
            self._jwt_cache[base_url] = made_at, jwt
        return jwt

    @cached_property
    def _private(self) -> RSAPrivateKey:
        key = load_pem_private_key(self.private_pem.encode(), password=None)
        if not isinstance(key, RSAPrivateKey):
            raise TypeError("private_pem: not an RSA key")
        return key


def sign_request(key: str, method: str, path: str, *, query: str = "", body: bytes = b"") -> str:
    """The `Signature` header of a request; its query or body holds `ip` and `ts`, `Application-Id` says whose key.

    Path and query are signed as in the request line, percent-encoded (R6).
    """
    message = b"\n".join((method.encode(), path.encode(), query.encode(), body))
    return hmac.digest(key.encode(), message, "sha256").hex()


def bearer_header(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def encode_segment(members: Mapping[str, object]) -> bytes:
    return encode_base64url(msgspec.json.encode(members))
