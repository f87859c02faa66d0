"""The context of each page: one frozen record per template, so that types check the handlers.

`pages.render(request, SignInContext(...))` finds the template by the record. Times are Unix seconds, 0 for never;
every text is escaped, and fixed texts come from the locales. The form fields of each page are listed beside its
path in paths.py; every form also has `csrf`, and forms of a sign-in have `interaction`. The account page has its
own module, account_contexts.py.
"""

from typing import ClassVar

from msgspec import Struct

from gatehouse.accounts.address_proofs.model import ENDS_NOTHING, EndedMethods
from gatehouse.fields.secrets import SecretRecord
from gatehouse.oauth.delegation import ActingApplication
from gatehouse.sign_in_flow.model import DestinationLink, FormPost
from gatehouse.sign_in_flow.questions import ConsentRequest, NetworkNearness
from gatehouse.throttle.proof_of_work import Puzzle
from gatehouse.web.pages.denial_reasons import DenialReason
from gatehouse.web.pages.vocabulary import FactorMethod, GameEnd, MailPurpose, Notice, PageProblem


class PageContext(SecretRecord, frozen=True, kw_only=True):
    template: ClassVar[str]
    status: ClassVar[int] = 200

    passkey_signals: str = ""  # what the page tells passkey managers, as JSON


# -- the installation ---------------------------------------------------------------------------------


class SetupContext(PageContext, frozen=True, kw_only=True):
    template = "setup.html"

    token: str
    login: str = ""
    nick: str = ""
    problem: PageProblem | None = None


class SetupDoneContext(PageContext, frozen=True, kw_only=True):
    template = "setup_done.html"

    nick: str
    login: str
    user_id: str
    sample_app: str = ""  # the command that starts it; empty where samples make no sense
    sample_game: str = ""


# -- sign-in ------------------------------------------------------------------------------------------


class ProviderButton(Struct, frozen=True, kw_only=True):
    mark: str = ""  # letters in place of a logo
    """A link that signs in with a provider."""

    name: str
    path: str


class ProviderRedirectContext(PageContext, frozen=True, kw_only=True):
    """Leads to a provider by itself, and by a link."""

    template = "provider_redirect.html"

    provider: str
    target: str
    host: str


class SignInContext(PageContext, frozen=True, kw_only=True):
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
    guest: str = ""  # nick of the guest who gets the account
    register_enabled: bool = False
    email_enabled: bool = False  # sign-in by a link or code
    usernames_enabled: bool = True
    providers: tuple[ProviderButton, ...] = ()
    passkeys_enabled: bool = True
    passkey_options: str = ""  # JSON of PublicKeyCredentialRequestOptions, without allowCredentials


class AlreadySignedInContext(PageContext, frozen=True, kw_only=True):
    template = "already_signed_in.html"

    csrf: str
    interaction: str
    nick: str
    login: str
    application: str = ""
    returns_to: str = ""


class SecondFactorContext(PageContext, frozen=True, kw_only=True):
    template = "second_factor.html"

    csrf: str
    interaction: str
    method: FactorMethod | None  # the one shown: the last used, or the chosen one; None if none is accepted now
    others: tuple[FactorMethod, ...] = ()
    application: str = ""
    sent_to: str = ""  # with EMAIL or PHONE: the address or number, partly hidden
    is_sent: bool = False  # the code
    passkey_options: str = ""  # with PASSKEY: JSON of PublicKeyCredentialRequestOptions
    problem: PageProblem | None = None
    notice: Notice | None = None


class ConsentContext(PageContext, frozen=True, kw_only=True):
    template = "consent.html"

    csrf: str
    interaction: str
    application: str  # its name
    owner: str = ""  # the title of the project it belongs to
    may_be_another: bool = True  # the client does not name the person
    document_host: str = ""  # of a client that is not registered here
    returns_to: str  # the host the browser is redirected to
    nick: str
    login: str
    scopes: tuple[str, ...]
    acting: tuple[ActingApplication, ...] = ()  # whose programs would act for the person
    days: tuple[int, ...] = ()  # after how many days access may end
    logo: str = ""  # path of the application's logo
    links: tuple[DestinationLink, ...] = ()


class FormPostContext(PageContext, frozen=True, kw_only=True):
    """The response to a client, posted by a script or by the button."""

    template = "form_post.html"

    form: FormPost


class ShortTokenContext(PageContext, frozen=True, kw_only=True):
    """`/?stoken=…`: the POST uses the token (R1)."""

    template = "short_token.html"

    csrf: str
    stoken: str
    nick: str
    login: str


class ReauthenticationContext(PageContext, frozen=True, kw_only=True):
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


class RegisterContext(PageContext, frozen=True, kw_only=True):
    template = "register.html"

    csrf: str
    interaction: str = ""
    application: str = ""  # its name, if it sent the person here
    returns_to: str = ""
    logo: str = ""
    login: str = ""
    nick: str = ""
    domains: tuple[str, ...] = ()  # the only allowed ones; empty for any
    password_optional: bool = False
    problem: PageProblem | None = None
    puzzle: Puzzle | None = None


class CheckMailContext(PageContext, frozen=True, kw_only=True):
    """The same text with and without an account (LG-05)."""

    template = "check_mail.html"

    csrf: str
    purpose: MailPurpose
    login: str  # as typed
    minutes: int = 30  # lifetime of the link
    interaction: str = ""
    puzzle: Puzzle | None = None  # to send the email again


class RegistrationSentContext(PageContext, frozen=True, kw_only=True):
    """The browser that registered waits for its link, with a field for the code that another browser shows."""

    template = "registration_sent.html"

    csrf: str
    login: str  # as typed
    application: str = ""
    logo: str = ""
    minutes: int = 30  # lifetime of the link
    problem: PageProblem | None = None


class RegisteredElsewhereContext(PageContext, frozen=True, kw_only=True):
    """In the browser that registered, after the registration was finished in another one."""

    template = "registered_elsewhere.html"

    login: str
    sign_in: str  # the address that signs in here
    application: str = ""
    logo: str = ""


class VerifyElsewhereContext(PageContext, frozen=True, kw_only=True):
    """The link of a registration, in another browser than the one that registered."""

    template = "verify_elsewhere.html"

    csrf: str
    token: str
    login: str
    code: str = ""  # for the browser that registered, if it still waits
    application: str = ""
    logo: str = ""
    ending: EndedMethods = ENDS_NOTHING
    problem: PageProblem | None = None


class VerifyEmailContext(PageContext, frozen=True, kw_only=True):
    template = "verify_email.html"

    csrf: str
    token: str
    login: str
    application: str = ""
    logo: str = ""
    continues: bool = False  # confirming signs in and goes on
    code: str = ""  # a right one, instead of the token
    ending: EndedMethods = ENDS_NOTHING  # what ends with the first proof of the address (R10)
    needs_session: bool = False  # the link works only in the session that asked
    problem: PageProblem | None = None


class EmailVerifiedContext(PageContext, frozen=True, kw_only=True):
    template = "email_verified.html"

    login: str


class InviteContext(PageContext, frozen=True, kw_only=True):
    template = "invite.html"

    csrf: str
    token: str
    login: str
    application: str = ""  # of the role that it gives
    logo: str = ""
    continues: bool = False  # to the application
    nick: str = ""
    ending: EndedMethods = ENDS_NOTHING
    problem: PageProblem | None = None


class ForgotContext(PageContext, frozen=True, kw_only=True):
    template = "forgot.html"

    csrf: str
    interaction: str = ""
    application: str = ""
    logo: str = ""
    login: str = ""
    problem: PageProblem | None = None
    puzzle: Puzzle | None = None


class ResetContext(PageContext, frozen=True, kw_only=True):
    template = "reset.html"

    csrf: str
    token: str
    login: str
    application: str = ""
    logo: str = ""
    ending: EndedMethods = ENDS_NOTHING
    problem: PageProblem | None = None


# -- second factors -----------------------------------------------------------------------------------


class TotpSetupContext(PageContext, frozen=True, kw_only=True):
    template = "totp_setup.html"

    csrf: str
    uri: str  # otpauth://…, shown as QR code
    secret: str  # base32, shown in groups of four
    next: str = ""  # the page of the console that asked for it
    other: str = ""  # the address of the other method; empty where there is none
    problem: PageProblem | None = None


class PasskeySetupContext(PageContext, frozen=True, kw_only=True):
    template = "passkey_setup.html"

    csrf: str
    passkey_options: str  # JSON of PublicKeyCredentialCreationOptions
    name: str = ""
    next: str = ""
    other: str = ""
    problem: PageProblem | None = None


# -- ended flows and errors ---------------------------------------------------------------------------


class ExpiredContext(PageContext, frozen=True, kw_only=True):
    template = "expired.html"
    status = 400

    start_again: str  # a path of ours that keeps the request
    is_stale: bool = False  # the person signed in or out in another tab in the meantime


class DeadLinkContext(PageContext, frozen=True, kw_only=True):
    """A mailed link that was used, has expired or was replaced; all look alike."""

    template = "link_dead.html"
    status = 403

    start_again: str = ""  # where to request a new one; empty for an invitation


class ErrorContext(PageContext, frozen=True, kw_only=True):
    """`title` and `message` in English; other languages have texts for the status or for that message."""

    template = "error.html"

    code: int  # the HTTP status
    title: str
    message: str
    reference: str  # empty where there is nothing to look up


class RegisteredTarget(Struct, frozen=True, kw_only=True):
    """A registered redirect URI or host compared with the received one, split where they begin to differ."""

    same: str
    other: str
    received_other: str


class ClientErrorContext(PageContext, frozen=True, kw_only=True):
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


class SignedOutContext(PageContext, frozen=True, kw_only=True):
    template = "signed_out.html"

    everywhere: bool = False
    application: str = ""
    return_to: str = ""  # a registered address of that application


class ThrottledContext(PageContext, frozen=True, kw_only=True):
    template = "throttled.html"
    status = 429

    retry_after: int  # seconds
    start_again: str


class AccessDeniedContext(PageContext, frozen=True, kw_only=True):
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


class MaintenanceContext(PageContext, frozen=True, kw_only=True):
    template = "maintenance.html"
    status = 503

    retry_after: int = 0


# Contexts beyond the sign-in: another device, a game, signing out.


class DeviceContext(PageContext, frozen=True, kw_only=True):
    """The form for the code that the device shows (RFC 8628)."""

    template = "device.html"

    csrf: str
    user_code: str = ""
    problem: PageProblem | None = None


class ConfirmSignInContext(PageContext, frozen=True, kw_only=True):
    """Before a person is signed in on a device."""

    template = "confirm_sign_in.html"

    csrf: str
    interaction: str
    application: str  # its name
    logo: str = ""  # path of its logo
    code: str = ""  # shown on the device, to compare
    scopes: tuple[str, ...] = ()
    ends_at: int = 0  # of the access; 0 for never
    asked_at: int
    now: int
    address: str
    is_nearby: bool  # the request came from the network of this browser
    nick: str
    login: str


class ConfirmGameContext(PageContext, frozen=True, kw_only=True):
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


class GameEndContext(PageContext, frozen=True, kw_only=True):
    template = "game_end.html"

    end: GameEnd
    gsid: str = ""  # while the page polls the state
    until: str = ""  # the states that change the page


class GameDeniedContext(PageContext, frozen=True, kw_only=True):
    template = "game_denied.html"
    status = 403

    application: str = ""
    login: str
    ask: str = ""  # the title of its project
    why: DenialReason | None = None


class BannedContext(PageContext, frozen=True, kw_only=True):
    template = "banned.html"
    status = 403

    login: str
    application: str = ""  # empty for the whole installation
    public_text: str = ""
    until: int = 0  # 0 for no end


class DeviceDoneContext(PageContext, frozen=True, kw_only=True):
    template = "device_done.html"

    is_signed_in: bool


class BadSignOutContext(PageContext, frozen=True, kw_only=True):
    """A client requests a sign-out in a wrong way; the person can still sign out."""

    template = "bad_sign_out.html"
    status = 400

    reference: str
    reason: str  # in English, for developers
    csrf: str = ""  # empty for a person who is not signed in


class SignOutContext(PageContext, frozen=True, kw_only=True):
    """A client requests a sign-out and cannot prove that it means this person."""

    template = "sign_out.html"

    csrf: str
    nick: str
    login: str
    application: str = ""
    client_id: str = ""
    post_logout_redirect_uri: str = ""
    state: str = ""
