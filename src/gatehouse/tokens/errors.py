"""Why a token is not accepted. The reason is for the log; the caller learns only that it is invalid."""

from gatehouse.kernel.errors import GatehouseError


class InvalidToken(GatehouseError):
    public = "The token is invalid."


class TokenTooLong(GatehouseError):
    """A token to be signed is longer than any of ours may be; a limit is missing where its parts are taken in."""


class ExpiredToken(InvalidToken):
    """Everything else about the token is right."""
