"""Password hashes of other systems, by the test vectors of their public documents."""

import asyncio
import os
import threading
import time

import pytest
from structlog.testing import capture_logs

from gatehouse.accounts import passwords as passwords_module
from gatehouse.accounts.importing.firebase import parse_hash_config
from gatehouse.accounts.importing.hashes import (
    IMPORTED,
    BadHash,
    Scrypt,
    encode_base64,
    imported_hash,
    parse_hash,
    verify_imported,
)
from gatehouse.accounts.passwords import PasswordCost, Passwords
from gatehouse.kernel.errors import Unavailable

CHEAP = PasswordCost(memory_kib=64, time_cost=1, workers=8)
LONG = "a very much longer text to encrypt.  This one even stretches over morethan one line."
SHA_1 = "4b007901b765489abead49d926f721d065a429c1"
SHA_256 = (
    "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc"
    "49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783"
)
SHA_512 = (
    "867f70cf1ade02cff3752599a3a53dc4af34c7a669815ae5d513554e1c8cf252"
    "c02d470a285a0501bad999bfe943c08f050235d7d68b1da55e63f73b60a57fce"
)
SCRYPT = (
    "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
    "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"
)
# https://github.com/firebase/scrypt
FIREBASE = parse_hash_config("""
hash_config {
  algorithm: SCRYPT,
  base64_signer_key: jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==,
  base64_salt_separator: Bw==,
  rounds: 8,
  mem_cost: 14,
}
""")
FIREBASE_HASH = "lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ=="


def phc(hex_digits: str) -> str:
    return encode_base64(bytes.fromhex(hex_digits))


VECTORS = {
    # crypt_blowfish
    "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW": "U*U",
    # RFC 6070, RFC 7914 section 11
    f"$pbkdf2-sha1$4096${encode_base64(b'salt')}${phc(SHA_1)}": "password",
    f"$pbkdf2-sha256$i=1,l=64${encode_base64(b'salt')}${phc(SHA_256)}": "passwd",
    f"$pbkdf2-sha512$1${encode_base64(b'salt')}${phc(SHA_512)}": "password",
    # passlib
    "$pbkdf2-sha256$6400$.6UI/S.nXIk8jcbdHx3Fhg$98jZicV16ODfEsEZeYPGHU3kbrUrvUEXOPimVSQDD44": "password",
    # Django
    "pbkdf2_sha256$10000$seasalt$CWWFdHOWwPnki7HvkcqN9iA2T3KLW1cf2uZ5kvArtVY=": "lètmein",
    "pbkdf2_sha1$10000$seasalt$oAfF6vgs95ncksAhGXOWf4Okq7o=": "lètmein",
    "scrypt$16384$seasalt$8$1$Qj3+9PPyRjSJIebHnG81TMjsqtaIGxNQG/aEB/NYafTJ7tibgfYz71m0ldQESkXFRkdVCBhhY8mx7rQwite/Pw"
    "==": "lètmein",
    "argon2$argon2i$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$YC9+jJCrQhs5R6db7LlN8Q": "secret",
    "sha1$seasalt$cff36ea83f5706ce9aa7454e63e431fc726b2dc8": "lètmein",
    # RFC 7914 section 12
    f"$scrypt$ln=14,r=8,p=1${encode_base64(b'SodiumChloride')}${phc(SCRYPT)}": "pleaseletmein",
    # the Argon2 reference implementation
    "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc": "password",
    # argon2-cffi, with two lanes
    "$argon2id$v=19$m=64,t=2,p=2$c2FsdHNhbHQ$lpUkiWjHnXtDFt/D+q2Fh/Qb5zkgFeDCaryaiBgnU0o": "secret",
    "$argon2i$v=19$m=64,t=2,p=2$c2FsdHNhbHQ$GFdHczYwvP1Owb6f7aI9OsEDSkw4UhOOnWZgUMnZ0Uc": "secret",
    "$argon2d$v=19$m=64,t=2,p=2$c2FsdHNhbHQ$XlBKXtfuHfCq9wVjg6FJ2YJ2Y1xyTYOcGgfgfhiHaWo": "secret",
    FIREBASE.convert(FIREBASE_HASH, "42xEC+ixf3L2lw=="): "user1password",
    # the specification of SHA-crypt
    "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5": "Hello world!",
    "$5$rounds=77777$short$JiO1O3ZpDAxGJeaDIuqCoEFysAe1mZNJRs3pw0KQRd/": (
        "we have a short salt string but not a short password"
    ),
    "$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1": (
        "Hello world!"
    ),
    "{CRYPT}$6$rounds=1400$anotherlongsalts$POfYwTEok97VWcjxIiSOjiykti.o/pQs.wPvMxQ6Fm7I6IoYN3CmLs66x9t0oSwbtEW7o7"
    "UmJEiDwGqd8p4ur1": LONG,
    # SHA-256 of secret and salt, SHA-512 of salt and secret
    "{SSHA256}+E+iFJ27Yu1ODPH1UNKUmzOmUT06dwfghQJRHHnMsO5zYWx0": "secret",
    "$salted-sha512$prefix$c2FsdA$mQGEf/jHa9X7Rzt70uT03dEQMypSqIj9ad6ydmE4hd3zguXPEhDtDezbgBCuOZQzGp4GOcPKfp6LEQ3VCXjOdg"
    "==": "secret",
}


@pytest.mark.parametrize(("text", "password"), VECTORS.items())
def test_each_hash_matches_its_password_and_no_other(text: str, password: str) -> None:
    stored = imported_hash(text)
    assert verify_imported(stored, password)
    assert not verify_imported(stored, f"{password} ")
    assert not verify_imported(stored, "")


def test_bcrypt_reads_72_bytes_as_everywhere() -> None:
    stored = imported_hash("$2b$04$NDdPUh4Vif4Q/vtKsUIR1e449E1NA5IzJ8JaZIlNdmsgXdQmPt90y")
    assert verify_imported(stored, "x" * 100)
    assert not verify_imported(stored, "x" * 71)


BOMBS = {
    "$2b$15$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW": "the bcrypt cost is 15; at most 14",
    f"$pbkdf2-sha256$2000001$c2FsdA${phc(SHA_256)}": "PBKDF2 iterations is 2,000,001; at most 2,000,000",
    f"pbkdf2_sha256$9999999999$salt${phc(SHA_256)}": "PBKDF2 iterations",
    f"$scrypt$ln=18,r=8,p=1$c2FsdA${phc(SCRYPT)}": "scrypt memory in MiB is 256; at most 128",
    f"$scrypt$ln=99,r=1,p=1$c2FsdA${phc(SCRYPT)}": "scrypt memory",
    f"$scrypt$ln=14,r=8,p=1000$c2FsdA${phc(SCRYPT)}": "scrypt memory times p",
    f"$scrypt$ln=16,r=1,p=1$c2FsdA${phc(SCRYPT)}": "N is too large for r",
    f"$scrypt$ln=1,r=524288,p=4$c2FsdA${phc(SCRYPT)}": "scrypt memory in MiB is 256; at most 128",
    f"scrypt$16383$salt$8$1${phc(SCRYPT)}": "power of two",
    f"$firebase-scrypt$ln=20,r=8$c2FsdA${phc(SCRYPT)}": "scrypt memory",
    "$argon2id$v=19$m=262145,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc": "Argon2 memory",
    "$argon2id$v=19$m=8,t=11,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc": "time cost is 11",
    "$argon2id$v=19$m=8192,t=1,p=1024$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc": "parallelism",
    # version 1.0 of Argon2, in both notations, and parameters that Argon2 does not allow
    "$argon2i$v=16$m=64,t=2,p=1$c2FsdHNhbHQ$J4sF6LNAarbGevSHy0gUY5bpu3Cvo1ipYIMfykvIeBE": "only version 1.3",
    "$argon2i$m=64,t=2,p=1$c2FsdHNhbHQ$J4sF6LNAarbGevSHy0gUY5bpu3Cvo1ipYIMfykvIeBE": "only version 1.3",
    "$argon2id$v=19$m=64,t=0,p=1$c2FsdHNhbHQ$lpUkiWjHnXtDFt/D+q2Fh/Qb5zkgFeDCaryaiBgnU0o": "Argon2 hash is malformed",
    "$argon2id$v=19$m=64,t=1,p=9$c2FsdHNhbHQ$lpUkiWjHnXtDFt/D+q2Fh/Qb5zkgFeDCaryaiBgnU0o": "Argon2 hash is malformed",
    "$argon2id$v=19$m=64,t=1,p=1$c2FsdA$lpUkiWjHnXtDFt/D+q2Fh/Qb5zkgFeDCaryaiBgnU0o": "Argon2 hash is malformed",
    "$6$rounds=1000001$salt$" + "a" * 86: "SHA-crypt rounds",
    "{SSHA}" + encode_base64(bytes(20)): "without a salt",
    "$pbkdf2-sha256$1000$c2FsdA$AAAA": "fewer than 16 bytes",
    "5f4dcc3b5aa765d61d8327deb882cf99": "malformed or of an unknown kind",
    "$2b$10$short": "malformed or of an unknown kind",
    "$1$" + "x" * 2_000: "longer than 1024 characters",
    "$pbkdf2-sha256$1000$c2FsdA$" + "A" * 45: "not valid base64",
}


@pytest.mark.parametrize(("text", "reason"), BOMBS.items())
def test_im_02_an_expensive_or_malformed_hash_is_refused_without_checking_it(text: str, reason: str) -> None:
    started = time.process_time()
    with pytest.raises(BadHash, match=reason):
        imported_hash(text)
    assert not verify_imported(text, "password")  # also one that reached the database some other way
    assert time.process_time() - started < 0.5


def test_a_stored_hash_that_cannot_be_checked_is_logged_without_its_text() -> None:
    text = "$argon2i$v=16$m=64,t=2,p=1$c2FsdHNhbHQ$J4sF6LNAarbGevSHy0gUY5bpu3Cvo1ipYIMfykvIeBE"
    with capture_logs() as logs:
        assert not verify_imported(IMPORTED + text, "secret")
    [line] = logs
    assert line["log_level"] == "warning"
    assert "only version 1.3 of Argon2" in line["reason"]
    assert "J4sF6LNA" not in str(line)


async def test_im_03_imported_hashes_are_checked_one_per_core_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    passwords = Passwords(CHEAP)
    lock, both = threading.Lock(), threading.Barrier(2, timeout=10)
    running: list[int] = []
    most = 0

    def verify(*_: object) -> bool:
        nonlocal most
        with lock:
            running.append(1)
            most = max(most, len(running))
        both.wait()  # two do run at once
        with lock:
            running.pop()
        return True

    monkeypatch.setattr("gatehouse.accounts.passwords.verify_imported", verify)
    stored = imported_hash("$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5")
    assert all(await asyncio.gather(*(passwords.matches("x", stored) for _ in range(8))))
    assert most == 2
    passwords.close()


async def test_im_03_waiting_checks_of_imported_hashes_delay_no_other_sign_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = Passwords(CHEAP)
    monkeypatch.setattr(passwords_module, "MAX_WAITING_IMPORTS", 0)
    with pytest.raises(Unavailable):
        await own.matches("password", imported_hash(f"$pbkdf2-sha256$1000$c2FsdA${phc(SHA_256)}"))
    assert await own.matches("password", await own.hash("password"))
    own.close()


async def test_an_imported_argon2_hash_is_not_taken_for_one_of_ours() -> None:
    """Ours has a pepper, and a password in NFC; the other system had neither."""
    passwords = Passwords(CHEAP, pepper=b"pepper")
    text = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
    assert await passwords.matches("password", imported_hash(text))
    assert not await passwords.matches("password", text)
    assert passwords.is_outdated(imported_hash(text))
    passwords.close()


def test_the_signer_key_of_firebase_is_not_stored() -> None:
    stored = imported_hash(FIREBASE.convert(FIREBASE_HASH, "42xEC+ixf3L2lw=="))
    assert encode_base64(FIREBASE.signer_key) not in stored
    assert FIREBASE_HASH.rstrip("=") not in stored


def test_further_blocks_of_pbkdf2_cost_nothing() -> None:
    """A file could ask for many: each would cost as much as the first."""
    known = parse_hash(f"$pbkdf2-sha1$4096$c2FsdA${encode_base64(bytes.fromhex(SHA_1) + bytes(500))}")
    assert known.verify(b"password")


def test_scrypt_parameters_are_kept() -> None:
    known = parse_hash(f"$scrypt$ln=14,r=8,p=2$c2FsdA${phc(SCRYPT)}")
    assert isinstance(known, Scrypt)
    assert (known.n, known.r, known.p) == (16_384, 8, 2)
