"""The cost of encoding and signing one token, in the calling thread."""

from bench.figures import Figure, cost
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from tests.support.keys import key_of, master_keys
from tests.support.tokens import example_claims

from gatehouse.keys.keyring import open_key
from gatehouse.keys.model import Algorithm, KeyPurpose
from gatehouse.tokens.claims import UserJwtClaims
from gatehouse.tokens.rsa_signatures import RS256_PADDING, SHA_256
from gatehouse.tokens.signer import sign_inline, signing_input


def signatures() -> list[Figure]:
    return [signature(alg) for alg in (Algorithm.RS256, Algorithm.ES256, Algorithm.EDDSA)]


def signature(alg: Algorithm) -> Figure:
    key = open_key(key_of(KeyPurpose.TOKENS, alg), master_keys())
    claims = example_claims(UserJwtClaims)

    def sign() -> bytes:
        message = signing_input(claims, alg, key.record.kid, {})
        if isinstance(key.private, RSAPrivateKey):
            return key.private.sign(message, RS256_PADDING, SHA_256)
        return sign_inline(key.private, message)

    return cost(f"sign a user token, {alg}", sign)
