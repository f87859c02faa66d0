"""User names made from nicks."""

import pytest

from gatehouse.accounts.field_checks import check_username
from gatehouse.accounts.profile_fields import username_candidates


@pytest.mark.parametrize(
    ("nick", "first"),
    [("Anna", "anna"), ("Ännchen Berg!", "annchen-berg"), ("x" * 64, "x" * 32), ("Mc.Fly_2", "mc-fly-2")],
)
def test_first_candidate_is_the_nick_in_plain_letters(nick: str, first: str) -> None:
    assert username_candidates(nick)[0] == first


@pytest.mark.parametrize("nick", ["Anna", "x" * 64, "安娜", "12345", "admin", "A", "--", "a" * 27 + " " * 9 + "b"])
def test_every_candidate_is_a_valid_user_name_and_the_last_ones_are_random(nick: str) -> None:
    candidates = username_candidates(nick)
    assert [check_username(name) for name in candidates] == list(candidates)
    assert len(candidates) >= 3
    assert username_candidates(nick)[-1] != candidates[-1]
