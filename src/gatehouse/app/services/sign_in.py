"""The ways people sign in, and what follows a sign-in."""

from collections.abc import Mapping

from msgspec import Struct

from gatehouse.accounts.email_sign_in import EmailSignIn
from gatehouse.accounts.guests.sign_in import DeviceChallenges, GuestSignIn
from gatehouse.accounts.login_result import LoginResult, LoginSettings
from gatehouse.accounts.own_account.reauthentication import Reauthentication
from gatehouse.accounts.short_tokens import ShortTokens
from gatehouse.accounts.sign_in import PasswordSignIn
from gatehouse.accounts.terms.acceptance import Terms
from gatehouse.app.services.accounts import AccountServices
from gatehouse.app.services.core import Core, outbound_client
from gatehouse.app.services.factors import FactorServices
from gatehouse.app.services.limits import LimitServices
from gatehouse.app.services.permissions import PermissionServices
from gatehouse.app.services.policies import email_sign_in_policy, enabled_documents, guest_policy
from gatehouse.app.services.provider_settings import configured_providers, enabled_providers
from gatehouse.mail.composer import Composer
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
from gatehouse.web.http.geoip import GeoIpLookup


class SignInServices(Struct, frozen=True, kw_only=True, eq=False):
    passwords: PasswordSignIn
    emails: EmailSignIn
    providers: ProviderSignIn
    platforms: PlatformSignIn
    guests: GuestSignIn
    reauthentication: Reauthentication
    terms: Terms
    login_result: LoginResult
    short_tokens: ShortTokens


def build_sign_in(
    core: Core,
    *,
    limits: LimitServices,
    composer: Composer,
    geoip: GeoIpLookup,
    accounts: AccountServices,
    factors: FactorServices,
    permissions: PermissionServices,
) -> SignInServices:
    storage, recorder, clock = core.storage, core.recorder, core.clock
    passwords = PasswordSignIn(
        store=storage.accounts,
        passwords=accounts.passwords,
        decoys=accounts.decoy_hashes,
        limiter=limits.attempts,
        device_cookies=accounts.device_cookies,
        tally=core.tally,
        failures=core.failed_sign_ins,
        accepts_usernames=lambda: core.settings.accounts.username_sign_in,
    )
    terms = Terms(
        read_accepted=storage.terms.terms_of_user,
        store_accepted=storage.terms.accept_terms,
        documents=lambda: enabled_documents(core.settings.terms),
        country_of=geoip.country,
        recorder=recorder,
        key=core.derive_key("terms"),
        clock=clock,
        base_url=core.base_url,
    )
    providers, platforms = build_provider_sign_in(core, accounts, limits)
    return SignInServices(
        passwords=passwords,
        emails=EmailSignIn(
            store=storage.registration,
            accounts=storage.accounts,
            links=accounts.email_links,
            composer=composer,
            recorder=recorder,
            sealer=core.masters,
            tally=core.tally,
            failures=core.failed_sign_ins,
            clock=clock,
            key=core.derive_key("email-sign-in"),
            policy=lambda: email_sign_in_policy(core.settings.accounts),
            has_protected_role=permissions.login_rules.has_protected_role,
        ),
        providers=providers,
        platforms=platforms,
        guests=GuestSignIn(
            store=storage.profile,
            identities=accounts.identities,
            challenges=DeviceChallenges(store=storage.profile, key=core.derive_key("guests"), clock=clock),
            proof_of_work=limits.proof_of_work,
            quota=limits.quota,
            policy=lambda: guest_policy(core.settings.guests),
        ),
        reauthentication=Reauthentication(
            store=storage.profile,
            sign_in=passwords,
            factors=factors.second_factors,
            passkeys=factors.passkeys,
            recorder=recorder,
            clock=clock,
        ),
        terms=terms,
        login_result=LoginResult(
            store=storage.logins,
            rules=permissions.login_rules,
            country_of=geoip.country,
            tokens=accounts.user_tokens,
            devices=permissions.devices,
            sample_factor=permissions.sample_factor,
            terms=terms,
            failures=core.failed_sign_ins,
            recorder=recorder,
            clock=clock,
            settings=LoginSettings(
                vendor_nick_field=core.settings.accounts.vendor_nick_field,
                jwt_without_factor=core.settings.tokens.jwt_without_factor,
            ),
        ),
        short_tokens=ShortTokens(store=storage.logins, accounts=storage.accounts, clock=clock),
    )


def build_provider_sign_in(
    core: Core, accounts: AccountServices, limits: LimitServices
) -> tuple[ProviderSignIn, PlatformSignIn]:
    """Sign-in with providers: in a browser, and with the ticket of a platform."""
    store, clock, calls = core.storage.profile, core.clock, provider_calls(core)
    openid_connect = OpenIdConnect(calls=calls, clock=clock)
    jwt_tickets = JwtTickets(openid_connect=openid_connect, clock=clock)

    def providers() -> Mapping[str, Provider]:
        return enabled_providers(core.settings)

    return (
        ProviderSignIn(
            store=store,
            providers=providers,
            configured=lambda: configured_providers(core.settings),
            clients={
                ProviderProtocol.OIDC: openid_connect,
                ProviderProtocol.OAUTH: OAuthUsers(calls),
                ProviderProtocol.STEAM: SteamOpenId(calls=calls, clock=clock),
            },
            sealer=core.masters,
            key=core.derive_key("providers"),
            clock=clock,
            base_url=core.base_url,
        ),
        PlatformSignIn(
            store=store,
            providers=providers,
            verifiers={
                # Calls of its own: a slow Web API must not delay sign-ins in browsers.
                ProviderProtocol.STEAM: SteamTickets(calls=provider_calls(core), clock=clock),
                ProviderProtocol.OIDC: jwt_tickets,
                ProviderProtocol.TOKENS: jwt_tickets,
            },
            identities=accounts.identities,
            limiter=limits.attempts,
            tally=core.tally,
            clock=clock,
        ),
    )


def provider_calls(core: Core) -> ProviderCalls:
    return ProviderCalls(outbound_client(core.settings, PROVIDER_LIMITS, more_allowed=core.provider_loopback))
