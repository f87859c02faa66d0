"""The result of the login operation: account data, tokens and the user JWT (interface §2.2, R1)."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from gatehouse.accounts.bans.devices import SignInDevices
from gatehouse.accounts.bans.model import UserBan, ban_detail
from gatehouse.accounts.errors import LoginDenied
from gatehouse.accounts.failed_sign_ins.counter import FailedSignIns
from gatehouse.accounts.failed_sign_ins.model import denial_reason
from gatehouse.accounts.model import SignInMethod, User
from gatehouse.accounts.sample_factor import SampleFactorRule
from gatehouse.accounts.session_model import LoginTokenRecord
from gatehouse.accounts.store import ApplicationAccess, LoginStore
from gatehouse.accounts.terms.acceptance import Terms
from gatehouse.accounts.terms.model import TermsLink
from gatehouse.accounts.user_tokens import UserTokens
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord, Details
from gatehouse.audit.recorder import Recorder
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_secret

# The response of the login operation.


TOKEN_SECONDS: Final = 3_600  # of `token`; R1
SHORT_TOKEN_SECONDS: Final = 300  # of `stoken`
# Not for accounts with a protected role of application 1 (R10).
WEAK_METHODS: Final = frozenset({SignInMethod.PLATFORM, SignInMethod.GUEST, SignInMethod.EMAIL})


class IdTokenRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The id_token that a game asks for, for another back end (R10)."""

    client_id: str
    nonce: str
    scopes: tuple[str, ...] = ()  # of the client when the game asked: the person consents to these


class LoginOptions(SecretRecord, frozen=True, kw_only=True):
    """The checked optional fields of interface §4.3 that shape the response."""

    factor: str | None = None
    jwt_public_key: str | None = None
    app_id: int = 0
    gapp_id: int = 0
    nojwt: bool = False
    short_token: bool = False
    fixed_ips: tuple[str, ...] = ()
    meta: bool = False
    with_email: str = ""
    service_jwt: SecretText = ""
    service_application: int = 0  # of the service JWT, when already known
    id_token: IdTokenRequest | None = None

    @property
    def applications(self) -> tuple[int, ...]:
        """The named applications; the permissions of the first one go into the JWT (R4)."""
        numbers = (self.app_id, self.service_application, self.gapp_id)
        return tuple(dict.fromkeys(number for number in numbers if number > 0))

    @property
    def primary_application(self) -> int | None:
        return next(iter(self.applications), None)


class NamedApplications(msgspec.Struct, frozen=True):
    """The applications a login names by app_id, by a service JWT and by gapp_id (R4)."""

    applications: tuple[int, ...]

    @property
    def primary(self) -> int | None:
        """The first of them: owner of the permissions in the JWT, of the token and of the with_email secret."""
        return self.applications[0] if self.applications else None


class LoginSettings(msgspec.Struct, frozen=True, kw_only=True):
    vendor_nick_field: str
    jwt_without_factor: bool


class PreparedLogin(msgspec.Struct, frozen=True, kw_only=True):
    """A response that takes effect once `token_record` is stored together with `entry`."""

    data: dict[str, object]
    token_record: LoginTokenRecord
    entry: AuditRecord


class LoginResult:
    def __init__(
        self,
        *,
        store: LoginStore,
        rules: ApplicationAccess,
        country_of: Callable[[str], str],
        tokens: UserTokens,
        devices: SignInDevices,
        sample_factor: SampleFactorRule,
        terms: Terms,
        failures: FailedSignIns,
        recorder: Recorder,
        clock: Clock,
        settings: LoginSettings,
    ) -> None:
        self._store = store
        self._rules = rules
        self._country_of = country_of
        self._tokens = tokens
        self._devices = devices
        self._sample_factor = sample_factor
        self._terms = terms
        self._failures = failures
        self._recorder = recorder
        self._clock = clock
        self._settings = settings

    async def login_data(
        self, user: User, auth: SignInMethod, options: LoginOptions, origin: AuditOrigin
    ) -> dict[str, object]:
        """Issue the requested tokens, store them and return the login data. Raises LoginDenied.

        With open terms the data is TERMS and the page where the person accepts them (R10).
        """
        prepared = await self.prepare(user, auth, options, origin)
        terms = await self._terms_data(user, options, origin)
        if terms is not None:
            return terms
        if not await self._store.save_login(prepared.token_record, prepared.entry):
            raise LoginDenied
        return prepared.data

    async def prepare(
        self, user: User, auth: SignInMethod, options: LoginOptions, origin: AuditOrigin
    ) -> PreparedLogin:
        """Check the login rules and sign; the caller stores the result. Raises LoginDenied."""
        named = await self._named_applications(options)
        await self._devices.record_sign_in(user.user_id, options.factor)
        device_bans = await self._devices.find_bans(options.factor)
        ban = await self._rules.find_ban_from(user, named.applications, device_bans)
        if user.blocked or ban is not None or not await self._rules.may_log_in(user, named.applications):
            self._failures.count(user.user_id, denial_reason(user, ban), origin.address)
            if user.blocked or ban is None:
                raise LoginDenied
            raise LoginDenied(ban_detail(user.user_id, ban), ban=ban)
        token, stoken = new_secret(), new_secret() if options.short_token else None
        country = user.country or self._country_of(origin.address)  # R1
        data = {
            **self._account_data(user, auth, options, origin, country),
            **await self._email_data(user, options, named),
            "token": token,
            "token_exp": TOKEN_SECONDS,
            **({} if stoken is None else {"stoken": stoken}),
            **await self._jwt_data(replace(user, country=country), auth, options, named),
        }
        details: Details = {"auth": auth.value, "app_id": options.app_id}
        if options.id_token is not None:
            details = {**details, "client": options.id_token.client_id}
        entry = self._recorder.record(AuditEvent.LOGGED_IN, origin, subject=user.user_id, details=details)
        return PreparedLogin(
            data=data, token_record=self._token_record(user, auth, named, (token, stoken), origin), entry=entry
        )

    async def _terms_data(self, user: User, options: LoginOptions, origin: AuditOrigin) -> dict[str, object] | None:
        applications = (await self._named_applications(options)).applications
        country = self._country_of(origin.address)
        pending = await self._terms.find_pending(user.user_id, applications, country=country)
        if pending is None:
            return None
        link = TermsLink(user_id=user.user_id, application_ids=applications, country=country)
        return {"status": "TERMS", "url": self._terms.link(link), "version": pending.version}

    async def refuse_protected_role(self, user: User, method: SignInMethod) -> None:
        """Refuse methods that are too weak for the account's roles, also with a second factor. Raises LoginDenied."""
        if method in WEAK_METHODS and await self._rules.has_protected_role(user):
            raise LoginDenied(f"a protected role cannot be used with {method.value}")

    async def find_login_ban(self, user: User, options: LoginOptions) -> UserBan | None:
        """Return the ban that denies this login."""
        device_bans = await self._devices.find_bans(options.factor)
        return await self._rules.find_ban_from(user, options.applications, device_bans)

    async def with_service_application(self, options: LoginOptions) -> LoginOptions:
        """Return the options with the application of the service JWT.

        Raises InvalidToken: every credential in a request must be valid (R6); BadInput for the sample factor.
        """
        if options.service_jwt:
            application = await self._rules.service_application(options.service_jwt)
            options = msgspec.structs.replace(options, service_application=application)
        await self._sample_factor.check(options.factor, options.applications)
        return options

    async def _named_applications(self, options: LoginOptions) -> NamedApplications:
        return NamedApplications((await self.with_service_application(options)).applications)

    def _token_record(
        self,
        user: User,
        auth: SignInMethod,
        applications: NamedApplications,
        tokens: tuple[str, str | None],
        origin: AuditOrigin,
    ) -> LoginTokenRecord:
        (token, stoken), now = tokens, self._clock.now()
        return LoginTokenRecord(
            user_id=user.user_id,
            rev=user.rev,
            application_id=applications.primary or 0,
            token=sha256(token),
            token_ends_at=now + TOKEN_SECONDS,
            stoken=None if stoken is None else sha256(stoken),
            stoken_ends_at=now + SHORT_TOKEN_SECONDS,
            auth=auth,
            address=origin.address,
            now=now,
        )

    def _account_data(
        self, user: User, auth: SignInMethod, options: LoginOptions, origin: AuditOrigin, country: str
    ) -> dict[str, object]:
        data: dict[str, object] = {
            "status": "OK",
            "auth": auth.value,
            "country": country,
            "lang": user.lang,
            "level": user.level,
            "nick": user.nick,
            self._settings.vendor_nick_field: user.nick,
            "reg_time": str(user.reg_time),
            "tags": user.tag_text,
            "user_id": user.user_id,
        }
        if options.meta:
            data["meta"] = {
                "geo": {"country": country, "ip": origin.address},
                "reg": {"country": user.country, "time": str(user.reg_time), "lang": user.lang},
                "tags": user.tag_text.split(",") if user.tag_text else [],
            }
        return data

    async def _email_data(
        self, user: User, options: LoginOptions, applications: NamedApplications
    ) -> Mapping[str, object]:
        """Return the login email if the application knows its secret; a wrong secret silently omits it (R1)."""
        if not options.with_email or user.login is None or applications.primary is None:
            return {}
        shared = await self._rules.shares_email(applications.primary, options.with_email)
        return {"login": user.login} if shared else {}

    async def _jwt_data(
        self, user: User, auth: SignInMethod, options: LoginOptions, applications: NamedApplications
    ) -> Mapping[str, object]:
        """Return the JWT; without a factor there is none (R2), unless the operator allows it for game clients."""
        if options.nojwt or (options.factor is None and not self._settings.jwt_without_factor):
            return {}
        jwt = await self._tokens.issue(
            user,
            auth=auth.value,
            factor=options.factor,
            jwt_public_key=options.jwt_public_key,
            fixed_ips=options.fixed_ips,
            permissions=None
            if applications.primary is None
            else await self._rules.permissions(user, applications.primary),
        )
        return {"jwt": jwt} if options.factor is None else {"jwt": jwt, "factor": options.factor}
