"""What shapes the answer of a login, by whatever way it comes: the optional fields of interface §4.3."""

from typing import Annotated, Final

import msgspec

from gatehouse.accounts.fixed_ips import check_fixed_ips, single_address_range
from gatehouse.accounts.login_data import LoginOptions
from gatehouse.kernel.errors import BadInput
from gatehouse.keys.errors import BadPublicKey
from gatehouse.keys.public_keys import parse_rsa_public_key
from gatehouse.tokens.sizes import MAX_PUBLIC_KEY_BYTES, json_length

MAX_FACTOR_LENGTH: Final = 1_024  # characters
MAX_DISTR_LENGTH: Final = 1_024
OFF: Final = "0"
ON: Final = "1"


Switch = Annotated[str, msgspec.Meta(extra_json_schema={"enum": [OFF, ON]})]  # said here, refused by check_switches


class LoginFields(msgspec.Struct, frozen=True, kw_only=True):
    factor: str = ""
    jwt_public_key: str = ""
    distr: str = ""
    app_id: int = 0
    gapp_id: int = 0
    nojwt: Switch = OFF
    service_jwt: str = ""
    short_token: Switch = OFF
    fixed_ip: Switch = OFF
    fixed_ips: list[str] = []
    fixed_ips_form: list[str] = msgspec.field(default_factory=list, name="fixed_ips[]")
    meta: Switch = OFF
    with_email: str = ""


def read_login_options(ask: LoginFields, address: str) -> LoginOptions:
    check_switches(ask, "nojwt", "short_token", "fixed_ip", "meta")
    if min(ask.app_id, ask.gapp_id) < 0:
        raise BadInput("an application ID must not be negative")
    if len(ask.factor) > MAX_FACTOR_LENGTH:
        raise BadInput(f"factor: at most {MAX_FACTOR_LENGTH} characters")
    if len(ask.distr) > MAX_DISTR_LENGTH:
        raise BadInput(f"distr: at most {MAX_DISTR_LENGTH} characters")
    fixed = check_fixed_ips([*ask.fixed_ips, *ask.fixed_ips_form])
    if ask.fixed_ip == ON:
        fixed = tuple(dict.fromkeys([*fixed, single_address_range(address)]))
    return LoginOptions(
        factor=ask.factor or None,
        jwt_public_key=check_public_key("jwt_public_key", ask.jwt_public_key),
        app_id=ask.app_id,
        gapp_id=ask.gapp_id,
        nojwt=ask.nojwt == ON,
        short_token=ask.short_token == ON,
        fixed_ips=fixed,
        meta=ask.meta == ON,
        with_email=ask.with_email,
        service_jwt=ask.service_jwt,
    )


def check_switches(ask: msgspec.Struct, *names: str) -> None:
    for name in names:
        if getattr(ask, name) not in (OFF, ON):
            raise BadInput(f"{name} must be 0 or 1")


def check_public_key(name: str, text: str) -> str | None:
    """The key as it was given, once it is known to be one."""
    if not text:
        return None
    if json_length(text) > MAX_PUBLIC_KEY_BYTES:
        raise BadInput(f"{name}: the key has more than {MAX_PUBLIC_KEY_BYTES} bytes")
    try:
        parse_rsa_public_key(text)
    except BadPublicKey as error:
        raise BadInput(f"{name}: {error.detail or error.public}") from error
    return text
