"""Secrets in files: resolving references, and what an export seals."""

import pytest

from gatehouse.kernel.errors import BadInput
from gatehouse.keys.sealing import MasterKeys
from gatehouse.provision.file_secrets import FileSeal, FileSecret, SecretResolver
from tests.support.keys import MASTER, OTHER_MASTER

SEAL = FileSeal(MasterKeys(MASTER))
SOURCES = SecretResolver(
    environment={"PW": "from-env", "EMPTY": "", "BAD": "\udcff"}, read_file=lambda path: f"in {path}"
)


def reveal(value: object, purpose: str = "password:1") -> tuple[str, bool]:
    revealed = SOURCES.reveal(FileSecret.parse(value), SEAL, purpose=purpose)
    return revealed.text, revealed.was_sealed


def refusal(value: object) -> str:
    with pytest.raises(BadInput) as error:
        reveal(value)
    return error.value.detail


def test_a_secret_is_plain_or_comes_from_where_the_reference_leads() -> None:
    assert reveal("plain") == ("plain", False)
    assert reveal({"env": "PW"}) == ("from-env", False)
    assert reveal({"file": "pw.txt"}) == ("in pw.txt", False)
    assert reveal({"sealed": SEAL.seal("kept", purpose="password:1")}) == ("kept", True)


def test_a_reference_that_leads_nowhere_is_told_by_name() -> None:
    assert refusal({"env": "NOPE"}) == "the environment variable NOPE is not set"
    assert refusal({"env": "EMPTY"}) == "is empty"
    assert refusal({"env": "BAD"}) == "is not UTF-8 text"
    assert refusal("") == "is empty"
    assert refusal("x" * 65_537) == "is longer than 65536 bytes"


def test_a_sealed_text_is_the_same_every_time_and_tells_nothing() -> None:
    sealed = SEAL.seal("Hunter2-swordfish", purpose="password:1")
    assert sealed == FileSeal(MasterKeys(MASTER)).seal("Hunter2-swordfish", purpose="password:1")
    assert sealed != SEAL.seal("Hunter2-swordfish", purpose="password:2")
    assert "Hunter2" not in sealed


def test_a_damaged_one_does_not_open() -> None:
    sealed = SEAL.seal("x", purpose="password:1")
    for damaged in (sealed[:-2], f"{sealed}A", sealed.partition(".")[2], f".{sealed}", sealed.partition(".")[0], ""):
        assert refusal({"sealed": damaged}).startswith("was encrypted ")


def test_a_sealed_text_opens_for_its_own_record_only() -> None:
    assert (
        refusal({"sealed": SEAL.seal("x", purpose="password:2")}) == "was encrypted for another record, or is damaged"
    )


def test_another_master_key_does_not_open_it_unless_it_knows_the_former_one() -> None:
    sealed = SEAL.seal("x", purpose="p")
    with pytest.raises(BadInput, match="not configured here"):
        FileSeal(MasterKeys(OTHER_MASTER)).open(sealed, purpose="p")
    assert FileSeal(MasterKeys(OTHER_MASTER, [MASTER])).open(sealed, purpose="p") == "x"
