"""Which factors an account has, and which one is requested first."""

import pytest

from gatehouse.accounts.second_factors.model import Factor, FactorOverview, enabled_factors, factors_by_last_use
from gatehouse.accounts.second_factors.verification import possible_factors
from tests.support.builders import a_user

ALL = a_user(sealed_totp=b"sealed", passkeys=2, email_code=True)


@pytest.mark.parametrize(
    ("fields", "factors", "tags"),
    [
        ({}, (), set()),
        ({"sealed_totp": b"sealed"}, (Factor.TOTP,), {"2step", "2step_totp"}),
        ({"passkeys": 1}, (Factor.PASSKEY,), {"2step", "2step_passkey"}),
        ({"email_code": True}, (Factor.EMAIL,), {"2step", "2step_email"}),
        ({"phone_code": True, "phone_closed": True}, (Factor.PHONE,), {"2step", "2step_phone"}),
    ],
)
def test_the_tags_follow_the_factors(fields: dict[str, object], factors: tuple[Factor, ...], tags: set[str]) -> None:
    user = a_user(**fields)
    assert enabled_factors(user) == factors
    assert user.system_tags == tags


def test_the_method_last_used_comes_first() -> None:
    assert factors_by_last_use(ALL, FactorOverview()).methods == (Factor.TOTP, Factor.PASSKEY, Factor.EMAIL)
    used = FactorOverview(totp_used_at=100, passkey_used_at=200, recovery_left=3)
    assert factors_by_last_use(ALL, used).methods == (Factor.PASSKEY, Factor.TOTP, Factor.EMAIL)


def test_recovery_is_offered_while_codes_are_left_and_is_never_a_factor() -> None:
    assert factors_by_last_use(ALL, FactorOverview(recovery_left=1)).accepted_factors[-1] is Factor.RECOVERY
    assert Factor.RECOVERY not in factors_by_last_use(ALL, FactorOverview()).accepted_factors
    assert Factor.RECOVERY not in factors_by_last_use(ALL, FactorOverview(recovery_left=1)).methods


@pytest.mark.parametrize(
    ("otp", "method", "tried"),
    [
        ("123456", None, [Factor.TOTP, Factor.EMAIL]),
        ("123456", Factor.TOTP, [Factor.TOTP]),
        ("123456", Factor.EMAIL, [Factor.EMAIL]),
        ("123456", Factor.RECOVERY, []),
        ("7k2m9-x0q1z", None, [Factor.RECOVERY]),
        ("7k2m9-x0q1z", Factor.TOTP, []),
        ("123456", Factor.PASSKEY, []),
        ("12345", None, []),
        ("", None, []),
    ],
)
def test_the_shape_says_what_a_code_can_be(otp: str, method: Factor | None, tried: list[Factor]) -> None:
    assert possible_factors(ALL, otp, method) == tried


def test_a_factor_that_is_not_enabled_is_not_tried() -> None:
    assert possible_factors(a_user(), "123456", None) == []
    assert possible_factors(a_user(email_code=True), "123456", None) == [Factor.EMAIL]
