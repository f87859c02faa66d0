"""Strict parsing of clients' public keys."""

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from joserfc.jwk import ECKey, OKPKey, RSAKey

from gatehouse.keys.model import Algorithm
from gatehouse.oauth.errors import BadClient
from gatehouse.oauth.private_key_jwt import MAX_KEYS, parse_client_keys

RSA = RSAKey.generate_key(2048).as_dict(private=False)
EC = ECKey.import_key(generate_private_key(SECP256R1())).as_dict(private=False)
OKP = OKPKey.import_key(Ed25519PrivateKey.generate()).as_dict(private=False)


def refusal(*keys: object) -> str:
    with pytest.raises(BadClient) as error:
        parse_client_keys({"keys": list(keys)})
    return error.value.detail


def test_missing_key_set_yields_no_keys() -> None:
    assert parse_client_keys({}) == ()


def test_key_of_each_type_is_parsed_with_its_algorithm() -> None:
    wanted = [{**key, "kid": kid, "use": "sig"} for key, kid in ((RSA, "r"), (EC, "e"), (OKP, "o"))]
    parsed = parse_client_keys({"keys": wanted})
    assert [(key.kid, key.alg) for key in parsed] == [
        *(("r", Algorithm.RS256), ("e", Algorithm.ES256), ("o", Algorithm.EDDSA)),
    ]
    assert parsed[0].public.public_numbers().n.bit_length() == 2048  # type: ignore[union-attr]


def test_members_that_no_one_needs_do_not_matter() -> None:
    assert len(parse_client_keys({"keys": [{**RSA, "x5t": "abc", "key_ops": ["verify"]}]})) == 1


@pytest.mark.parametrize("private", ["d", "p", "q", "dp", "dq", "qi", "oth", "k"])
def test_a_private_half_is_refused_and_not_quoted(private: str) -> None:
    words = refusal({**RSA, private: "c2VjcmV0"})
    assert "private key" in words
    assert "c2VjcmV0" not in words


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kty": "oct", "k2": "x"}, "Invalid value"),
        ({**RSA, "use": "enc"}, "for signatures"),
        ({**RSA, "alg": "HS256"}, "RS256"),
        ({**RSA, "alg": "PS256"}, "RS256"),
        ({**RSA, "e": "Aw"}, "exponent"),
        ({**RSA, "n": RSA["n"][:100]}, "bits"),
        ({**RSA, "n": f"{RSA['n']}="}, "base64url"),
        ({**EC, "crv": "P-384"}, "P-256"),
        ({**EC, "x": EC["y"]}, "curve"),
        ({**EC, "x": f"AA{EC['x']}"}, ""),
        ({**OKP, "crv": "X25519"}, "Ed25519"),
        ({**OKP, "x": "AAAA"}, "32 bytes"),
        ("text", "Expected"),
    ],
)
def test_anything_else_is_refused(change: Any, words: str) -> None:
    assert words in refusal(change)


def test_a_set_has_few_keys_and_each_of_several_its_own_kid() -> None:
    assert "1 to 8" in refusal()
    assert "1 to 8" in refusal(*({**OKP, "kid": str(number)} for number in range(MAX_KEYS + 1)))
    assert "different kids" in refusal({**OKP, "kid": "a"}, {**EC, "kid": "a"})
