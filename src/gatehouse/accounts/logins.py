"""A login is an e-mail address, kept as written and compared in one spelling."""

import re
from typing import Final

from gatehouse.accounts.errors import BadAccount
from gatehouse.kernel.text import is_plain_line, nfc

MAX_LOGIN_LENGTH: Final = 254  # RFC 5321 §4.5.3.1.3, less the angle brackets
MAX_LOCAL_LENGTH: Final = 64
# Dots apart, anything that needs no quoting (RFC 5322 §3.2.3), and letters of any script.
LOCAL_PART: Final = re.compile(r"[^\s\"(),:;<>@\[\\\].]+(\.[^\s\"(),:;<>@\[\\\].]+)*")
DOMAIN_LABEL: Final = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
DOMAIN: Final = re.compile(rf"{DOMAIN_LABEL}(\.{DOMAIN_LABEL})*", re.ASCII)


def check_login(text: str) -> str:
    """Return the login as it is kept; a domain in another script must be given in its ASCII form."""
    login = nfc(text.strip(" "))
    local, at, domain = login.rpartition("@")
    well_formed = (
        at
        and len(login) <= MAX_LOGIN_LENGTH
        and len(local) <= MAX_LOCAL_LENGTH
        and is_plain_line(login)
        and LOCAL_PART.fullmatch(local)
        and DOMAIN.fullmatch(_ascii_lower(domain))
    )
    if not well_formed:
        raise BadAccount("the login must be an email address")
    return login


def login_key(login: str) -> str:
    """The spelling all spellings of one login share: case is ignored in both halves."""
    local, _, domain = nfc(login.strip(" ")).rpartition("@")
    return f"{nfc(local.casefold())}@{_ascii_lower(domain)}"


def _ascii_lower(text: str) -> str:
    # str.lower would turn the Kelvin sign into a plain k: another domain under the same name.
    return text.lower() if text.isascii() else text
