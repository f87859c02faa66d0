import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatehouse.kernel.errors import Misconfigured
from gatehouse.keys.model import Tampered, WrongMasterKey
from gatehouse.keys.sealing import MasterKeys, new_master_key, parse_master_key, sealing_key_id
from tests.support.keys import MASTER, OTHER_MASTER

OLD, NEW = MasterKeys(OTHER_MASTER), MasterKeys(MASTER)
BOTH = MasterKeys(MASTER, [OTHER_MASTER])


@given(plain=st.binary(max_size=300), purpose=st.text(st.characters(codec="utf-8"), max_size=40))
def test_sealed_value_opens_for_its_purpose(plain: bytes, purpose: str) -> None:
    assert NEW.open(NEW.seal(plain, purpose=purpose), purpose=purpose) == plain


def test_a_change_of_any_byte_is_noticed() -> None:
    sealed = NEW.seal(b"secret", purpose="p")
    for position in range(len(sealed)):
        changed = bytearray(sealed)
        changed[position] ^= 1
        with pytest.raises((Tampered, WrongMasterKey)):
            NEW.open(bytes(changed), purpose="p")


def test_a_record_cut_short_or_lengthened_does_not_open() -> None:
    sealed = NEW.seal(b"secret", purpose="p")
    for wrong in [sealed[:length] for length in range(len(sealed))] + [sealed + b"\x00"]:
        with pytest.raises((Tampered, WrongMasterKey)):
            NEW.open(wrong, purpose="p")


def test_a_record_moved_to_another_place_does_not_open() -> None:
    sealed = NEW.seal(b"secret", purpose="totp:1001")
    with pytest.raises(Tampered) as error:
        NEW.open(sealed, purpose="totp:1002")
    assert "totp:1002" in error.value.detail
    assert "secret" not in error.value.detail


def test_the_data_key_of_one_record_does_not_open_the_body_of_another() -> None:
    one, other = NEW.seal(b"one", purpose="p"), NEW.seal(b"two", purpose="p")
    head = len(one) - len(b"one") - 28
    with pytest.raises(Tampered):
        NEW.open(one[:head] + other[head:], purpose="p")


def test_sealing_twice_gives_two_different_records() -> None:
    assert NEW.seal(b"secret", purpose="p") != NEW.seal(b"secret", purpose="p")


def test_another_master_key_is_named_as_the_reason() -> None:
    with pytest.raises(WrongMasterKey) as error:
        NEW.open(OLD.seal(b"secret", purpose="p"), purpose="p")
    assert OLD.primary_id in error.value.detail


def test_a_previous_key_opens_and_the_primary_seals() -> None:
    assert BOTH.open(OLD.seal(b"secret", purpose="p"), purpose="p") == b"secret"
    assert sealing_key_id(BOTH.seal(b"secret", purpose="p")) == NEW.primary_id


def test_a_rewrapped_record_needs_the_primary_key_only() -> None:
    moved = BOTH.rewrap(OLD.seal(b"secret", purpose="p"), purpose="p")
    assert NEW.open(moved, purpose="p") == b"secret"
    with pytest.raises(WrongMasterKey):
        OLD.open(moved, purpose="p")


def test_a_damaged_record_is_not_rewrapped() -> None:
    sealed = OLD.seal(b"secret", purpose="p")
    with pytest.raises(Tampered):
        BOTH.rewrap(sealed[:-1] + bytes([sealed[-1] ^ 1]), purpose="p")


def test_derived_keys_differ_by_label_and_by_master_and_stay_reachable() -> None:
    assert NEW.derive("audit") == MasterKeys(MASTER).derive("audit")
    assert len({NEW.derive("audit"), NEW.derive("csrf"), OLD.derive("audit"), MASTER}) == 4
    assert BOTH.derive("audit", key_id=OLD.primary_id) == OLD.derive("audit")
    with pytest.raises(WrongMasterKey):
        NEW.derive("audit", key_id=OLD.primary_id)


def test_records_of_another_installation_are_refused_as_a_whole() -> None:
    foreign, own = OLD.seal(b"a", purpose="p"), NEW.seal(b"b", purpose="p")
    with pytest.raises(WrongMasterKey):
        NEW.refuse_foreign_records([foreign])
    NEW.refuse_foreign_records([])
    NEW.refuse_foreign_records([foreign, own])


def test_no_repr_shows_a_master_key() -> None:
    text = repr(BOTH)
    assert NEW.primary_id in text
    assert MASTER.hex()[:8] not in text
    assert not MASTER.hex().startswith(NEW.primary_id)


def test_a_new_master_key_is_accepted_and_never_the_same() -> None:
    assert len(parse_master_key(new_master_key())) == 32
    assert new_master_key() != new_master_key()


@pytest.mark.parametrize(
    "text",
    [
        MASTER.hex(),
        MASTER.hex().upper(),
        "Bw8XHycvNz9HT1dfZ293f4ePl5-nr7e_x8_X3-fvAAE",
        "Bw8XHycvNz9HT1dfZ293f4ePl5-nr7e_x8_X3-fvAAE=",
        "Bw8XHycvNz9HT1dfZ293f4ePl5+nr7e/x8/X3+fvAAE=",
        "  Bw8XHycvNz9HT1dfZ293f4ePl5+nr7e/x8/X3+fvAAE\n",
    ],
)
def test_a_master_key_may_be_written_in_hex_base64_or_base64url(text: str) -> None:
    assert parse_master_key(text) == MASTER


@pytest.mark.parametrize(
    "text",
    [
        "",
        "changeme",
        "changeme" * 5 + "cha",
        "A" * 43,
        "00" * 32,
        "ab" * 32,
        "0123456789abcdef" * 4,
        bytes(range(32)).hex(),
        (MASTER[:16] * 2).hex(),
        (b"\xff\x01\x80\x40\x22" * 7)[:32].hex(),
        b"Quick foxes jump over lazy Dogs!".hex(),
        MASTER.hex()[:30] + "  " + MASTER.hex()[32:],
        MASTER.hex()[:-2],
        MASTER.hex() + "00",
        MASTER.hex()[:-2] + " 1",
        "Bw8XHycvNz9HT1dfZ293f4ePl5-nr7e_x8_X3-fvAAF",  # unused bits set at the end
        "Bw8XHycvNz9HT1dfZ293f4ePl5-nr7e_x8_X3-fvAA",
        "Bw8XHycvNz9HT1dfZ29 3f4ePl5-nr7e_x8_X3-fvAAE",
        "Ｂw8XHycvNz9HT1dfZ293f4ePl5-nr7e_x8_X3-fvAAE",  # noqa: RUF001 - a fullwidth letter
    ],
)
def test_a_short_sloppy_or_made_up_master_key_is_refused(text: str) -> None:
    with pytest.raises(Misconfigured) as error:
        parse_master_key(text)
    assert text not in error.value.detail or not text


def test_a_master_key_of_another_length_is_refused() -> None:
    with pytest.raises(Misconfigured):
        MasterKeys(MASTER[:16])
