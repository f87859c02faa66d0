"""An application's access key (interface §2.6)."""

from gatehouse.fields.secrets import SecretBytes, SecretRecord


class AccessKey(SecretRecord, frozen=True, kw_only=True):
    key_id: str
    application_id: int
    digest: SecretBytes  # SHA-256 of the value, for lookups
    sealed: SecretBytes  # the value itself, for checking a Signature (R6)
    comment: str
    created_at: int
    modified_at: int
    last_used: int = 0  # 0: never; at most one write a minute


def access_key_purpose(key_id: str) -> str:
    """Return the sealing purpose of an access key."""
    return f"access-key:{key_id}"
