"""What Apple does differently: a client secret that is a signed JWT, and the name at the first sign-in only."""

from base64 import b64decode
from collections.abc import Mapping
from typing import Final

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import load_der_private_key

from gatehouse.keys.encoding import encode_base64url
from gatehouse.providers.answers import text_in
from gatehouse.providers.model import Provider, ProviderUnavailable
from gatehouse.tokens.signer import ES256_SIGNATURE, P256_BYTES

SECRET_SECONDS: Final = 300
MAX_USER_LENGTH: Final = 2_000


def client_secret_jwt(provider: Provider, now: int) -> str:
    """Return the secret for the token endpoint, signed with the key of the developer team."""
    header = {"alg": "ES256", "kid": provider.key_id}
    claims = {
        "iss": provider.team_id,
        "iat": now,
        "exp": now + SECRET_SECONDS,
        "aud": provider.issuer,
        "sub": provider.client_id,
    }
    signing_input = b".".join(encode_base64url(msgspec.json.encode(part)) for part in (header, claims))
    r, s = decode_dss_signature(private_key(provider).sign(signing_input, ES256_SIGNATURE))
    signature = r.to_bytes(P256_BYTES) + s.to_bytes(P256_BYTES)
    return (signing_input + b"." + encode_base64url(signature)).decode()


def private_key(provider: Provider) -> EllipticCurvePrivateKey:
    try:
        key = load_der_private_key(b64decode("".join(provider.private_key.split()), validate=True), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # TypeError: it is encrypted
        raise ProviderUnavailable(f"providers.{provider.provider_id}.private_key is not a private key") from None
    if not isinstance(key, EllipticCurvePrivateKey) or not isinstance(key.curve, SECP256R1):
        raise ProviderUnavailable(f"providers.{provider.provider_id}.private_key is not a P-256 key")
    return key


def name_of_first_sign_in(answer: Mapping[str, str]) -> str:
    """Return the name from the field `user`, which is sent once and never in an id_token; "" without one."""
    written = answer.get("user", "")
    if not written or len(written) > MAX_USER_LENGTH:
        return ""
    try:
        user = msgspec.json.decode(written, type=dict[str, object])
    except (msgspec.DecodeError, msgspec.ValidationError, ValueError):
        return ""
    parts = user.get("name")
    if not isinstance(parts, dict):
        return ""
    return " ".join(filter(None, (text_in(parts, "firstName"), text_in(parts, "lastName"))))
