"""A user's password and TOTP secret: from what a file gives to what is kept, and back."""

import base64
import binascii
from typing import Final

from msgspec import UNSET, UnsetType

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.model import User
from gatehouse.accounts.password_rules import PasswordRules, refuse_too_long
from gatehouse.accounts.second_factors.model import totp_sealing_purpose
from gatehouse.kernel.digests import constant_time_equal
from gatehouse.kernel.errors import BadInput
from gatehouse.provision.document import Document
from gatehouse.provision.errors import Problems
from gatehouse.provision.sections.section import Context, Options, reveal_secret, sealed_document
from gatehouse.provision.sections.user_entry import FoundUser, WantedUser

TOTP_BYTES: Final = range(10, 65)  # 80 bit is what authenticator apps were first given; SHA-512 takes 64 bytes


async def resolve_user_secrets(
    found: FoundUser, context: Context, options: Options, problems: Problems
) -> WantedUser:
    """Compare the secrets with those that are kept: an equal one is no change, also when it is hashed."""
    password_hash: str | UnsetType | None = UNSET
    sealed_totp: bytes | UnsetType | None = UNSET
    try:
        password_hash = await wanted_hash(found, context, options)
    except BadInput as error:
        problems.add(f"{found.place}.password", str(error))
    try:
        sealed_totp = wanted_totp(found, context, options)
    except BadInput as error:
        problems.add(f"{found.place}.totp_secret", str(error))
    return WantedUser(found=found, password_hash=password_hash, sealed_totp=sealed_totp)


async def wanted_hash(found: FoundUser, context: Context, options: Options) -> str | UnsetType | None:
    given = found.entry.password
    if given is UNSET or given is None:
        return given
    kept = None if found.before is None else found.before.password_hash
    revealed = reveal_secret(given, context, options, purpose=password_purpose(found.user_id))
    if revealed.was_sealed:
        return revealed.text
    if kept is not None and await context.passwords.matches(revealed.text, kept):
        return kept
    refuse_too_long(revealed.text)  # a weak one may be allowed; this one no login would take
    if not options.allow_weak:
        await check_password(revealed.text, found, context.rules)
    return await context.passwords.hash(revealed.text)


async def check_password(password: str, found: FoundUser, rules: PasswordRules) -> None:
    own_words = [word for word in (found.entry.login, found.entry.nick) if word is not UNSET]
    if found.before is not None:
        own_words += [found.before.login or "", found.before.nick]
    try:
        await rules.check(password, *own_words)
    except BadAccount as error:
        raise BadAccount(f"{error}; use --allow-weak to accept it") from None


def wanted_totp(found: FoundUser, context: Context, options: Options) -> bytes | UnsetType | None:
    given = found.entry.totp_secret
    if given is UNSET or given is None:
        return given
    revealed = reveal_secret(given, context, options, purpose=totp_sealing_purpose(found.user_id))
    secret = check_totp(revealed.text)
    kept = None if found.before is None else found.before.sealed_totp
    opened = None if kept is None else context.masters.try_open(kept, purpose=totp_sealing_purpose(found.user_id))
    if opened is not None and constant_time_equal(secret, opened):
        return kept
    return context.masters.seal(secret.encode(), purpose=totp_sealing_purpose(found.user_id))


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


def stored_totp(user: User, context: Context) -> str:
    return context.masters.open(user.sealed_totp or b"", purpose=totp_sealing_purpose(user.user_id)).decode()


def secrets_document(user: User, context: Context) -> Document:
    """Both secrets as an export writes them; null says that there is none."""
    hashed, totp = user.password_hash, user.sealed_totp
    return {
        "password": None
        if hashed is None
        else sealed_document(hashed, context, purpose=password_purpose(user.user_id)),
        "totp_secret": (
            None
            if totp is None
            else sealed_document(stored_totp(user, context), context, purpose=totp_sealing_purpose(user.user_id))
        ),
    }


def password_purpose(user_id: str) -> str:
    return f"password:{user_id}"
