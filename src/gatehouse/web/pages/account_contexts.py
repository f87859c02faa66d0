"""Contexts of the account page (see contexts.py)."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from gatehouse.accounts.model import AccountField
from gatehouse.admin.access_invitations import NamedInvitation
from gatehouse.admin.own_permissions import NO_PERMISSIONS, OwnPermissions
from gatehouse.fields.model import DescribedField
from gatehouse.oauth.delegation import ActingApplication
from gatehouse.throttle.proof_of_work import Puzzle
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.vocabulary import AccountSection, Notice, PageProblem, Theme


class AccountPasskeyRow(Struct, frozen=True, kw_only=True):
    passkey_id: str
    name: str
    created_at: int
    used_at: int


class AccountSessionRow(Struct, frozen=True, kw_only=True):
    session_id: str
    device: str  # "Firefox, Linux"
    place: str
    address: str
    created_at: int
    seen_at: int
    is_current: bool


class GivenGrantRow(Struct, frozen=True, kw_only=True):
    """One sign-in to a client, or what a device or program got."""

    grant_id: str
    scopes: tuple[str, ...]
    shown_scopes: tuple[str, ...]
    resource: str  # of the API; "" for none
    acting: tuple[ActingApplication, ...]  # whose programs act through it
    since: int
    used_at: int
    ends_at: int


class ConnectedApplication(Struct, frozen=True, kw_only=True):
    client_id: str
    name: str
    scopes: tuple[str, ...]
    shown_scopes: tuple[str, ...]  # those of APIs by title or application
    since: int
    ends_at: int = 0  # 0: until it is withdrawn
    used_at: int = 0  # 0: not since it was allowed
    logo: str = ""  # path of its logo, or of its application's
    grants: tuple[GivenGrantRow, ...] = ()  # that are live


class MyApplicationCard(Struct, frozen=True, kw_only=True):
    name: str
    description: str
    logo: str  # path of its logo
    address: str  # where it opens; empty if unknown


class AccountActivityRow(Struct, frozen=True, kw_only=True):
    at: int
    event: str  # an audit event; unknown ones are shown by their name
    address: str = ""


class SignInHistoryRow(Struct, frozen=True, kw_only=True):
    at: int
    method: str  # the texts are `signed_in_with.<method>`
    application: str
    device: str
    place: str
    address: str


class FailureRow(Struct, frozen=True, kw_only=True):
    """Failed sign-ins of an hour."""

    hour: int
    reason: str  # the texts are `failed_sign_in.<reason>`
    network: str
    place: str
    times: int


class InvitationsContext(PageContext, frozen=True, kw_only=True):
    template = "invitations.html"

    csrf: str
    invitations: Sequence[NamedInvitation]
    email_verified: bool
    refused: bool = False  # the access could not be given


class DataRequestStatus(Struct, frozen=True, kw_only=True):
    """The state of an application's data export; the texts are `account.data_<state>`."""

    name: str
    state: str


class ConnectedIdentity(Struct, frozen=True, kw_only=True):
    provider: str  # its ID
    name: str
    issuer: str
    subject: str
    label: str
    created_at: int
    used_at: int


class ConnectableProvider(Struct, frozen=True, kw_only=True):
    provider: str  # its ID
    name: str


class AccountContext(PageContext, frozen=True, kw_only=True):
    template = "account.html"

    csrf: str
    sections: Sequence[AccountSection] = tuple(AccountSection)
    now: int
    user_id: str
    nick: str
    profile_rows: Sequence[tuple[DescribedField[AccountField], ...]]  # of OWN_FIELDS
    profile: Mapping[str, str]  # their values, as stored, or as submitted with a problem
    username: str  # likewise
    usernames_enabled: bool = True
    picture: str = ""  # path of the image
    login: str
    email_verified: bool
    phone: str = ""
    phone_verified: bool = False
    pending_phone: str = ""  # a number that waits for its code
    phones_enabled: bool = False
    phone_puzzle: Puzzle | None = None
    has_password: bool
    may_remove_password: bool = False
    pending_login: str = ""  # a new address that is not verified yet
    typed: str = ""  # the submitted value of the form with the problem
    problem: PageProblem | None = None
    problem_at: AccountSection | None = None
    notice: Notice | None = None
    notice_at: AccountSection | None = None
    passkeys: tuple[AccountPasskeyRow, ...] = ()
    identities: tuple[ConnectedIdentity, ...] = ()
    connectable: tuple[ConnectableProvider, ...] = ()
    totp_since: int = 0
    email_code: bool = False
    phone_code: bool = False
    phone_closed: bool = False
    may_enable_phone_code: bool = False
    recovery_left: int = 0
    sessions: tuple[AccountSessionRow, ...] = ()
    sign_ins: tuple[SignInHistoryRow, ...] = ()
    failures: tuple[FailureRow, ...] = ()
    applications: tuple[ConnectedApplication, ...] = ()
    my_applications: tuple[MyApplicationCard, ...] = ()
    permissions: OwnPermissions = NO_PERMISSIONS
    activity: tuple[AccountActivityRow, ...] = ()
    lang: str = "en"  # of the account
    theme: Theme = Theme.AUTO
    data_in: tuple[DataRequestStatus, ...] = ()
    may_ask_for_data: bool = False  # there are applications to ask, and no request is pending
    mail_is_logged: bool = False
    may_administer: bool = False  # shows the link to the console
    is_banned: bool = False  # from something: no way to leave sheds the ban


class DeleteAccountContext(PageContext, frozen=True, kw_only=True):
    template = "delete_account.html"

    csrf: str
    login: str
    has_email: bool = True  # `login` is an address, not a nick
    is_banned: bool = False
    problem: PageProblem | None = None


class RecoveryCodesContext(PageContext, frozen=True, kw_only=True):
    template = "recovery_codes.html"

    codes: tuple[str, ...]
    login: str
    next: str = "/account#factors"
