"""Domains below which anyone can have a name, by the list that the library for passkeys contains."""

from contextlib import suppress


def is_public_suffix(host: str) -> bool:
    """Whether names directly below the host belong to different owners, such as those below co.uk or github.io."""
    from fido2.rpid import verify_rp_id  # noqa: PLC0415 - parses the list, which few processes need

    name = unicode_name(host)
    return not verify_rp_id(name, f"https://name.{name}")


def unicode_name(host: str) -> str:
    """Return the host as the list spells it."""
    with suppress(UnicodeError):
        return host.encode().decode("idna")
    return host
