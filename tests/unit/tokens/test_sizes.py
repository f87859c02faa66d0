"""Tokens of maximal length stay within the limits of headers and URLs (TK-31)."""

import msgspec
import pytest

from gatehouse.accounts.field_checks import MAX_NICK_LENGTH
from gatehouse.accounts.fixed_ips import MAX_RANGES, check_fixed_ips
from gatehouse.accounts.model import check_login
from gatehouse.forward_auth.authentication import MAX_ROLES_LENGTH
from gatehouse.keys.model import Algorithm
from gatehouse.tokens.claim_sizes import (
    MAX_ID_TOKEN,
    MAX_ISSUED_TOKEN,
    MAX_NONCE_BYTES,
    MAX_PERM,
    MAX_PUBLIC_KEY_BYTES,
    MAX_TAG_BYTES,
    base64_length,
    claims_that_fit,
    json_length,
    payload_bytes_left,
    tag_claims,
    without_long_perm,
)
from gatehouse.tokens.claims import (
    Claims,
    ExchangedIdClaims,
    ExchangedUserClaims,
    ForwardAuthClaims,
    IdClaims,
    LogoutClaims,
    LogoutEvent,
    OutboundServiceClaims,
    RefreshClaims,
    ServiceAccountClaims,
    StaticServiceClaims,
    TokenTooLong,
    UserJwtClaims,
)
from tests.support.tokens import TokenSetup, example_claims

LATEST = 2**53 - 1
LABEL = "a" * 61
ISSUER = f"https://{LABEL}.{LABEL}.{LABEL}.{LABEL}.abcde:65535"
USER_ID = "9" * 19
CLIENT_ID = "c" * 64
NICK = "🙂" * MAX_NICK_LENGTH
EMAIL = check_login(f"{'🙂' * 64}@{LABEL}.{LABEL}.{LABEL}.abc")
RANGES = check_fixed_ips([f"fc00:1111:2222:3333:4444:5555:6666:{number:x}/128" for number in range(7_000, 7_032)])
CREATOR = "2001:1111:2222:3333:4444:5555:6666:7777/128"
TAGS = "t" * MAX_TAG_BYTES
KEY = "k" * MAX_PUBLIC_KEY_BYTES
TIMES = {"iss": ISSUER, "iat": LATEST, "exp": LATEST}
PERSON = TIMES | {
    "uid": USER_ID,
    "sub": USER_ID,
    "nick": NICK,
    "slt": "s" * 22,
    "loc": "l" * 64,
    "tgs": TAGS,
    "cntry": "DE",
    "lng": "abc-12345678-12345678-12345678",
    "rev": LATEST,
}
AT_LIMITS: tuple[Claims, ...] = (
    msgspec.convert(
        PERSON
        | {
            "auth": "passkey",
            "fac": "f" * 64,
            "pub_key": KEY,
            "fip": (*RANGES, CREATOR),
            "app_perm": 2**53,
            "perm_omitted": True,
            "aud": "9" * 18,
        },
        UserJwtClaims,
    ),
    msgspec.convert(PERSON | {"auth": "openid", "azp": CLIENT_ID, "gid": "g" * 64}, ExchangedUserClaims),
    ExchangedIdClaims(iss=ISSUER, iat=LATEST, exp=LATEST, sub=USER_ID, aud=(ISSUER,), email=EMAIL, nickname=NICK),
    RefreshClaims(
        iss=ISSUER,
        iat=LATEST,
        exp=LATEST,
        sub=USER_ID,
        aud=(ISSUER, CLIENT_ID),
        azp=CLIENT_ID,
        scopes="openid offline_access email profile trust",
        jti=f"{'g' * 64}.{LATEST}",
    ),
    StaticServiceClaims(iss=ISSUER, iat=LATEST, exp=LATEST, aud="9" * 18, jti="j" * 64),
    OutboundServiceClaims(iss=ISSUER, iat=LATEST, exp=LATEST, aud=ISSUER, jti="j" * 64),
    ForwardAuthClaims(
        iss=ISSUER,
        iat=LATEST,
        exp=LATEST,
        sub=USER_ID,
        aud=ISSUER,
        nick=NICK,
        email=EMAIL,
        roles=tuple("r" * 63 for _ in range(MAX_ROLES_LENGTH // 64)),
    ),
    LogoutClaims(
        iss=ISSUER,
        iat=LATEST,
        exp=LATEST,
        sub=USER_ID,
        aud=CLIENT_ID,
        jti="j" * 64,
        sid="s" * 64,
        events=LogoutEvent(),
    ),
    ServiceAccountClaims(
        iss=ISSUER,
        iat=LATEST,
        exp=LATEST,
        uid=USER_ID,
        sub=USER_ID,
        nick=NICK,
        rev=LATEST,
        jti="j" * 64,
        pub_key=KEY,
        fip=tuple(RANGES),
    ),
)
ID_TOKEN = IdClaims(
    iss=ISSUER,
    iat=LATEST,
    exp=LATEST,
    sub=USER_ID,
    aud=(ISSUER, CLIENT_ID),
    azp=CLIENT_ID,
    nonce="n" * MAX_NONCE_BYTES,
    email=EMAIL,
    nickname=NICK,
    auth_time=LATEST,
    at_hash="h" * 43,
    sid="s" * 64,
    claims_omitted=True,
)


def test_the_longest_parts_are_as_long_as_they_may_be() -> None:
    assert (len(ISSUER), len(RANGES), max(map(len, RANGES))) == (267, MAX_RANGES, len(CREATOR))


@pytest.mark.parametrize("claims", AT_LIMITS, ids=lambda claims: type(claims).__name__)
async def test_tk_31_a_token_at_every_limit_at_once_is_under_eight_kilobytes(
    claims: Claims, tokens: TokenSetup
) -> None:
    assert payload_bytes_left(claims, MAX_ISSUED_TOKEN) >= 0, "it must fit with the largest allowed RSA key too"
    assert len(await tokens.signer.sign(claims)) <= MAX_ISSUED_TOKEN


@pytest.mark.parametrize("alg", Algorithm)
async def test_tk_31_an_id_token_at_every_limit_at_once_fits_into_an_address(
    alg: Algorithm, tokens: TokenSetup
) -> None:
    assert payload_bytes_left(ID_TOKEN, MAX_ID_TOKEN) >= 0
    mapped = {f"claim{number}": ["x" * 100] * 100 for number in range(15)} | {"small": ["y" * 100]}
    claims = claims_that_fit(mapped, payload_bytes_left(ID_TOKEN, MAX_ID_TOKEN))
    assert claims == {"small": ["y" * 100]}
    assert len(await tokens.signer.sign(ID_TOKEN, alg=alg, extra_claims=claims)) <= MAX_ID_TOKEN


@pytest.mark.parametrize("length", [0, 1, 2, 3, 700])
async def test_tk_31_what_is_found_to_fit_does(length: int, tokens: TokenSetup) -> None:
    """Exact to the byte: the limits are those of the signer, with an RSA key of 3072 bits."""
    claims = example_claims(IdClaims)
    most = (
        len(await tokens.signer.sign(claims, extra_claims={"a": "x" * length})) + 170
    )  # a key of 2048 bits, a shorter header
    more = {"a": "x" * length}
    assert claims_that_fit(more, payload_bytes_left(claims, most)) == more
    assert claims_that_fit(more, payload_bytes_left(claims, most - 8)) == {}


def perm_of(characters: int) -> tuple[str, ...]:
    """A list that takes that many characters in a token."""
    bare = json_length(("",))
    return ("r" * (characters * 3 // 4 - bare),)


def test_tk_31_perm_is_left_out_above_six_kilobytes_and_the_reader_is_told() -> None:
    claims = example_claims(UserJwtClaims, app_perm=50_001, perm_exp=1)
    just = msgspec.structs.replace(claims, perm=perm_of(MAX_PERM))
    assert base64_length(json_length(just.perm)) == MAX_PERM
    assert without_long_perm(just) is just
    over = without_long_perm(msgspec.structs.replace(claims, perm=perm_of(MAX_PERM + 4)))
    assert (over.perm, over.perm_exp, over.perm_omitted, over.app_perm) == (None, None, True, 50_001)
    assert without_long_perm(claims) is claims


def test_tk_31_perm_is_left_out_of_a_token_that_is_long_without_it() -> None:
    long = AT_LIMITS[0]
    assert isinstance(long, UserJwtClaims)
    claims = without_long_perm(msgspec.structs.replace(long, perm_omitted=False, perm=perm_of(2_000), perm_exp=1))
    assert (claims.perm, claims.perm_exp, claims.perm_omitted) == (None, None, True)


def test_tk_31_tags_that_are_too_long_are_left_out_and_the_reader_is_told() -> None:
    assert tag_claims(TAGS) == {"tgs": TAGS}
    assert tag_claims(f"{TAGS}t") == {"tgs": "", "tgs_omitted": True}
    assert tag_claims('"' * (MAX_TAG_BYTES // 2 + 1)) == {"tgs": "", "tgs_omitted": True}


async def test_tk_31_no_longer_token_is_ever_signed(tokens: TokenSetup) -> None:
    with pytest.raises(TokenTooLong):
        await tokens.signer.sign(example_claims(IdClaims, nonce="n" * 6_000))
