import base64
from functools import lru_cache

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from gatehouse.keys.key_objects import public_pem
from gatehouse.keys.model import BadPublicKey
from gatehouse.keys.rsa_public_keys import parse_rsa_public_key
from tests.support.cpu_time import run_within_cpu_seconds

SPKI, PKCS1 = PublicFormat.SubjectPublicKeyInfo, PublicFormat.PKCS1


@lru_cache
def private_key() -> RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def public_key() -> RSAPublicKey:
    return private_key().public_key()


def of_bits(bits: int, *, e: int = 65537) -> RSAPublicKey:
    """A key without a known private half: only its size and shape matter here."""
    return RSAPublicNumbers(e, (1 << (bits - 1)) | 1).public_key()


def der(key: RSAPublicKey, form: PublicFormat = SPKI) -> bytes:
    return key.public_bytes(Encoding.DER, form)


def base64_of(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def raw_pkcs1(n: int, e: int) -> str:
    """PKCS#1 DER built by hand, for numbers that the library refuses to encode."""

    def integer(value: int) -> bytes:
        body = value.to_bytes(value.bit_length() // 8 + 1)
        return b"\x02" + length(len(body)) + body

    def length(size: int) -> bytes:
        return bytes([size]) if size < 128 else b"\x82" + size.to_bytes(2)

    content = integer(n) + integer(e)
    return base64_of(b"\x30" + length(len(content)) + content)


def test_pem_and_der_in_both_forms_are_the_same_key() -> None:
    key = public_key()
    texts = [
        public_pem(key),
        key.public_bytes(Encoding.PEM, PKCS1).decode(),
        public_pem(key).replace("\n", "\r\n"),
        f"\n {public_pem(key)} ",
        base64_of(der(key)),
        base64_of(der(key, PKCS1)),
        base64.urlsafe_b64encode(der(key)).decode().rstrip("="),
    ]
    assert {parse_rsa_public_key(text).public_numbers() for text in texts} == {key.public_numbers()}


@pytest.mark.parametrize("bits", [2048, 3072, 4096, 8192])
def test_sizes_from_2048_to_8192_bits_are_accepted(bits: int) -> None:
    assert parse_rsa_public_key(public_pem(of_bits(bits))).key_size == bits


@pytest.mark.parametrize("e", [65537, 65539, 2**64 - 1])
def test_odd_exponents_from_65537_are_accepted(e: int) -> None:
    assert parse_rsa_public_key(public_pem(of_bits(2048, e=e))).public_numbers().e == e


@pytest.mark.parametrize("bits", [1024, 2047, 8193, 16384])
def test_gs_08_a_key_of_another_size_is_refused(bits: int) -> None:
    expect_refusal(raw_pkcs1((1 << (bits - 1)) | 1, 65537))


@pytest.mark.parametrize("e", [1, 2, 3, 65535, 65536, 65538, 2**64 + 1, 2**2040 + 1])
def test_gs_08_a_weak_even_or_huge_exponent_is_refused(e: int) -> None:
    expect_refusal(raw_pkcs1((1 << 2047) | 1, e))


def test_gs_08_an_even_modulus_is_refused() -> None:
    expect_refusal(raw_pkcs1(1 << 2047, 65537))


def test_gs_08_an_elliptic_curve_key_is_refused() -> None:
    pem = public_pem(ec.generate_private_key(ec.SECP256R1()).public_key())
    assert expect_refusal(pem) == "not an RSA key"


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_ap_07_a_private_key_is_refused_in_words_that_say_so(form: PrivateFormat) -> None:
    pem = private_key().private_bytes(Encoding.PEM, form, NoEncryption()).decode()
    assert "private key" in expect_refusal(pem)
    expect_refusal(base64_of(private_key().private_bytes(Encoding.DER, form, NoEncryption())))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "garbage",
        "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
        "\x00" * 100,
        "é" * 100,
        "-----BEGIN PUBLIC KEY-----" * 100,
    ],
)
def test_ap_07_garbage_is_refused(text: str) -> None:
    expect_refusal(text)


def test_ap_07_a_text_of_a_megabyte_is_not_even_decoded() -> None:
    assert "longer" in expect_refusal("A" * 1_000_000)


def test_ap_07_loose_bits_at_the_end_are_refused() -> None:
    text = base64_of(der(of_bits(3072)))
    last = len(text.rstrip("=")) - 1
    loose = text[:last] + chr(ord(text[last]) + 1) + text[last + 1 :]
    assert base64.b64decode(loose) == base64.b64decode(text)
    expect_refusal(loose)


def test_ap_07_a_sloppy_spelling_of_a_good_key_is_refused() -> None:
    pem, raw = public_pem(public_key()), der(public_key())
    for sloppy in [pem + pem, "x" + pem, pem + "x", pem.replace("M", "!", 1), base64_of(raw + b"\x00")]:
        expect_refusal(sloppy)


def expect_refusal(text: str) -> str:
    def read() -> str:
        with pytest.raises(BadPublicKey) as error:
            parse_rsa_public_key(text)
        return error.value.detail

    return run_within_cpu_seconds(0.1, read)
