"""The context of each page: one frozen record per template, so that types check the handlers.

`pages.render(request, SignInContext(...))` finds the template by the record. Times are Unix seconds, 0 for never;
every text is escaped, and fixed texts come from the locales. The form fields of each page are listed beside its
path in paths.py; every form also has `csrf`, and forms of a sign-in have `interaction`. The account page has its
own module, account_contexts.py.
"""

from dataclasses import dataclass
from typing import ClassVar

from gatehouse.accounts.address_proofs.model import ENDS_NOTHING, EndedMethods
from gatehouse.sign_in_flow.flows import ConsentRequest, NetworkNearness
from gatehouse.sign_in_flow.model import DestinationLink, FormPost
from gatehouse.throttle.proof_of_work import Puzzle
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
    sample_app: str = ""  # the command that starts it; empty where samples make no sense
    sample_game: str = ""


# -- sign-in ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderButton:
    """A link that signs in with a provider."""

    name: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRedirectContext(PageContext):
    """Leads to a provider by itself, and by a link."""

    template = "provider_redirect.html"

    provider: str
    target: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInContext(PageContext):
    template = "sign_in.html"

    csrf: str
    interaction: str = ""
    login: str = ""  # typed before, or login_hint
    problem: PageProblem | None = None
    notice: Notice | None = None
    stays: bool = False  # the choice of this browser
    stay_cookie: str = ""  # its cookie, for sign-ins without the form
    application: str = ""  # its name; empty for the account pages
    returns_to: str = ""  # the host the browser is redirected to
    logo: str = ""  # path of the application's logo
    links: tuple[DestinationLink, ...] = ()
    phone_link: str = ""  # of a game: the link to continue on a phone
    register_enabled: bool = False
    email_enabled: bool = False  # sign-in by a link or code
    usernames_enabled: bool = True
    providers: tuple[ProviderButton, ...] = ()
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
    document_host: str = ""  # of a client that is not registered here
    returns_to: str  # the host the browser is redirected to
    nick: str
    login: str
    scopes: tuple[str, ...]
    logo: str = ""  # path of the application's logo
    links: tuple[DestinationLink, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPostContext(PageContext):
    """The response to a client, posted by a script or by the button."""

    template = "form_post.html"

    form: FormPost


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortTokenContext(PageContext):
    """`/?stoken=…`: the POST uses the token (R1)."""

    template = "short_token.html"

    csrf: str
    stoken: str
    nick: str
    login: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReauthenticationContext(PageContext):
    """Before an action that requires recent authentication."""

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
    domains: tuple[str, ...] = ()  # the only allowed ones; empty for any
    password_optional: bool = False
    problem: PageProblem | None = None
    puzzle: Puzzle | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckMailContext(PageContext):
    """The same text with and without an account (LG-05)."""

    template = "check_mail.html"

    csrf: str
    purpose: MailPurpose
    login: str  # as typed
    minutes: int = 30  # lifetime of the link
    mail_is_logged: bool = False  # no SMTP is configured: the page says where the email is
    puzzle: Puzzle | None = None  # to send the email again


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyEmailContext(PageContext):
    template = "verify_email.html"

    csrf: str
    token: str
    login: str
    ending: EndedMethods = ENDS_NOTHING  # what ends with the first proof of the address (R10)
    needs_session: bool = False  # the link works only in the session that asked
    problem: PageProblem | None = None


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
    ending: EndedMethods = ENDS_NOTHING
    problem: PageProblem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgotContext(PageContext):
    template = "forgot.html"

    csrf: str
    login: str = ""
    problem: PageProblem | None = None
    puzzle: Puzzle | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetContext(PageContext):
    template = "reset.html"

    csrf: str
    token: str
    login: str
    ending: EndedMethods = ENDS_NOTHING
    problem: PageProblem | None = None


# -- second factors -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TotpSetupContext(PageContext):
    template = "totp_setup.html"

    csrf: str
    uri: str  # otpauth://…, shown as QR code
    secret: str  # base32, shown in groups of four
    next: str = ""  # the page of the console that asked for it
    other: str = ""  # the address of the other method; empty where there is none
    problem: PageProblem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PasskeySetupContext(PageContext):
    template = "passkey_setup.html"

    csrf: str
    passkey_options: str  # JSON of PublicKeyCredentialCreationOptions
    name: str = ""
    next: str = ""
    other: str = ""
    problem: PageProblem | None = None


# -- ended flows and errors ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredContext(PageContext):
    template = "expired.html"
    status = 400

    start_again: str  # a path of ours that keeps the request
    is_stale: bool = False  # the person signed in or out in another tab in the meantime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLinkContext(PageContext):
    """A mailed link that was used, has expired or was replaced; all look alike."""

    template = "link_dead.html"
    status = 403

    start_again: str = ""  # where to request a new one; empty for an invitation


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorContext(PageContext):
    """`title` and `message` in English; other languages have texts for the status or for that message."""

    template = "error.html"

    code: int  # the HTTP status
    title: str
    message: str
    reference: str  # empty where there is nothing to look up


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredTarget:
    """A registered redirect URI or host compared with the received one, split where they begin to differ."""

    same: str
    other: str
    received_other: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientErrorContext(PageContext):
    """A request that cannot be answered by redirect. The second half is for the client's developers."""

    template = "client_error.html"
    status = 400

    reference: str
    application: str = ""  # its name, when the client is known
    reason: str = ""  # in English, for developers; empty for everyone else
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
    """What only administrators see."""

    by: str  # the texts are `denied.why_<by>`
    missing: str = ""  # the permission that is missing, if any
    check: str  # the page of the console that explains it


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessDeniedContext(PageContext):
    template = "access_denied.html"
    status = 403

    csrf: str = ""
    interaction: str = ""  # empty: no other account can be used
    application: str
    login: str
    ask: tuple[str, ...] = ()  # names or addresses of people to ask
    return_to: str = ""  # where the application gets `access_denied`
    return_form: FormPost | None = None  # instead, for a client that gets forms
    on_device: bool = False  # which has the answer already
    why: DenialReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceContext(PageContext):
    template = "maintenance.html"
    status = 503

    retry_after: int = 0


# Contexts beyond the sign-in: another device, a game, signing out.


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceContext(PageContext):
    """The form for the code that the device shows (RFC 8628)."""

    template = "device.html"

    csrf: str
    user_code: str = ""
    problem: PageProblem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmSignInContext(PageContext):
    """Before a person is signed in on a device."""

    template = "confirm_sign_in.html"

    csrf: str
    interaction: str
    application: str  # its name
    logo: str = ""  # path of its logo
    code: str = ""  # shown on the device, to compare
    scopes: tuple[str, ...] = ()
    asked_at: int
    now: int
    address: str
    is_nearby: bool  # the request came from the network of this browser
    nick: str
    login: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmGameContext(PageContext):
    template = "confirm_game.html"

    csrf: str
    interaction: str
    gsid: str
    application: str = ""  # its name, when the game names one
    logo: str = ""  # path of its logo
    choices: tuple[str, ...] = ()  # the game shows one of them
    consent: ConsentRequest | None = None  # for the back end that the game names
    asked_at: int
    now: int
    place: str  # that the request came from: a name, or else the address
    nearness: NetworkNearness
    is_waited_for: bool
    phone_link: str
    nick: str
    login: str
    guest: str = ""  # nick of the guest who gets the account
    merges_guest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GameEndContext(PageContext):
    template = "game_end.html"

    end: GameEnd
    gsid: str = ""  # while the page polls the state
    until: str = ""  # the states that change the page


@dataclass(frozen=True, slots=True, kw_only=True)
class GameDeniedContext(PageContext):
    template = "game_denied.html"
    status = 403

    application: str = ""
    login: str
    ask: str = ""  # the title of its project
    why: DenialReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BannedContext(PageContext):
    template = "banned.html"
    status = 403

    login: str
    application: str = ""  # empty for the whole installation
    public_text: str = ""
    until: int = 0  # 0 for no end


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDoneContext(PageContext):
    template = "device_done.html"

    is_signed_in: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BadSignOutContext(PageContext):
    """A client requests a sign-out in a wrong way; the person can still sign out."""

    template = "bad_sign_out.html"
    status = 400

    reference: str
    reason: str  # in English, for developers
    csrf: str = ""  # empty for a person who is not signed in


@dataclass(frozen=True, slots=True, kw_only=True)
class SignOutContext(PageContext):
    """A client requests a sign-out and cannot prove that it means this person."""

    template = "sign_out.html"

    csrf: str
    nick: str
    login: str
    application: str = ""
    client_id: str = ""
    post_logout_redirect_uri: str = ""
    state: str = ""
