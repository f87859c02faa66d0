"""People's accounts: how they sign in, their sessions and second factors, registration, their own account."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from gatehouse.accounts.account_editor import AccountEditor
from gatehouse.accounts.email_links import EmailLinks
from gatehouse.accounts.email_sign_in import EmailSignIn, EmailSignInPolicy
from gatehouse.accounts.guests.sign_in import DeviceChallenges, GuestSignIn
from gatehouse.accounts.importing.importer import Importer
from gatehouse.accounts.invitations import Invitations
from gatehouse.accounts.login_result import LoginResult, LoginSettings
from gatehouse.accounts.model import GUEST_PROVIDER, EnabledMethods
from gatehouse.accounts.own_account.claims import ProfileClaims
from gatehouse.accounts.own_account.email_change import EmailChanges
from gatehouse.accounts.own_account.email_verification import EmailVerification
from gatehouse.accounts.own_account.export import DataExport
from gatehouse.accounts.own_account.identities import IdentityAccounts
from gatehouse.accounts.own_account.password_change import PasswordChange
from gatehouse.accounts.own_account.profile import AccountProfile
from gatehouse.accounts.own_account.reauthentication import Reauthentication
from gatehouse.accounts.recovery import PasswordRecovery
from gatehouse.accounts.registration import RegistrationPolicy, SelfRegistration
from gatehouse.accounts.second_factors.codes import RecoveryCodes
from gatehouse.accounts.second_factors.email_codes import EmailCodes
from gatehouse.accounts.second_factors.notifications import AccountNotifier
from gatehouse.accounts.second_factors.passkeys import Passkeys
from gatehouse.accounts.second_factors.totp import Totp
from gatehouse.accounts.second_factors.verification import SecondFactors
from gatehouse.accounts.second_factors.webauthn import RelyingParty
from gatehouse.accounts.sessions import SessionLifetimes, Sessions
from gatehouse.accounts.short_tokens import ShortTokens
from gatehouse.accounts.sign_in import DeviceCookies, PasswordSignIn
from gatehouse.accounts.terms.acceptance import Terms
from gatehouse.accounts.terms.model import TermsDocument
from gatehouse.admin.own_permissions import OwnPermissionsLoader, OwnPermissionsStore
from gatehouse.app.services.core import DAY, MINUTE, guest_policy, outbound_client
from gatehouse.app.services.permissions import PermissionServices
from gatehouse.app.services.provider_settings import enabled_providers, provider_issuers
from gatehouse.kernel.times import HOUR
from gatehouse.keys.sealing import derive_key
from gatehouse.providers.answers import PROVIDER_LIMITS, ProviderCalls
from gatehouse.providers.jwt_tickets import JwtTickets
from gatehouse.providers.kinds import ProviderProtocol
from gatehouse.providers.model import Provider
from gatehouse.providers.oauth_user import OAuthUsers
from gatehouse.providers.openid_connect import OpenIdConnect
from gatehouse.providers.sign_in import ProviderSignIn
from gatehouse.providers.steam import SteamOpenId
from gatehouse.providers.steam_tickets import SteamTickets
from gatehouse.providers.tickets import PlatformSignIn
from gatehouse.settings.grammar import parse_origin
from gatehouse.settings.model import AccountSettings, ProtectionSettings, SessionSettings, Settings
from gatehouse.settings.terms import TermsSettings
from gatehouse.throttle.proof_of_work import ProofOfWork, ProofOfWorkMode, ProofOfWorkPolicy
from gatehouse.throttle.quotas import Quota
from gatehouse.web.http.browser import BrowserSessions


class AccountServices(PermissionServices):
    # Sign-in and sessions

    @cached_property
    def device_cookies(self) -> DeviceCookies:
        return DeviceCookies(key=derive_key(self.instance_key, "device"), clock=self.clock)

    @cached_property
    def password_sign_in(self) -> PasswordSignIn:
        return PasswordSignIn(
            store=self.storage.accounts,
            passwords=self.passwords,
            decoys=self.decoy_hashes,
            limiter=self.attempt_limiter,
            device_cookies=self.device_cookies,
            tally=self.tally,
            accepts_usernames=lambda: self.settings.accounts.username_sign_in,
        )

    @cached_property
    def email_sign_in(self) -> EmailSignIn:
        return EmailSignIn(
            store=self.storage.registration,
            accounts=self.storage.accounts,
            links=self.email_links,
            composer=self.mail_composer,
            recorder=self.recorder,
            sealer=self.masters,
            tally=self.tally,
            clock=self.clock,
            key=derive_key(self.instance_key, "email-sign-in"),
            policy=lambda: email_sign_in_policy(self.settings.accounts),
            has_protected_role=self.login_rules.has_protected_role,
        )

    @cached_property
    def sessions(self) -> Sessions:
        return Sessions(
            store=self.storage.sessions,
            recorder=self.recorder,
            clock=self.clock,
            lifetimes=lambda: session_lifetimes(self.settings.sessions),
        )

    @cached_property
    def browsers(self) -> BrowserSessions:
        return BrowserSessions(
            sessions=self.sessions, csrf_key=derive_key(self.instance_key, "csrf"), base_url=self.base_url
        )

    @cached_property
    def short_tokens(self) -> ShortTokens:
        return ShortTokens(store=self.storage.logins, accounts=self.storage.accounts, clock=self.clock)

    @cached_property
    def login_result(self) -> LoginResult:
        return LoginResult(
            store=self.storage.logins,
            rules=self.login_rules,
            country_of=self.geoip.country,
            tokens=self.user_tokens,
            devices=self.sign_in_devices,
            terms=self.terms,
            recorder=self.recorder,
            clock=self.clock,
            settings=LoginSettings(
                vendor_nick_field=self.settings.accounts.vendor_nick_field,
                jwt_without_factor=self.settings.tokens.jwt_without_factor,
            ),
        )

    @cached_property
    def terms(self) -> Terms:
        return Terms(
            read_accepted=self.storage.terms.terms_of_user,
            store_accepted=self.storage.terms.accept_terms,
            documents=lambda: enabled_documents(self.settings.terms),
            country_of=self.geoip.country,
            recorder=self.recorder,
            key=derive_key(self.instance_key, "terms"),
            clock=self.clock,
            base_url=self.base_url,
        )

    # Second factors

    @cached_property
    def account_notifier(self) -> AccountNotifier:
        return AccountNotifier(recorder=self.recorder, composer=self.mail_composer)

    @cached_property
    def factor_key(self) -> bytes:
        return derive_key(self.instance_key, "factors")

    @cached_property
    def recovery_codes(self) -> RecoveryCodes:
        return RecoveryCodes(
            store=self.storage.second_factors,
            key=self.factor_key,
            notifier=self.account_notifier,
            clock=self.clock,
        )

    @cached_property
    def totp(self) -> Totp:
        return Totp(
            store=self.storage.second_factors,
            masters=self.masters,
            recovery=self.recovery_codes,
            notifier=self.account_notifier,
            clock=self.clock,
            issuer=lambda: self.settings.branding.name,
        )

    @cached_property
    def email_codes(self) -> EmailCodes:
        return EmailCodes(
            store=self.storage.second_factors,
            key=self.factor_key,
            recovery=self.recovery_codes,
            limiter=self.attempt_limiter,
            notifier=self.account_notifier,
            clock=self.clock,
            methods=self.enabled_methods,
        )

    @cached_property
    def passkeys(self) -> Passkeys:
        host = parse_origin(self.base_url, "http", "https").host
        return Passkeys(
            store=self.storage.passkeys,
            party=lambda: RelyingParty(name=self.settings.branding.name, origin=self.base_url, host=host),
            recovery=self.recovery_codes,
            notifier=self.account_notifier,
            clock=self.clock,
            methods=self.enabled_methods,
        )

    @cached_property
    def second_factors(self) -> SecondFactors:
        return SecondFactors(
            store=self.storage.second_factors,
            totp=self.totp,
            email_codes=self.email_codes,
            recovery=self.recovery_codes,
            limiter=self.attempt_limiter,
            notifier=self.account_notifier,
            clock=self.clock,
        )

    # Registration and recovery

    @cached_property
    def email_links(self) -> EmailLinks:
        return EmailLinks(
            store=self.storage.registration,
            composer=self.mail_composer,
            recorder=self.recorder,
            quota=Quota(store=self.storage.throttle, clock=self.clock),
            device_cookies=self.device_cookies,
            clock=self.clock,
        )

    @cached_property
    def proof_of_work(self) -> ProofOfWork:
        return ProofOfWork(
            store=self.storage.throttle,
            use_puzzle=self.storage.throttle.use_puzzle,
            limiter=self.attempt_limiter,
            key=derive_key(self.instance_key, "puzzles"),
            clock=self.clock,
            policy=lambda: proof_of_work_policy(self.settings.protection),
        )

    @cached_property
    def registration(self) -> SelfRegistration:
        return SelfRegistration(
            store=self.storage.registration,
            links=self.email_links,
            passwords=self.passwords,
            rules=self.password_rules,
            composer=self.mail_composer,
            recorder=self.recorder,
            clock=self.clock,
            policy=lambda: registration_policy(self.settings.accounts),
        )

    @cached_property
    def invitations(self) -> Invitations:
        return Invitations(
            store=self.storage.registration,
            links=self.email_links,
            administration=self.administration,
            passwords=self.passwords,
            rules=self.password_rules,
            recorder=self.recorder,
            clock=self.clock,
        )

    @cached_property
    def password_recovery(self) -> PasswordRecovery:
        return PasswordRecovery(
            store=self.storage.registration,
            links=self.email_links,
            passwords=self.passwords,
            rules=self.password_rules,
            sign_in=self.password_sign_in,
            composer=self.mail_composer,
            recorder=self.recorder,
            clock=self.clock,
        )

    # Accounts of other systems

    @cached_property
    def importer(self) -> Importer:
        return Importer(
            judge=self.storage.imports.judge_candidates,
            store=self.storage.imports.import_candidates,
            issuers=lambda: provider_issuers(self.settings.providers),
            decoys=self.decoy_hashes,
            sealer=self.masters,
            recorder=self.recorder,
            clock=self.clock,
        )

    # One's own account

    @cached_property
    def account_profile(self) -> AccountProfile:
        return AccountProfile(
            store=self.storage.profile,
            images=self.image_loader,
            recorder=self.recorder,
            clock=self.clock,
            offers_usernames=lambda: self.settings.accounts.username_sign_in,
            history_seconds=lambda: self.settings.sessions.history_days * DAY,
        )

    @cached_property
    def profile_claims(self) -> ProfileClaims:
        return ProfileClaims(store=self.storage.profile, recorder=self.recorder, base_url=self.base_url)

    @cached_property
    def account_editor(self) -> AccountEditor:
        return AccountEditor(store=self.storage.profile, composer=self.mail_composer, recorder=self.recorder)

    @cached_property
    def email_changes(self) -> EmailChanges:
        return EmailChanges(
            store=self.storage.profile,
            links=self.email_links,
            composer=self.mail_composer,
            recorder=self.recorder,
            clock=self.clock,
            domains=lambda: self.settings.accounts.allowed_domains,
        )

    @cached_property
    def email_verification(self) -> EmailVerification:
        return EmailVerification(
            registration=self.registration, email_changes=self.email_changes, links=self.email_links
        )

    @cached_property
    def password_change(self) -> PasswordChange:
        return PasswordChange(
            store=self.storage.profile,
            sign_in=self.password_sign_in,
            passwords=self.passwords,
            rules=self.password_rules,
            notifier=self.account_notifier,
            clock=self.clock,
            methods=self.enabled_methods,
        )

    @cached_property
    def reauthentication(self) -> Reauthentication:
        return Reauthentication(
            store=self.storage.profile,
            sign_in=self.password_sign_in,
            factors=self.second_factors,
            passkeys=self.passkeys,
            recorder=self.recorder,
            clock=self.clock,
        )

    @cached_property
    def data_export(self) -> DataExport:
        return DataExport(
            store=self.storage.profile,
            applications=self.data_requests,
            recorder=self.recorder,
            clock=self.clock,
            service=self.base_url,
        )

    # Sign-in providers and guests

    @cached_property
    def identity_accounts(self) -> IdentityAccounts:
        return IdentityAccounts(
            store=self.storage.profile,
            notifier=self.account_notifier,
            recorder=self.recorder,
            clock=self.clock,
            methods=self.enabled_methods,
        )

    @cached_property
    def provider_calls(self) -> ProviderCalls:
        return provider_calls(self.settings)

    @cached_property
    def openid_connect(self) -> OpenIdConnect:
        return OpenIdConnect(calls=self.provider_calls, clock=self.clock)

    @cached_property
    def jwt_tickets(self) -> JwtTickets:
        return JwtTickets(openid_connect=self.openid_connect, clock=self.clock)

    def enabled_providers(self) -> Mapping[str, Provider]:
        host = parse_origin(self.base_url, "http", "https").host
        return enabled_providers(self.settings.providers, host, self.settings.accounts.allowed_domains)

    def enabled_methods(self) -> EnabledMethods:
        providers = [name for name, one in self.enabled_providers().items() if one.signs_people_in]
        return EnabledMethods(
            by_email=self.settings.accounts.email_sign_in,
            by_username=self.settings.accounts.username_sign_in,
            providers=(*providers, *((GUEST_PROVIDER,) if self.settings.guests.enabled else ())),
        )

    @cached_property
    def platform_sign_in(self) -> PlatformSignIn:
        return PlatformSignIn(
            store=self.storage.profile,
            providers=self.enabled_providers,
            verifiers={
                # Calls of its own: a slow Web API must not delay sign-ins in browsers.
                ProviderProtocol.STEAM: SteamTickets(calls=provider_calls(self.settings), clock=self.clock),
                ProviderProtocol.OIDC: self.jwt_tickets,
                ProviderProtocol.TOKENS: self.jwt_tickets,
            },
            identities=self.identity_accounts,
            limiter=self.attempt_limiter,
            tally=self.tally,
            clock=self.clock,
        )

    @cached_property
    def guest_sign_in(self) -> GuestSignIn:
        store = self.storage.profile
        return GuestSignIn(
            store=store,
            identities=self.identity_accounts,
            challenges=DeviceChallenges(store=store, key=derive_key(self.instance_key, "guests"), clock=self.clock),
            proof_of_work=self.proof_of_work,
            quota=Quota(store=self.storage.throttle, clock=self.clock),
            policy=lambda: guest_policy(self.settings.guests),
        )

    @cached_property
    def provider_sign_in(self) -> ProviderSignIn:
        return ProviderSignIn(
            store=self.storage.profile,
            providers=self.enabled_providers,
            clients={
                ProviderProtocol.OIDC: self.openid_connect,
                ProviderProtocol.OAUTH: OAuthUsers(self.provider_calls),
                ProviderProtocol.STEAM: SteamOpenId(calls=self.provider_calls, clock=self.clock),
            },
            sealer=self.masters,
            key=derive_key(self.instance_key, "providers"),
            clock=self.clock,
            base_url=self.base_url,
        )

    @cached_property
    def own_permissions(self) -> OwnPermissionsLoader:
        return OwnPermissionsLoader(
            store=OwnPermissionsStore(self.storage.runner),
            authenticator=self.authenticator,
            permission_loader=self.permission_loader,
            clock=self.clock,
        )


def provider_calls(settings: Settings) -> ProviderCalls:
    return ProviderCalls(outbound_client(settings, PROVIDER_LIMITS))


def session_lifetimes(wanted: SessionSettings) -> SessionLifetimes:
    return SessionLifetimes(
        idle=wanted.idle_hours * HOUR,
        absolute=wanted.absolute_days * DAY,
        unless_stay=wanted.unless_stay_hours * HOUR,
        fresh=wanted.fresh_minutes * MINUTE,
    )


def email_sign_in_policy(wanted: AccountSettings) -> EmailSignInPolicy:
    return EmailSignInPolicy(
        is_on=wanted.email_sign_in,
        registers=wanted.email_sign_in and wanted.password_optional and wanted.registration,
        domains=wanted.allowed_domains,
    )


def registration_policy(wanted: AccountSettings) -> RegistrationPolicy:
    return RegistrationPolicy(is_open=wanted.registration, domains=wanted.allowed_domains)


def proof_of_work_policy(wanted: ProtectionSettings) -> ProofOfWorkPolicy:
    return ProofOfWorkPolicy(
        mode=ProofOfWorkMode(wanted.proof_of_work), difficulty=wanted.difficulty, attack_rate=wanted.attack_rate
    )


def enabled_documents(wanted: Mapping[str, TermsSettings]) -> Sequence[TermsDocument]:
    return [
        TermsDocument(
            document_id=document_id,
            title=one.title or document_id,
            url=one.url,
            version=one.version,
            application_ids=frozenset(map(int, one.applications)),
            countries=frozenset(one.countries),
            replaces=one.replaces,
            minimum_age=one.minimum_age,
        )
        for document_id, one in wanted.items()
        if one.enabled
    ]
