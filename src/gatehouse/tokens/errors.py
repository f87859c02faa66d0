"""Why a token is not accepted. The reason is for the log; the caller learns only that it is invalid."""

from gatehouse.kernel.errors import GatehouseError


class InvalidToken(GatehouseError):
    public = "The token is invalid."


class ExpiredToken(InvalidToken):
    """Everything else about the token is right."""
