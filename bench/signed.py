"""What one token costs to sign, its encoding included; RSA in the calling thread, without the pool's way there."""

from bench.figures import Figure, cost
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from tests.support.keys import key_of, masters
from tests.support.tokens import example

from gatehouse.keys.keyring import opened
from gatehouse.keys.model import Algorithm, Purpose
from gatehouse.tokens.claims import UserClaims
from gatehouse.tokens.signing import RS256_PADDING, SHA_256, quick_signature, signing_input


def signatures() -> list[Figure]:
    return [signature(alg) for alg in (Algorithm.RS256, Algorithm.ES256, Algorithm.EDDSA)]


def signature(alg: Algorithm) -> Figure:
    key = opened(key_of(Purpose.TOKENS, alg), masters())
    claims = example(UserClaims)

    def sign() -> bytes:
        message = signing_input(claims, alg, key.record.kid, {})
        if isinstance(key.private, RSAPrivateKey):
            return key.private.sign(message, RS256_PADDING, SHA_256)
        return quick_signature(key.private, message)

    return cost(f"sign a user token, {alg}", sign)
