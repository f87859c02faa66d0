"""What each page must be told: one frozen record per template, so that handlers are checked by their types.

`pages.show(request, SignInContext(...))` finds the template by the record. Times are Unix seconds, 0 for
never; every text is shown escaped, and everything that is said by us comes from the locales.
Form fields of each page stand beside its path in paths.py; every form also carries `csrf`, and those on the
way through a sign-in carry `interaction`. The account page has its own module, account_contexts.py.
"""

from dataclasses import dataclass
from typing import ClassVar

from gatehouse.sign_in_flow.flows import NetworkNearness
from gatehouse.web.pages.vocabulary import FactorMethod, GameEnd, MailPurpose, Notice, PageProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContext:
    template: ClassVar[str]
    status: ClassVar[int] = 200


# -- the installation ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupContext(PageContext):
    template = "setup.html"

    token: str
    login: str = ""
    nick: str = ""
    problem: PageProblem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupDoneContext(PageContext):
    template = "setup_done.html"

    nick: str
    login: str
    user_id: str
    sample_app: str = ""  # the command that starts it; none where samples make no sense
    sample_game: str = ""


# -- the way in ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInContext(PageContext):
    template = "sign_in.html"

    csrf: str
    interaction: str = ""
    login: str = ""  # typed before, or login_hint
    problem: PageProblem | None = None
    notice: Notice | None = None
    application: str = ""  # its name; empty when it is only about the account
    returns_to: str = ""  # the host the browser is sent back to
    phone_link: str = ""  # of a game: where a phone goes on instead
    register_enabled: bool = False
    passkeys_enabled: bool = True
    passkey_options: str = ""  # JSON of PublicKeyCredentialRequestOptions, without allowCredentials


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadySignedInContext(PageContext):
    template = "already_signed_in.html"

    csrf: str
    interaction: str
    nick: str
    login: str
    application: str = ""
    returns_to: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondFactorContext(PageContext):
    template = "second_factor.html"

    csrf: str
    interaction: str
    method: FactorMethod  # the one shown: the last used, or the chosen one
    others: tuple[FactorMethod, ...] = ()
    application: str = ""
    sent_to: str = ""  # with EMAIL: the address, partly hidden
    passkey_options: str = ""  # with PASSKEY: JSON of PublicKeyCredentialRequestOptions
    problem: PageProblem | None = None
    notice: Notice | None = None
    mail_is_logged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentContext(PageContext):
    template = "consent.html"

    csrf: str
    interaction: str
    application: str  # its name
    owner: str = ""  # the title of the project it belongs to
    returns_to: str  # the host the browser is sent back to
    nick: str
    login: str
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortTokenContext(PageContext):
    """`/?stoken=…`: the POST spends it (R1)."""

    template = "short_token.html"

    csrf: str
    stoken: str
    nick: str
    login: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReauthenticationContext(PageContext):
    """Before an act that needs a fresh proof."""

    template = "confirm.html"

    csrf: str
    interaction: str
    login: str
    has_password: bool
    methods: tuple[FactorMethod, ...] = ()  # TOTP, EMAIL or RECOVERY show a code field, PASSKEY its button
    passkey_options: str = ""
    problem: PageProblem | None = None
    notice: Notice | None = None


# -- registration and recovery ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterContext(PageContext):
    template = "register.html"

    csrf: str
    interaction: str = ""
    login: str = ""
    nick: str = ""
    domains: tuple[str, ...] = ()  # the only ones allowed; empty for any
    problem: PageProblem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckMailContext(PageContext):
    """The same words whether or not there is such an account (LG-05)."""

    template = "check_mail.html"

    csrf: str
    purpose: MailPurpose
    login: str  # as it was typed
    minutes: int = 30  # how long the link lives
    mail_is_logged: bool = False  # no SMTP is configured: say where the mail is


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyEmailContext(PageContext):
    template = "verify_email.html"

    csrf: str
    token: str
    login: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailVerifiedContext(PageContext):
    template = "email_verified.html"

    login: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InviteContext(PageContext):
    template = "invite.html"

    csrf: str
    token: str
    login: str
    nick: str = ""
    problem: PageProblem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgotContext(PageContext):
    template = "forgot.html"

    csrf: str
    login: str = ""
    problem: PageProblem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetContext(PageContext):
    template = "reset.html"

    csrf: str
    token: str
    login: str
    problem: PageProblem | None = None


# -- second factors -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TotpSetupContext(PageContext):
    template = "totp_setup.html"

    csrf: str
    uri: str  # otpauth://…, shown as QR code
    secret: str  # base32, shown in groups of four
    problem: PageProblem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PasskeySetupContext(PageContext):
    template = "passkey_setup.html"

    csrf: str
    passkey_options: str  # JSON of PublicKeyCredentialCreationOptions
    name: str = ""
    problem: PageProblem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryCodesContext(PageContext):
    template = "recovery_codes.html"

    codes: tuple[str, ...]
    login: str


# -- ends ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredContext(PageContext):
    template = "expired.html"
    status = 400

    start_again: str  # a path of ours that keeps the request
    is_stale: bool = False  # somebody signed in or out since, in another tab


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLinkContext(PageContext):
    """A mailed link that was used, is too old, or was followed by a newer one: all alike."""

    template = "link_dead.html"
    status = 403

    start_again: str = ""  # where a new one can be had; only the inviter can send an invitation again


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorContext(PageContext):
    """`title` and `message` in English; other languages have their own for the status, or for that message."""

    template = "error.html"

    code: int  # the HTTP status
    title: str
    message: str
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredTarget:
    """A registered redirect URI or host beside the received one: alike up to a place, other from there."""

    same: str
    other: str
    received_other: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientErrorContext(PageContext):
    """A request that cannot be answered by redirect. The second half is for whoever can mend the client."""

    template = "client_error.html"
    status = 400

    request_id: str
    application: str = ""  # its name, when the client is known
    reason: str = ""  # in English, for developers; empty for everybody else
    client_id: str = ""
    received: str = ""
    registered: tuple[RegisteredTarget, ...] = ()
    by_host: bool = False  # the registered ones are hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedOutContext(PageContext):
    template = "signed_out.html"

    everywhere: bool = False
    application: str = ""
    return_to: str = ""  # a registered address of that application


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottledContext(PageContext):
    template = "throttled.html"
    status = 429

    retry_after: int  # seconds
    start_again: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DenialReason:
    """What only whoever administers is told."""

    by: str  # the words are `denied.why_<by>`
    missing: str = ""  # the right, where it is one that is missing
    check: str  # the page of the console that explains it


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessDeniedContext(PageContext):
    template = "access_denied.html"
    status = 403

    csrf: str = ""
    interaction: str = ""  # empty: there is no way to go on with another account
    application: str
    login: str
    ask: tuple[str, ...] = ()  # whom to ask: names or addresses
    return_to: str = ""  # where the application is told `access_denied`
    on_device: bool = False  # which was told already
    why: DenialReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceContext(PageContext):
    template = "maintenance.html"
    status = 503

    retry_after: int = 0


# What the pages of single sign-on beyond the sign-in must be told: another device, a game, and signing out.


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
