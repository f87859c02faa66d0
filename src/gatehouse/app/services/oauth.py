"""Single sign-on: OAuth and OpenID Connect."""

import secrets
from functools import cached_property
from typing import Final

from gatehouse.app.services.accounts import AccountServices
from gatehouse.app.services.core import DAY, outbound_client
from gatehouse.images.loading import ImageLoader
from gatehouse.keys.sealing import derive_key
from gatehouse.oauth.access_token_verifier import AccessTokenVerifier
from gatehouse.oauth.api_tokens import ApiTokens, OpaqueTokens
from gatehouse.oauth.authorize.grant_creator import GrantCreator, GrantLifetimes
from gatehouse.oauth.authorize.purpose import AuthorizeSignInPurpose
from gatehouse.oauth.authorize.service import AuthorizeService, Consents
from gatehouse.oauth.client_assertions import ClientAssertions
from gatehouse.oauth.client_auth import ClientAuthenticator, ClientSecretVerifier
from gatehouse.oauth.client_origins import ClientOriginCache
from gatehouse.oauth.device import DeviceAuthorization
from gatehouse.oauth.device_sign_in import DeviceSignInPurpose
from gatehouse.oauth.exchange import IdTokenExchange, UserJwtExchange
from gatehouse.oauth.grants.authorization_code import AuthorizationCodeGrant
from gatehouse.oauth.grants.client_credentials import ClientCredentialsGrant
from gatehouse.oauth.grants.device_code import DeviceCodeGrant
from gatehouse.oauth.grants.refresh_token import RefreshTokenGrant
from gatehouse.oauth.grants.token_exchange import TokenExchangeGrant
from gatehouse.oauth.id_tokens import IdTokens
from gatehouse.oauth.introspection import Introspection
from gatehouse.oauth.logout import LogoutRequests
from gatehouse.oauth.machines import MachineAuthenticator
from gatehouse.oauth.mapped_claims import MappedClaims
from gatehouse.oauth.metadata_clients import DOCUMENT_LIMITS, DOCUMENT_RATES, LOGO_LIMITS, MetadataClients
from gatehouse.oauth.refresh_tokens import RefreshTokens
from gatehouse.oauth.revocation import Revocation
from gatehouse.oauth.token_endpoint import GrantAccess, GrantType, TokenEndpoint
from gatehouse.oauth.token_issuer import TokenIssuer
from gatehouse.oauth.tokens import AccessTokens
from gatehouse.oauth.user_claims import UserClaims
from gatehouse.oauth.userinfo import UserInfo
from gatehouse.oauth.vocabulary import GrantName
from gatehouse.permissions.authentication.machine_accounts import ServiceAccountAuthenticator
from gatehouse.permissions.holdings import HoldingsReader
from gatehouse.settings.model import OAuthSettings
from gatehouse.throttle.rate_limiter import RateLimiter
from gatehouse.web.pages.access_denied import DenialReasons
from gatehouse.web.pages.consent import ApplicationOwners

CACHE_KEY_BYTES: Final = 32


class OAuthServices(AccountServices):
    # Authorize

    @cached_property
    def consents(self) -> Consents:
        return Consents(store=self.storage.consents, recorder=self.recorder, clock=self.clock)

    @cached_property
    def grant_creator(self) -> GrantCreator:
        return GrantCreator(
            store=self.storage.grants,
            recorder=self.recorder,
            clock=self.clock,
            lifetimes=lambda: grant_lifetimes(self.settings.oauth),
        )

    @cached_property
    def authorize(self) -> AuthorizeService:
        return AuthorizeService(
            clients=self.storage.clients,
            metadata_clients=self.metadata_clients,
            consents=self.consents,
            grant_creator=self.grant_creator,
            rules=self.login_rules,
            verifier=self.token_verifier,
            clock=self.clock,
            issuer=self.base_url,
        )

    @cached_property
    def metadata_clients(self) -> MetadataClients:
        return MetadataClients(
            store=self.storage.clients,
            outbound=outbound_client(self.settings, DOCUMENT_LIMITS),
            images=ImageLoader(converter=self.image_converter, outbound=outbound_client(self.settings, LOGO_LIMITS)),
            hosts=frozenset(self.settings.oauth.client_document_hosts),
            rate_limiter=RateLimiter(DOCUMENT_RATES, clock=self.clock),
            recorder=self.recorder,
            clock=self.clock,
        )

    @cached_property
    def authorize_purpose(self) -> AuthorizeSignInPurpose:
        return AuthorizeSignInPurpose(
            authorize=self.authorize, clients=self.storage.clients, accounts=self.storage.accounts
        )

    @cached_property
    def application_owners(self) -> ApplicationOwners:
        return ApplicationOwners(applications=self.storage.applications, projects=self.storage.projects)

    @cached_property
    def denial_reasons(self) -> DenialReasons:
        return DenialReasons(self.login_rules)

    @cached_property
    def client_origins(self) -> ClientOriginCache:
        return ClientOriginCache(store=self.storage.clients, clock=self.clock)

    # Devices without a browser (RFC 8628)

    @cached_property
    def device_purpose(self) -> DeviceSignInPurpose:
        return DeviceSignInPurpose(
            store=self.storage.device_requests,
            clients=self.storage.clients,
            accounts=self.storage.accounts,
            consents=self.consents,
            rules=self.login_rules,
            recorder=self.recorder,
            clock=self.clock,
            family_seconds=lambda: self.settings.oauth.refresh_family_days * DAY,
        )

    @cached_property
    def device_authorization(self) -> DeviceAuthorization:
        return DeviceAuthorization(
            store=self.storage.device_requests,
            clients=self.storage.clients,
            guesses=self.attempt_limiter,
            clock=self.clock,
        )

    # Client authentication

    @cached_property
    def client_secrets(self) -> ClientSecretVerifier:
        return ClientSecretVerifier(
            masters=self.masters,
            hashes=self.passwords,
            guesses=self.attempt_limiter,
            clock=self.clock,
            cache_key=secrets.token_bytes(CACHE_KEY_BYTES),
        )

    @cached_property
    def client_assertions(self) -> ClientAssertions:
        return ClientAssertions(store=self.storage.grants, clock=self.clock, issuer=self.base_url)

    @cached_property
    def machine_accounts(self) -> ServiceAccountAuthenticator:
        return ServiceAccountAuthenticator(authenticator=self.authenticator, permission_loader=self.permission_loader)

    @cached_property
    def machine_authenticator(self) -> MachineAuthenticator:
        return MachineAuthenticator(
            clients=self.client_authenticator,
            find_account=self.machine_accounts.find_live,
            verify_account_jwt=self.machine_accounts.verify_jwt,
            assertions=self.client_assertions,
        )

    @cached_property
    def client_authenticator(self) -> ClientAuthenticator:
        return ClientAuthenticator(
            store=self.storage.clients,
            metadata_clients=self.metadata_clients,
            secrets=self.client_secrets,
            assertions=self.client_assertions,
            guesses=self.attempt_limiter,
            refusals=self.refusal_log,
        )

    # Tokens

    @cached_property
    def holdings_reader(self) -> HoldingsReader:
        return HoldingsReader(permission_loader=self.permission_loader, clock=self.clock)

    @cached_property
    def claim_mapping(self) -> MappedClaims:
        return MappedClaims(self.holdings_reader)

    @cached_property
    def api_tokens(self) -> ApiTokens:
        return ApiTokens(
            grants=self.storage.grants,
            clients=self.storage.clients,
            find_account=self.machine_accounts.find_live,
            mapping=self.claim_mapping,
            opaque_tokens=OpaqueTokens(derive_key(self.instance_key, "machine-tokens")),
            signer=self.signer,
            verifier=self.token_verifier,
            keyring=self.keyring,
            clock=self.clock,
            issuer=self.base_url,
        )

    @cached_property
    def user_claims(self) -> UserClaims:
        return UserClaims(self.profile_claims.claims_of)

    @cached_property
    def access_tokens(self) -> AccessTokens:
        return AccessTokens(derive_key(self.instance_key, "access-tokens"))

    @cached_property
    def access_token_verifier(self) -> AccessTokenVerifier:
        return AccessTokenVerifier(
            access_tokens=self.access_tokens, store=self.storage.grants, keyring=self.keyring, clock=self.clock
        )

    @cached_property
    def refresh_tokens(self) -> RefreshTokens:
        return RefreshTokens(
            store=self.storage.grants,
            signer=self.signer,
            verifier=self.token_verifier,
            clock=self.clock,
            issuer=self.base_url,
        )

    @cached_property
    def id_tokens(self) -> IdTokens:
        return IdTokens(
            signer=self.signer, mapping=self.claim_mapping, user_claims=self.user_claims, issuer=self.base_url
        )

    @cached_property
    def token_issuer(self) -> TokenIssuer:
        return TokenIssuer(
            access_tokens=self.access_tokens,
            api_tokens=self.api_tokens,
            refresh_tokens=self.refresh_tokens,
            id_tokens=self.id_tokens,
            keyring=self.keyring,
            clock=self.clock,
        )

    @cached_property
    def token_endpoint(self) -> TokenEndpoint:
        return TokenEndpoint(self.grant_types)

    @cached_property
    def grant_types(self) -> dict[str, GrantType]:
        store, issuer, recorder, clock = self.storage.grants, self.token_issuer, self.recorder, self.clock
        access = GrantAccess(
            authentication=self.client_authenticator,
            clients=self.storage.clients,
            rules=self.login_rules,
            has_pending_terms=self.terms.is_pending_for,
        )
        return {
            GrantName.AUTHORIZATION_CODE: AuthorizationCodeGrant(
                store=store, access=access, token_issuer=issuer, recorder=recorder, clock=clock
            ),
            GrantName.REFRESH_TOKEN: RefreshTokenGrant(
                store=store,
                tokens=self.refresh_tokens,
                access=access,
                token_issuer=issuer,
                recorder=recorder,
                clock=clock,
                grace=lambda: self.settings.oauth.refresh_grace_seconds,
            ),
            GrantName.DEVICE_CODE: DeviceCodeGrant(
                store=self.storage.device_requests, grants=store, access=access, token_issuer=issuer, clock=clock
            ),
            GrantName.CLIENT_CREDENTIALS: ClientCredentialsGrant(
                authentication=self.machine_authenticator,
                clients=self.storage.clients,
                grants=store,
                tokens=self.api_tokens,
                recorder=recorder,
                clock=clock,
            ),
            GrantName.TOKEN_EXCHANGE: TokenExchangeGrant(
                authentication=self.client_authenticator,
                access_token_verifier=self.access_token_verifier,
                user_jwts=self.user_jwt_exchange,
                id_tokens=self.id_token_exchange,
                clock=clock,
            ),
        }

    @cached_property
    def userinfo(self) -> UserInfo:
        return UserInfo(
            access_token_verifier=self.access_token_verifier,
            mapping=self.claim_mapping,
            user_claims=self.user_claims,
        )

    @cached_property
    def revocation(self) -> Revocation:
        return Revocation(
            store=self.storage.grants,
            authentication=self.client_authenticator,
            refresh_tokens=self.refresh_tokens,
            access_token_verifier=self.access_token_verifier,
            api_tokens=self.api_tokens,
            machines=self.machine_authenticator,
            recorder=self.recorder,
            clock=self.clock,
        )

    @cached_property
    def introspection(self) -> Introspection:
        return Introspection(
            logins=self.storage.logins,
            authentication=self.client_authenticator,
            access_keys=self.access_key_verifier,
            refresh_tokens=self.refresh_tokens,
            access_token_verifier=self.access_token_verifier,
            api_tokens=self.api_tokens,
            clients=self.storage.clients,
            clock=self.clock,
            issuer=self.base_url,
        )

    @cached_property
    def id_token_exchange(self) -> IdTokenExchange:
        return IdTokenExchange(
            accounts=self.storage.accounts,
            rules=self.login_rules,
            verifier=self.token_verifier,
            signer=self.signer,
            clock=self.clock,
            issuer=self.base_url,
        )

    @cached_property
    def user_jwt_exchange(self) -> UserJwtExchange:
        return UserJwtExchange(
            access_token_verifier=self.access_token_verifier,
            rules=self.login_rules,
            signer=self.signer,
            clock=self.clock,
            issuer=self.base_url,
        )

    @cached_property
    def logout_requests(self) -> LogoutRequests:
        return LogoutRequests(clients=self.storage.clients, verifier=self.token_verifier)


def grant_lifetimes(wanted: OAuthSettings) -> GrantLifetimes:
    return GrantLifetimes(code_seconds=wanted.code_seconds, family_seconds=wanted.refresh_family_days * DAY)
