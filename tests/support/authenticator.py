"""A software authenticator: one P-256 key in memory that creates and uses a passkey as WebAuthn §6 and §7 specify.

It follows the options it is given; a test can name a part of its response that shall be wrong.
"""

import hashlib
import json
import secrets
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from fido2 import cbor

from gatehouse.keys.encoding import decode_base64url, encode_base64url

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40
ES256 = -7


class Authenticator:
    def __init__(self, origin: str, *, counts: bool = True) -> None:
        self.origin = origin
        self.counter = 0
        self.credential_id = secrets.token_bytes(16)
        self.user_handle: bytes | None = None
        self._counts = counts
        self._key = ec.generate_private_key(ec.SECP256R1())

    def create(self, options: str, **lies: Any) -> str:
        """Answer PublicKeyCredentialCreationOptions with attestation "none"."""
        body = json.loads(options)
        self.user_handle = from_base64url(body["user"]["id"])
        client_data = self._client_data("webauthn.create", body["challenge"], lies)
        credential = len(self.credential_id).to_bytes(2, "big") + self.credential_id + self._public_key()
        data = self._data(body["rp"]["id"], ATTESTED, lies) + bytes(16) + credential
        attestation = cbor.encode({"fmt": "none", "attStmt": {}, "authData": data})
        return self._answer(
            {"attestationObject": to_base64url(attestation), "transports": ["internal", "hybrid"]}, client_data
        )

    def get(self, options: str, **lies: Any) -> str:
        """Answer PublicKeyCredentialRequestOptions."""
        body = json.loads(options)
        client_data = self._client_data("webauthn.get", body["challenge"], lies)
        self.counter += self._counts
        data = self._data(body["rpId"], 0, lies)
        signature = self._key.sign(data + hashlib.sha256(client_data).digest(), ec.ECDSA(SHA256()))
        handle = lies.get("user_handle", self.user_handle)
        response = {
            "authenticatorData": to_base64url(data),
            "signature": to_base64url(signature),
            "userHandle": None if handle is None else to_base64url(handle),
        }
        return self._answer(response, client_data)

    def _client_data(self, kind: str, challenge: str, lies: dict[str, Any]) -> bytes:
        collected = {
            "type": lies.get("kind", kind),
            "challenge": lies.get("challenge", challenge),
            "origin": lies.get("origin", self.origin),
            "crossOrigin": lies.get("cross_origin", False),
        }
        return json.dumps(collected).encode()

    def _data(self, rp_id: str, flags: int, lies: dict[str, Any]) -> bytes:
        flags |= PRESENT | (VERIFIED if lies.get("user_verified", True) else 0)
        counter = lies.get("counter", self.counter)
        rp_hash = hashlib.sha256(lies.get("rp_id", rp_id).encode()).digest()
        return rp_hash + bytes([flags]) + int(counter).to_bytes(4, "big")

    def _public_key(self) -> bytes:
        point = self._key.public_key().public_numbers()
        x, y = point.x.to_bytes(32, "big"), point.y.to_bytes(32, "big")
        return cbor.encode({1: 2, 3: ES256, -1: 1, -2: x, -3: y})

    def _answer(self, response: dict[str, Any], client_data: bytes) -> str:
        return json.dumps(
            {
                "id": to_base64url(self.credential_id),
                "rawId": to_base64url(self.credential_id),
                "type": "public-key",
                "response": {"clientDataJSON": to_base64url(client_data), **response},
            }
        )


def to_base64url(raw: bytes) -> str:
    return encode_base64url(raw).decode()


def from_base64url(text: str) -> bytes:
    return decode_base64url(text.encode())
