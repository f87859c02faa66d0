"""Tags that only the service sets: what it knows of an account, and how a person can sign in (R1, R10)."""

from typing import Final

SYSTEM_TAGS: Final = frozenset(
    {"email_verified", "phone_verified", "2step", "2step_totp", "2step_passkey", "2step_email", "2step_phone"}
)
GUEST_TAG: Final = "guest"
LINKED_TAG_PREFIX: Final = "linked_"  # and the ID of the provider


def is_service_tag(tag: str) -> bool:
    """Whether a tag says how a person can sign in (R10); it is stored like tags that people set."""
    return tag == GUEST_TAG or tag.startswith(LINKED_TAG_PREFIX)
