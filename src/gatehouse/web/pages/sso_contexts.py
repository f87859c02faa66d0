"""What the pages of single sign-on beyond the sign-in must be told: another device, and signing out."""

from dataclasses import dataclass

from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.vocabulary import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceContext(PageContext):
    """Type what the device shows (RFC 8628)."""

    template = "device.html"

    csrf: str
    user_code: str = ""
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmSignInContext(PageContext):
    """Before somebody is signed in elsewhere: on a device, in a game."""

    template = "confirm_sign_in.html"

    csrf: str
    interaction: str
    application: str  # its name
    code: str = ""  # what is shown there, to compare
    scopes: tuple[str, ...] = ()
    asked_at: int
    now: int
    address: str
    is_nearby: bool  # asked for from the network this browser is in
    nick: str
    login: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDoneContext(PageContext):
    template = "device_done.html"

    is_signed_in: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SignOutContext(PageContext):
    """A client asks for it and cannot show that it speaks of this person."""

    template = "sign_out.html"

    csrf: str
    nick: str
    login: str
    application: str = ""
    client_id: str = ""
    post_logout_redirect_uri: str = ""
    state: str = ""
