"""What an account takes over of a guest, apart from roles and restrictions (R10)."""

from gatehouse.accounts.field_checks import MAX_TAG_LENGTH, MAX_TAGS
from gatehouse.accounts.merge import MAX_NAMED, dropped_text, tags_with_room


def test_tags_are_taken_over_while_tokens_have_room_for_them() -> None:
    own = frozenset(letter * MAX_TAG_LENGTH for letter in "abcdefghijklm")
    assert tags_with_room(own, frozenset({"vip", "x" * MAX_TAG_LENGTH, "a" * MAX_TAG_LENGTH})) == (
        ["vip"],
        ["x" * MAX_TAG_LENGTH],
    )
    many = frozenset(map(str, range(MAX_TAGS - 1)))
    assert tags_with_room(many, frozenset({"vip", "beta"})) == (["beta"], ["vip"])


def test_record_counts_what_it_does_not_name() -> None:
    lost = [f"role r{number}" for number in range(MAX_NAMED + 2)]
    assert dropped_text(lost[:2]) == "role r0; role r1"
    assert dropped_text(lost[:MAX_NAMED]).endswith("; role r99")
    assert dropped_text(lost).endswith("; role r99; and 2 more")
