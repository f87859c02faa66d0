"""What the pages of single sign-on beyond the sign-in must be told: another device, a game, and signing out."""

from dataclasses import dataclass

from gatehouse.interaction.confirming import NetworkNearness
from gatehouse.web.pages.contexts import DenialReason, PageContext
from gatehouse.web.pages.vocabulary import GameEnd, PageProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceContext(PageContext):
    """Type what the device shows (RFC 8628)."""

    template = "device.html"

    csrf: str
    user_code: str = ""
    problem: PageProblem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmSignInContext(PageContext):
    """Before somebody is signed in on a device."""

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
class ConfirmGameContext(PageContext):
    """Before somebody is signed in in a game (R4)."""

    template = "confirm_game.html"

    csrf: str
    interaction: str
    gsid: str
    application: str = ""  # its name, when the game names one
    choices: tuple[str, ...] = ()  # one of them is shown by the game
    asked_at: int
    now: int
    place: str  # where it was asked for from: a name, or else the address
    nearness: NetworkNearness
    is_waited_for: bool
    phone_link: str
    nick: str
    login: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GameEndContext(PageContext):
    template = "game_end.html"

    end: GameEnd
    gsid: str = ""  # while there is something to follow
    until: str = ""  # the words of its state that change the page


@dataclass(frozen=True, slots=True, kw_only=True)
class GameDeniedContext(PageContext):
    template = "game_denied.html"
    status = 403

    application: str = ""
    login: str
    ask: str = ""  # whom: the title of the project it belongs to
    why: DenialReason | None = None


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
