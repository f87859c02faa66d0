"""Why a call outside came to nothing. The public half names no address: who set it may not see our network."""

from gatehouse.kernel.errors import GatehouseError


class CallFailed(GatehouseError):
    public = "The URL could not be called."


class AddressRefused(CallFailed):
    """Not one we call: inside a network, unencrypted, or no web address at all (checklist AP-08)."""

    public = "This URL is not allowed."


class Unreachable(CallFailed):
    """No such name, nobody listening, or no certificate that proves the name."""

    public = "The URL could not be reached."


class TooSlow(CallFailed):
    public = "The URL did not respond in time."


class ResponseTooLarge(CallFailed):
    public = "The response is too large."


class BadResponse(CallFailed):
    public = "The response is not valid HTTP."
