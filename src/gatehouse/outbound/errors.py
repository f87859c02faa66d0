"""Why a call outside came to nothing. The public half names no address: who set it may not see our network."""

from gatehouse.kernel.errors import GatehouseError


class CallFailed(GatehouseError):
    public = "The address could not be called."


class AddressRefused(CallFailed):
    """Not one we call: inside a network, unencrypted, or no web address at all (checklist AP-08)."""

    public = "The address is not one that may be called."


class Unreachable(CallFailed):
    """No such name, nobody listening, or no certificate that proves the name."""

    public = "The address could not be reached."


class TooSlow(CallFailed):
    public = "The address did not answer in time."


class ResponseTooLarge(CallFailed):
    public = "The answer is larger than is read."


class BadResponse(CallFailed):
    public = "What the address answered is not HTTP as we read it."
