import hashlib
import json

import msgspec
import pytest

from gatehouse.tokens.claims import (
    Claims,
    ExchangedUserClaims,
    ServiceAccountClaims,
    StaticServiceClaims,
    UserJwtClaims,
    factor_digest,
    location_digest,
    typ_of,
)
from tests.support.tokens import CLASSES, EXAMPLES, example_claims


@pytest.mark.parametrize("kind", CLASSES)
def test_the_payload_is_what_was_given_and_typ_and_nothing_else(kind: type[Claims]) -> None:
    payload = json.loads(msgspec.json.encode(example_claims(kind)))
    assert payload.pop("typ", None) == typ_of(kind)
    assert payload == json.loads(json.dumps(EXAMPLES[kind]))


def test_each_class_has_the_typ_of_the_interface() -> None:
    assert {kind.__name__: typ_of(kind) for kind in CLASSES} == {
        "UserJwtClaims": None,
        "ExchangedUserClaims": "exchanged_token",
        "IdClaims": "id_token",
        "OidcIdClaims": None,
        "ExchangedIdClaims": "id_token",
        "RefreshClaims": "refresh_token",
        "StaticServiceClaims": "service_jwt",
        "GeneratedServiceClaims": "service_jwt",
        "ServiceAccountClaims": "service_account",
    }


@pytest.mark.parametrize("kind", [UserJwtClaims, ExchangedUserClaims, ServiceAccountClaims])
def test_uid_and_sub_name_one_person(kind: type[Claims]) -> None:
    with pytest.raises(msgspec.ValidationError):
        example_claims(kind, sub="1")


@pytest.mark.parametrize("aud", ["0", "01", " 1", "1 ", "1\n", "1e0", "-1", "\uff11", "https://sso.example", ""])
def test_an_application_is_named_by_its_canonical_number(aud: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        example_claims(StaticServiceClaims, aud=aud)


def test_an_exchanged_token_has_no_place_for_a_factor() -> None:
    with pytest.raises(msgspec.ValidationError):
        example_claims(ExchangedUserClaims, fac="f" * 64)


def test_factor_and_location_are_lower_case_hex_of_sha_256_over_value_and_salt() -> None:
    assert factor_digest("device", "salt") == hashlib.sha256(b"devicesalt").hexdigest()
    assert location_digest("DE", "salt") == hashlib.sha256(b"DEsalt").hexdigest()
    assert factor_digest("gerät", "s") == hashlib.sha256("geräts".encode()).hexdigest()
