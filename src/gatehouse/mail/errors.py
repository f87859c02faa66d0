"""What can go wrong with mail."""

from gatehouse.kernel.errors import BadInput, GatehouseError


class NotMailable(BadInput):
    public = "Email cannot be sent to this address."


class BadMessage(GatehouseError):
    """A letter was to be filled with other values than it needs, or with a link that is none of ours."""


class Undelivered(GatehouseError):
    """The server did not take this letter now; the detail says why, without the recipient's address."""

    public = "The email could not be delivered."


class RecipientRefused(Undelivered):
    """The server will never take a letter for this recipient."""

    public = "The mail server rejected the recipient."


class ServerUnusable(Undelivered):
    """The server cannot be reached, does not answer or does not let us in: no letter can be delivered now."""

    public = "The mail server is not available."
