"""Single sign-on: OAuth and OpenID Connect."""

import secrets
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from gatehouse.app.services.accounts import AccountServices
from gatehouse.app.services.audit import AuditServices
from gatehouse.app.services.core import DAY, Core, outbound_client
from gatehouse.app.services.keys import KeyServices
from gatehouse.app.services.permissions import PermissionServices
from gatehouse.app.services.policies import grant_lifetimes
from gatehouse.images.conversion import ImageConverter
from gatehouse.images.loading import ImageLoader
from gatehouse.oauth.access_token_verifier import AccessTokenVerifier
from gatehouse.oauth.api_tokens import ApiTokens, FoundToken, OpaqueTokens
from gatehouse.oauth.authorize.grant_creator import GrantCreator
from gatehouse.oauth.authorize.purpose import AuthorizeSignInPurpose
from gatehouse.oauth.authorize.pushed import PushedRequests
from gatehouse.oauth.authorize.service import AuthorizeService, Consents
from gatehouse.oauth.backchannel_logout import BackchannelLogoutWorker
from gatehouse.oauth.client_assertions import ClientAssertions
from gatehouse.oauth.client_auth import ClientAuthenticator, ClientSecretVerifier
from gatehouse.oauth.client_commands import Clients
from gatehouse.oauth.device import DeviceAuthorization
from gatehouse.oauth.device_sign_in import DeviceSignInPurpose
from gatehouse.oauth.document_hosts import DocumentHosts
from gatehouse.oauth.exchange import IdTokenExchange, UserJwtExchange
from gatehouse.oauth.given_grants import GivenGrants, GrantUses
from gatehouse.oauth.grants.authorization_code import AuthorizationCodeGrant
from gatehouse.oauth.grants.client_credentials import ClientCredentialsGrant
from gatehouse.oauth.grants.delegation import DelegationGrant
from gatehouse.oauth.grants.device_code import DeviceCodeGrant
from gatehouse.oauth.grants.refresh_token import RefreshTokenGrant
from gatehouse.oauth.grants.token_exchange import TokenExchangeGrant
from gatehouse.oauth.hourly_records import HourlyRecords
from gatehouse.oauth.id_tokens import IdTokens
from gatehouse.oauth.introspection import Introspection
from gatehouse.oauth.logout import LogoutRequests
from gatehouse.oauth.machines import MachineAuthenticator
from gatehouse.oauth.mapped_claims import MappedClaims
from gatehouse.oauth.metadata_clients import (
    DOCUMENT_LIMITS,
    DOCUMENT_RATES,
    KEYS_LIMITS,
    LOGO_LIMITS,
    MetadataClients,
)
from gatehouse.oauth.refresh_tokens import RefreshTokens
from gatehouse.oauth.revocation import Revocation
from gatehouse.oauth.token_endpoint import GrantAccess, TokenEndpoint
from gatehouse.oauth.token_issuer import TokenIssuer
from gatehouse.oauth.tokens import AccessTokens
from gatehouse.oauth.user_claims import UserClaims
from gatehouse.oauth.userinfo import UserInfo
from gatehouse.oauth.vocabulary import GrantName
from gatehouse.oauth.workloads.assertions import WorkloadAssertions
from gatehouse.oauth.workloads.keys import WorkloadKeys
from gatehouse.permissions.authentication.machine_accounts import ServiceAccountAuthenticator
from gatehouse.permissions.authentication.vouching import TokenOwner
from gatehouse.permissions.holdings import HoldingsReader
from gatehouse.throttle.limits import AttemptLimiter
from gatehouse.throttle.rate_limiter import RateLimiter
from gatehouse.web.pages.application_owners import ApplicationOwners
from gatehouse.web.pages.denial_reasons import DenialReasons

CACHE_KEY_BYTES: Final = 32

HasPendingTerms = Callable[[str, int], Awaitable[bool]]


class ClientServices(Struct, frozen=True, kw_only=True, eq=False):
    """Clients and how they, and service accounts in their place, prove who they are."""

    commands: Clients
    metadata: MetadataClients
    secrets: ClientSecretVerifier
    authenticator: ClientAuthenticator
    machine_accounts: ServiceAccountAuthenticator
    machines: MachineAuthenticator


class TokenServices(Struct, frozen=True, kw_only=True, eq=False):
    """What makes and verifies the tokens of clients."""

    verifier: AccessTokenVerifier
    refresh_tokens: RefreshTokens
    api_tokens: ApiTokens
    id_tokens: IdTokens
    issuer: TokenIssuer
    mapping: MappedClaims
    user_claims: UserClaims
    id_token_exchange: IdTokenExchange
    user_jwt_exchange: UserJwtExchange


class OAuthServices(Struct, frozen=True, kw_only=True, eq=False):
    clients: ClientServices
    tokens: TokenServices
    consents: Consents
    given_grants: GivenGrants
    owners: ApplicationOwners
    denial_reasons: DenialReasons
    authorize: AuthorizeService
    authorize_purpose: AuthorizeSignInPurpose
    device_authorization: DeviceAuthorization
    device_purpose: DeviceSignInPurpose
    token_endpoint: TokenEndpoint
    userinfo: UserInfo
    revocation: Revocation
    introspection: Introspection
    logout_requests: LogoutRequests
    backchannel_logout: BackchannelLogoutWorker


def build_oauth(
    core: Core,
    *,
    keys: KeyServices,
    audit: AuditServices,
    converter: ImageConverter,
    accounts: AccountServices,
    permissions: PermissionServices,
    guesses: AttemptLimiter,
    has_pending_terms: HasPendingTerms,
) -> OAuthServices:
    storage, recorder, clock, issuer = core.storage, core.recorder, core.clock, core.base_url
    rules, signer, token_verifier = permissions.login_rules, keys.signer, permissions.token_verifier
    clients = build_clients(
        core, audit=audit, converter=converter, accounts=accounts, permissions=permissions, guesses=guesses
    )
    tokens = build_tokens(core, keys=keys, accounts=accounts, permissions=permissions, clients=clients)
    authentication = clients.authenticator
    consents = Consents(store=storage.consents, clients=storage.clients, recorder=recorder, clock=clock)
    authorize = AuthorizeService(
        clients=storage.clients,
        metadata_clients=clients.metadata,
        pushed_requests=PushedRequests(store=storage.pushed_requests, clock=clock),
        consents=consents,
        grant_creator=GrantCreator(
            store=storage.grants,
            recorder=recorder,
            clock=clock,
            lifetimes=lambda: grant_lifetimes(core.settings.oauth),
        ),
        rules=rules,
        verifier=token_verifier,
        failures=core.failed_sign_ins,
        clock=clock,
        issuer=issuer,
    )
    owners = ApplicationOwners(applications=storage.applications, projects=storage.projects)
    return OAuthServices(
        clients=clients,
        tokens=tokens,
        consents=consents,
        given_grants=GivenGrants(
            store=storage.consents, grants=storage.grants, clients=storage.clients, recorder=recorder, clock=clock
        ),
        owners=owners,
        denial_reasons=DenialReasons(rules=rules, owners=owners),
        authorize=authorize,
        authorize_purpose=AuthorizeSignInPurpose(
            authorize=authorize, clients=storage.clients, accounts=storage.accounts
        ),
        device_authorization=DeviceAuthorization(
            store=storage.device_requests, clients=storage.clients, guesses=guesses, clock=clock
        ),
        device_purpose=DeviceSignInPurpose(
            store=storage.device_requests,
            clients=storage.clients,
            accounts=storage.accounts,
            consents=consents,
            rules=rules,
            recorder=recorder,
            clock=clock,
            family_seconds=lambda: core.settings.oauth.refresh_family_days * DAY,
        ),
        token_endpoint=build_token_endpoint(core, clients, tokens, permissions, has_pending_terms),
        userinfo=UserInfo(
            access_token_verifier=tokens.verifier, mapping=tokens.mapping, user_claims=tokens.user_claims
        ),
        revocation=Revocation(
            store=storage.grants,
            authentication=authentication,
            refresh_tokens=tokens.refresh_tokens,
            access_token_verifier=tokens.verifier,
            api_tokens=tokens.api_tokens,
            machines=clients.machines,
            recorder=recorder,
            clock=clock,
        ),
        introspection=Introspection(
            logins=storage.logins,
            authentication=authentication,
            access_keys=permissions.access_keys,
            refresh_tokens=tokens.refresh_tokens,
            access_token_verifier=tokens.verifier,
            api_tokens=tokens.api_tokens,
            clients=storage.clients,
            clock=clock,
            issuer=issuer,
        ),
        logout_requests=LogoutRequests(clients=storage.clients, verifier=token_verifier),
        backchannel_logout=BackchannelLogoutWorker(
            store=storage.logout_calls,
            clients=storage.clients,
            poster=outbound_client(core.settings),
            signer=signer,
            recorder=recorder,
            clock=clock,
            issuer=issuer,
        ),
    )


def token_owner(found: FoundToken) -> TokenOwner:
    """Return who a token for the service's own API is of, as callers of permission endpoints are told."""
    if found.account is not None:
        account = found.account
        return TokenOwner(user_id=account.user_id, project_id=account.project_id, ip_ranges=account.ip_ranges)
    return TokenOwner(application_id=None if found.client is None else found.client.application_id)


def build_clients(
    core: Core,
    *,
    audit: AuditServices,
    converter: ImageConverter,
    accounts: AccountServices,
    permissions: PermissionServices,
    guesses: AttemptLimiter,
) -> ClientServices:
    store, grants, recorder, clock = core.storage.clients, core.storage.grants, core.recorder, core.clock
    metadata = MetadataClients(
        store=store,
        outbound=outbound_client(core.settings, DOCUMENT_LIMITS),
        keys_outbound=outbound_client(core.settings, KEYS_LIMITS),
        images=ImageLoader(converter=converter, outbound=outbound_client(core.settings, LOGO_LIMITS)),
        hosts=lambda: DocumentHosts(
            hosts=core.settings.oauth.client_document_hosts, app_uris=core.settings.oauth.client_document_app_uris
        ),
        rate_limiter=RateLimiter(DOCUMENT_RATES, clock=clock),
        recorder=recorder,
        clock=clock,
    )
    client_secrets = ClientSecretVerifier(
        masters=core.masters,
        hashes=accounts.passwords,
        guesses=guesses,
        clock=clock,
        cache_key=secrets.token_bytes(CACHE_KEY_BYTES),
    )
    assertions = ClientAssertions(store=grants, clock=clock, issuer=core.base_url)
    workloads = WorkloadAssertions(
        keys=WorkloadKeys(outbound=outbound_client(core.settings, KEYS_LIMITS), clock=clock),
        store=grants,
        clock=clock,
        issuer=core.base_url,
    )
    authenticator = ClientAuthenticator(
        store=store,
        metadata_clients=metadata,
        secrets=client_secrets,
        assertions=assertions,
        workloads=workloads,
        guesses=guesses,
        refusals=audit.refusals,
    )
    machine_accounts = ServiceAccountAuthenticator(
        authenticator=permissions.authenticator, permission_loader=permissions.loader
    )
    return ClientServices(
        commands=Clients(
            store=store,
            grants=grants,
            master_keys=core.masters,
            recorder=recorder,
            clock=clock,
            issuer=core.base_url,
        ),
        metadata=metadata,
        secrets=client_secrets,
        authenticator=authenticator,
        machine_accounts=machine_accounts,
        machines=MachineAuthenticator(
            clients=authenticator,
            find_account=machine_accounts.find_live,
            verify_account_jwt=machine_accounts.verify_jwt,
            assertions=assertions,
        ),
    )


def build_tokens(
    core: Core,
    *,
    keys: KeyServices,
    accounts: AccountServices,
    permissions: PermissionServices,
    clients: ClientServices,
) -> TokenServices:
    grants, clock, issuer = core.storage.grants, core.clock, core.base_url
    signer, keyring, verifier = keys.signer, keys.keyring, permissions.token_verifier
    mapping = MappedClaims(HoldingsReader(permission_loader=permissions.loader, clock=clock))
    user_claims = UserClaims(accounts.profile_claims.claims_of)
    access_tokens = AccessTokens(core.derive_key("access-tokens"))
    access_token_verifier = AccessTokenVerifier(
        access_tokens=access_tokens, store=grants, keyring=keyring, clock=clock
    )
    refresh_tokens = RefreshTokens(
        store=grants, signer=signer, verifier=verifier, keyring=keyring, clock=clock, issuer=issuer
    )
    api_tokens = ApiTokens(
        grants=grants,
        clients=core.storage.clients,
        find_account=clients.machine_accounts.find_live,
        mapping=mapping,
        opaque_tokens=OpaqueTokens(core.derive_key("machine-tokens")),
        signer=signer,
        verifier=verifier,
        keyring=keyring,
        clock=clock,
        issuer=issuer,
    )
    id_tokens = IdTokens(signer=signer, mapping=mapping, user_claims=user_claims, issuer=issuer)
    return TokenServices(
        verifier=access_token_verifier,
        refresh_tokens=refresh_tokens,
        api_tokens=api_tokens,
        id_tokens=id_tokens,
        issuer=TokenIssuer(
            access_tokens=access_tokens,
            api_tokens=api_tokens,
            refresh_tokens=refresh_tokens,
            id_tokens=id_tokens,
            keyring=keyring,
            clock=clock,
        ),
        mapping=mapping,
        user_claims=user_claims,
        id_token_exchange=IdTokenExchange(
            accounts=core.storage.accounts,
            rules=permissions.login_rules,
            verifier=verifier,
            signer=signer,
            clock=clock,
            issuer=issuer,
        ),
        user_jwt_exchange=UserJwtExchange(
            access_token_verifier=access_token_verifier,
            rules=permissions.login_rules,
            uses=GrantUses(grants=core.storage.grants, clock=clock),
            signer=signer,
            clock=clock,
            issuer=issuer,
        ),
    )


def build_token_endpoint(
    core: Core,
    clients: ClientServices,
    tokens: TokenServices,
    permissions: PermissionServices,
    has_pending_terms: HasPendingTerms,
) -> TokenEndpoint:
    storage, recorder, clock = core.storage, core.recorder, core.clock
    grants, issuer = storage.grants, tokens.issuer
    access = GrantAccess(
        authentication=clients.authenticator,
        clients=storage.clients,
        rules=permissions.login_rules,
        has_pending_terms=has_pending_terms,
    )
    return TokenEndpoint(
        {
            GrantName.AUTHORIZATION_CODE: AuthorizationCodeGrant(
                store=grants, access=access, token_issuer=issuer, recorder=recorder, clock=clock
            ),
            GrantName.REFRESH_TOKEN: RefreshTokenGrant(
                store=grants,
                tokens=tokens.refresh_tokens,
                access=access,
                token_issuer=issuer,
                recorder=recorder,
                clock=clock,
                grace=lambda: core.settings.oauth.refresh_grace_seconds,
            ),
            GrantName.DEVICE_CODE: DeviceCodeGrant(
                store=storage.device_requests, grants=grants, access=access, token_issuer=issuer, clock=clock
            ),
            GrantName.CLIENT_CREDENTIALS: ClientCredentialsGrant(
                authentication=clients.machines,
                clients=storage.clients,
                tokens=tokens.api_tokens,
                records=HourlyRecords(grants=grants, clock=clock),
                recorder=recorder,
                clock=clock,
            ),
            GrantName.TOKEN_EXCHANGE: TokenExchangeGrant(
                authentication=clients.authenticator,
                access_token_verifier=tokens.verifier,
                user_jwts=tokens.user_jwt_exchange,
                id_tokens=tokens.id_token_exchange,
                delegation=DelegationGrant(
                    access_token_verifier=tokens.verifier,
                    api_tokens=tokens.api_tokens,
                    clients=storage.clients,
                    rules=permissions.login_rules,
                    has_pending_terms=has_pending_terms,
                    records=HourlyRecords(grants=grants, clock=clock),
                    uses=GrantUses(grants=grants, clock=clock),
                    recorder=recorder,
                    clock=clock,
                ),
                clock=clock,
            ),
        }
    )
