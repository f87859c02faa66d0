"""The two WebAuthn ceremonies without storage: options for the browser, and verification of its response.

User verification is required in both, so that a passkey alone is as strong as a password and a code (R1). The library
decodes, checks signatures and attestations. It accepts more than WebAuthn allows, so what a response says is checked
here, and the types and sizes of its parts before the library reads them (docs/decisions/0002-dependencies.md).
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec
from cryptography.exceptions import InvalidSignature
from fido2 import cbor
from fido2.attestation.base import Attestation, NoneAttestation
from fido2.attestation.packed import PackedAttestation
from fido2.attestation.tpm import TpmAttestation
from fido2.cose import ES256, RS256, CoseKey, EdDSA
from fido2.webauthn import AuthenticatorData
from msgspec import Struct

from gatehouse.accounts.model import User
from gatehouse.accounts.second_factors.model import Passkey, PasskeyRefused
from gatehouse.accounts.second_factors.webauthn import (
    CHALLENGE_LIFETIME,
    NewCredential,
    RelyingParty,
    UnverifiedResponse,
)
from gatehouse.kernel.digests import constant_time_equal, sha256
from gatehouse.keys.encoding import decode_base64url, encode_base64url

MAX_CREDENTIAL_ID_BYTES: Final = 1_023  # bytes; WebAuthn §7.1
MAX_PUBLIC_KEY_BYTES: Final = 1_024  # bytes; RSA with 4096 bits takes about 530
MIN_RSA_BYTES: Final = 256  # bytes of the modulus
MAX_ENCODED_BYTES: Final = 16_384  # bytes of CBOR: the library takes quadratic time

KEY_TYPES: Final = {EdDSA.ALGORITHM: 1, ES256.ALGORITHM: 2, RS256.ALGORITHM: 3}  # COSE key types, RFC 9053 §7
KEY_TYPE, MODULUS = 1, -1  # labels of a COSE key
TRANSPORTS: Final = ("usb", "nfc", "ble", "internal", "cable", "hybrid", "smart-card")
# We ask for none; some clients send one of these all the same. It is verified, and gives no trust.
ATTESTATIONS: Final[dict[str, type[Attestation]]] = {
    "none": NoneAttestation,
    "packed": PackedAttestation,
    "tpm": TpmAttestation,
}


class AttestationResponse(msgspec.Struct):
    client_data: str = msgspec.field(name="clientDataJSON")
    attestation_object: str = msgspec.field(name="attestationObject")
    transports: Any = None


class AssertionResponse(msgspec.Struct):
    client_data: str = msgspec.field(name="clientDataJSON")
    authenticator_data: str = msgspec.field(name="authenticatorData")
    signature: str
    user_handle: str | None = msgspec.field(name="userHandle", default=None)


ResponseT = TypeVar("ResponseT", AttestationResponse, AssertionResponse)


class BrowserCredential(msgspec.Struct, Generic[ResponseT], rename="camel"):
    """A PublicKeyCredential as browsers write it in JSON; bytes are base64url."""

    id: str
    raw_id: str
    type: Literal["public-key"]
    response: ResponseT
    authenticator_attachment: Literal["platform", "cross-platform"] | None = None


class ClientData(msgspec.Struct, rename="camel"):
    type: str
    challenge: str
    origin: str
    cross_origin: bool | None = None


class AttestationObject(msgspec.Struct):
    fmt: str
    auth_data: bytes = msgspec.field(name="authData")
    att_stmt: dict[str, Any] = msgspec.field(name="attStmt")


class WebAuthn(Struct, eq=False):
    party: RelyingParty

    def registration_options(self, user: User, challenge: bytes, existing: Sequence[Passkey]) -> str:
        options = {
            "rp": {"name": self.party.name, "id": self.party.rp_id},
            "user": {
                "id": to_base64url(user.user_id.encode()),
                "name": user.login or user.nick,
                "displayName": user.nick,
            },
            "challenge": to_base64url(challenge),
            "pubKeyCredParams": [{"type": "public-key", "alg": algorithm} for algorithm in KEY_TYPES],
            "timeout": CHALLENGE_LIFETIME * 1_000,
            "excludeCredentials": [descriptor(passkey) for passkey in existing],
            "authenticatorSelection": {
                "residentKey": "preferred",  # otherwise it is only a second factor
                "requireResidentKey": False,
                "userVerification": "required",
            },
            "attestation": "none",
        }
        return json.dumps(options)

    def sign_in_options(self, challenge: bytes, allowed: Sequence[Passkey]) -> str:
        options = {
            "challenge": to_base64url(challenge),
            "timeout": CHALLENGE_LIFETIME * 1_000,
            "rpId": self.party.rp_id,
            "allowCredentials": [descriptor(passkey) for passkey in allowed],
            "userVerification": "required",
        }
        return json.dumps(options)

    def parse_registration(self, text: str) -> UnverifiedResponse:
        with refuse_malformed():
            credential = msgspec.json.decode(text, type=BrowserCredential[AttestationResponse])
            return to_unverified_response(credential, handle=None)

    def verify_registration(self, response: UnverifiedResponse) -> NewCredential:
        credential: BrowserCredential[AttestationResponse] = response.answer
        with refuse_malformed():
            client_data_hash = self._check_client_data(credential, "webauthn.create")
            attestation = parse_attestation_object(decode_base64url(credential.response.attestation_object.encode()))
            data = parse_authenticator_data(attestation.auth_data)
            self._check_authenticator_data(data)
            if data.credential_data is None:
                raise PasskeyRefused("no credential in the authenticator data")
            credential_id = data.credential_data.credential_id
            public_key = cbor.encode(data.credential_data.public_key)
            if not credential_id or credential_id != response.credential_id:
                raise PasskeyRefused("the authenticator made another credential ID")
            if len(credential_id) > MAX_CREDENTIAL_ID_BYTES or len(public_key) > MAX_PUBLIC_KEY_BYTES:
                raise PasskeyRefused("the credential is too large")
            check_public_key(data.credential_data.public_key)
            ATTESTATIONS[attestation.fmt]().verify(attestation.att_stmt, data, client_data_hash)
        return NewCredential(
            credential_id=credential_id,
            public_key=public_key,
            sign_count=data.counter,
            transports=known_transports(credential.response.transports),
        )

    def parse_sign_in(self, text: str) -> UnverifiedResponse:
        with refuse_malformed():
            credential = msgspec.json.decode(text, type=BrowserCredential[AssertionResponse])
            handle = credential.response.user_handle
            return to_unverified_response(
                credential, handle=None if handle is None else decode_base64url(handle.encode())
            )

    def verify_sign_in(self, response: UnverifiedResponse, public_key: bytes) -> int:
        credential: BrowserCredential[AssertionResponse] = response.answer
        with refuse_malformed():
            client_data_hash = self._check_client_data(credential, "webauthn.get")
            data = parse_authenticator_data(decode_base64url(credential.response.authenticator_data.encode()))
            self._check_authenticator_data(data)
            signature = decode_base64url(credential.response.signature.encode())
            key = CoseKey.parse(msgspec.convert(cbor.decode(public_key), dict[int, Any]))
            key.verify(data + client_data_hash, signature)
        return data.counter

    def _check_client_data(self, credential: BrowserCredential[Any], kind: str) -> bytes:
        """Return the digest of the client data, which is signed. The caller has checked the challenge."""
        encoded, client_data = parse_client_data(credential)
        if client_data.type != kind:
            raise PasskeyRefused(f"client data of type {client_data.type!r}")
        if client_data.origin != self.party.origin:
            raise PasskeyRefused(f"requested by {client_data.origin!r}")
        return sha256(encoded)

    def _check_authenticator_data(self, data: AuthenticatorData) -> None:
        if not constant_time_equal(data.rp_id_hash, sha256(self.party.rp_id)):
            raise PasskeyRefused("made for another host")
        if not data.is_user_present() or not data.is_user_verified():
            raise PasskeyRefused("the authenticator did not verify the person")
        if data.is_backed_up() and not data.is_backup_eligible():
            raise PasskeyRefused("backed up, but not eligible for backup")


def to_unverified_response(credential: BrowserCredential[Any], *, handle: bytes | None) -> UnverifiedResponse:
    if credential.id != credential.raw_id:
        raise PasskeyRefused("id and rawId differ")
    _, client_data = parse_client_data(credential)
    if client_data.cross_origin:
        raise PasskeyRefused("requested from a cross-origin frame")
    return UnverifiedResponse(
        challenge=decode_base64url(client_data.challenge.encode()),
        credential_id=decode_base64url(credential.raw_id.encode()),
        user_handle=handle,
        answer=credential,
    )


def parse_client_data(credential: BrowserCredential[Any]) -> tuple[bytes, ClientData]:
    encoded = decode_base64url(credential.response.client_data.encode())
    return encoded, msgspec.json.decode(encoded, type=ClientData)


def parse_attestation_object(encoded: bytes) -> AttestationObject:
    refuse_long(encoded)
    decoded = cbor.decode(encoded)
    refuse_loose(encoded, cbor.encode(decoded))
    return msgspec.convert(decoded, AttestationObject)


def parse_authenticator_data(encoded: bytes) -> AuthenticatorData:
    refuse_long(encoded)
    data = AuthenticatorData(encoded)
    credential = data.credential_data or b""
    refuse_loose(
        encoded, AuthenticatorData.create(data.rp_id_hash, data.flags, data.counter, credential, data.extensions)
    )
    return data


def refuse_long(encoded: bytes) -> None:
    if len(encoded) > MAX_ENCODED_BYTES:
        raise PasskeyRefused(f"{len(encoded)} bytes of CBOR")


def refuse_loose(encoded: bytes, strict: bytes) -> None:
    """Refuse CBOR that the library reads but would not write, apart from the order of members.

    It reads strings that are cut off, keys that occur twice, long forms of short numbers, and null as false.
    """
    if sorted(encoded) != sorted(strict):
        raise PasskeyRefused("malformed CBOR")


def check_public_key(key: CoseKey) -> None:
    """Refuse a key of another algorithm or type, and one that could never verify a signature."""
    if key.ALGORITHM not in KEY_TYPES or key.get(KEY_TYPE) != KEY_TYPES[key.ALGORITHM]:
        raise PasskeyRefused("a key of another algorithm or type")
    if not all(isinstance(value, int | bytes) for value in key.values()):
        raise PasskeyRefused("malformed key")
    if key.ALGORITHM == RS256.ALGORITHM and len(key[MODULUS].lstrip(b"\0")) < MIN_RSA_BYTES:
        raise PasskeyRefused("the RSA key is too short")
    with suppress(InvalidSignature):
        key.verify(b"", b"")


def known_transports(transports: object) -> tuple[str, ...]:
    return tuple(name for name in transports if name in TRANSPORTS) if isinstance(transports, list) else ()


def descriptor(passkey: Passkey) -> dict[str, object]:
    return {
        "id": to_base64url(passkey.credential_id),
        "type": "public-key",
        "transports": list(passkey.transports),
    }


def to_base64url(raw: bytes) -> str:
    return encode_base64url(raw).decode()


@contextmanager
def refuse_malformed() -> Iterator[None]:
    try:
        yield
    except PasskeyRefused:
        raise
    except Exception as error:  # the library raises KeyError, TypeError and ValueError for malformed keys
        raise PasskeyRefused(f"{type(error).__name__}: {error}") from error
