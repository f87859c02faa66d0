"""A user's password and TOTP secret: from what a file gives to what is kept, and back."""

import base64
import binascii
from typing import Final

from msgspec import UNSET, UnsetType

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.model import User
from gatehouse.accounts.password_rules import PasswordRules, refuse_too_long
from gatehouse.accounts.second_factors.model import totp_purpose
from gatehouse.kernel.digests import same_secret
from gatehouse.kernel.errors import BadInput
from gatehouse.provision.document import Document
from gatehouse.provision.errors import Problems
from gatehouse.provision.sections.section import Terms, Tools, reveal, sealed
from gatehouse.provision.sections.user_entry import FoundUser, WantedUser

TOTP_BYTES: Final = range(10, 65)  # 80 bit is what authenticator apps were first given; SHA-512 takes 64 bytes


async def settled(found: FoundUser, tools: Tools, terms: Terms, problems: Problems) -> WantedUser:
    """Compare the secrets with those that are kept: an equal one is no change, also when it is hashed."""
    password_hash: str | UnsetType | None = UNSET
    sealed_totp: bytes | UnsetType | None = UNSET
    try:
        password_hash = await wanted_hash(found, tools, terms)
    except BadInput as error:
        problems.add(f"{found.place}.password", str(error))
    try:
        sealed_totp = wanted_totp(found, tools, terms)
    except BadInput as error:
        problems.add(f"{found.place}.totp_secret", str(error))
    return WantedUser(found=found, password_hash=password_hash, sealed_totp=sealed_totp)


async def wanted_hash(found: FoundUser, tools: Tools, terms: Terms) -> str | UnsetType | None:
    given = found.entry.password
    if given is UNSET or given is None:
        return given
    kept = None if found.before is None else found.before.password_hash
    revealed = reveal(given, tools, terms, purpose=password_purpose(found.user_id))
    if revealed.was_sealed:
        return revealed.text
    if kept is not None and await tools.passwords.matches(revealed.text, kept):
        return kept
    refuse_too_long(revealed.text)  # a weak one may be allowed; this one no login would take
    if not terms.allow_weak:
        await check_password(revealed.text, found, tools.rules)
    return await tools.passwords.hash(revealed.text)


async def check_password(password: str, found: FoundUser, rules: PasswordRules) -> None:
    own_words = [word for word in (found.entry.login, found.entry.nick) if word is not UNSET]
    if found.before is not None:
        own_words += [found.before.login or "", found.before.nick]
    try:
        await rules.check(password, *own_words)
    except BadAccount as error:
        raise BadAccount(f"{error}; use --allow-weak to accept it") from None


def wanted_totp(found: FoundUser, tools: Tools, terms: Terms) -> bytes | UnsetType | None:
    given = found.entry.totp_secret
    if given is UNSET or given is None:
        return given
    revealed = reveal(given, tools, terms, purpose=totp_purpose(found.user_id))
    secret = check_totp(revealed.text)
    kept = None if found.before is None else found.before.sealed_totp
    opened = None if kept is None else tools.masters.opened(kept, purpose=totp_purpose(found.user_id))
    if opened is not None and same_secret(secret, opened):
        return kept
    return tools.masters.seal(secret.encode(), purpose=totp_purpose(found.user_id))


def check_totp(text: str) -> str:
    """The secret in the one spelling that is kept: base32 in capitals, no spaces, no padding."""
    secret = text.replace(" ", "").rstrip("=").upper()
    try:
        raw = base64.b32decode(secret + "=" * (-len(secret) % 8))
    except (binascii.Error, ValueError):
        raise BadAccount("must be base32: the letters A to Z and the digits 2 to 7") from None
    if len(raw) not in TOTP_BYTES:
        raise BadAccount(f"must have {TOTP_BYTES[0]} to {TOTP_BYTES[-1]} bytes, not {len(raw)}")
    return secret


def kept_totp(user: User, tools: Tools) -> str:
    return tools.masters.open(user.sealed_totp or b"", purpose=totp_purpose(user.user_id)).decode()


def secrets_document(user: User, tools: Tools) -> Document:
    """Both secrets as an export writes them; null says that there is none."""
    hashed, totp = user.password_hash, user.sealed_totp
    return {
        "password": None if hashed is None else sealed(hashed, tools, purpose=password_purpose(user.user_id)),
        "totp_secret": (
            None if totp is None else sealed(kept_totp(user, tools), tools, purpose=totp_purpose(user.user_id))
        ),
    }


def password_purpose(user_id: str) -> str:
    return f"password:{user_id}"
