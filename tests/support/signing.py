"""A game with a key pair of its own: the public half is registered, the private half signs (interface §4.3)."""

from base64 import b64encode

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.support.tokens import application_private_key


def application_public_key() -> str:
    key = application_private_key().public_key()
    return b64encode(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()


def sign_as_application(message: bytes) -> str:
    """What goes into `Request-Sign`."""
    return b64encode(application_private_key().sign(message, PKCS1v15(), SHA256())).decode()
