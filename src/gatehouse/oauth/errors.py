"""What can go wrong with clients."""

from gatehouse.kernel.errors import BadInput, Conflict, NotFound


class ClientNotFound(NotFound):
    public = "There is no such client."


class ClientExists(Conflict):
    public = "A client of this id exists, or once existed."


class ClientChanged(Conflict):
    public = "The client was changed meanwhile."


class BadClient(BadInput):
    """A field of a client is not acceptable; the detail says which and why, for its writer."""
