"""What can go wrong with keys. No error ever carries key material."""

from gatehouse.kernel.errors import BadInput, Conflict, GatehouseError, Misconfigured, Unavailable


class WrongMasterKey(Misconfigured):
    """A record was sealed under a master key that was not given to this process."""

    public = "Stored secrets are encrypted with another master key."


class Tampered(GatehouseError):
    """A sealed record does not authenticate: damaged, moved to another place, or forged."""

    public = "A stored secret is damaged."


class KeysChanged(Conflict):
    """The stored keys are no longer the ones the decision was made from; nothing was written."""

    public = "The signing keys were changed in the meantime."


class RotationPending(Conflict):
    public = "A new key is already published and not active yet."


class NoSigningKey(Unavailable):
    """There is no usable key to sign with: not made yet, or refused because it is damaged."""


class BadPublicKey(BadInput):
    """The detail says what is wrong with the key, in words that are safe to show."""

    public = "The public key is not valid."
