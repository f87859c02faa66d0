"""The part of the composition root that tells who is calling a permission endpoint."""

from dataclasses import dataclass
from pathlib import Path

from gatehouse.app.services.core import DAY, Services, guesses
from gatehouse.oauth.exchange import GrantLiveness
from gatehouse.permissions.authentication.application_keys import ApplicationKeyDirectory, KeyFiles
from gatehouse.permissions.authentication.callers import PRINCIPAL_RATE_CLASS, CallerIdentifier, JwtExchange
from gatehouse.permissions.authentication.jwts import CallerJwtVerifier, ServiceJwtVerifier, ServiceTokens
from gatehouse.permissions.authentication.vouching import AccessKeyVerifier
from gatehouse.permissions.commands.application_credentials import EmailSecretCommands
from gatehouse.throttle.rate_limiter import RateLimit, RateLimiter
from gatehouse.tokens.verifier import TokenVerifier
from gatehouse.web.api.permissions.application_keys import ExchangeJwtEndpoint, PublicKeyEndpoints
from gatehouse.web.http.routing import Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationServices:
    """Whatever proves who a caller is; built once, because it remembers."""

    application_keys: ApplicationKeyDirectory
    verifier: TokenVerifier
    service_jwts: ServiceJwtVerifier
    callers: CallerIdentifier


def authentication_services(services: Services) -> AuthenticationServices:
    application_keys = ApplicationKeyDirectory(
        store=services.storage.application_keys,
        files=key_files(services),
        keyring=services.keyring,
        clock=services.clock,
    )
    verifier = TokenVerifier(
        issuer=services.settings.server.base_url,
        keyring=services.keyring,
        application_keys=application_keys,
        clock=services.clock,
    )
    service_jwts = ServiceJwtVerifier(store=services.storage.application_keys, verifier=verifier)
    callers = CallerIdentifier(
        permission_loader=services.permission_loader,
        user_jwts=CallerJwtVerifier(verifier),
        service_jwts=service_jwts,
        access_keys=key_proofs(services),
        is_grant_live=GrantLiveness(store=services.storage.grants, clock=services.clock).is_live,
        volume=principal_rate_limit(services),
        clock=services.clock,
        grace=services.settings.tokens.expired_grace_days * DAY,
    )
    return AuthenticationServices(
        application_keys=application_keys, verifier=verifier, service_jwts=service_jwts, callers=callers
    )


def key_proofs(services: Services) -> AccessKeyVerifier:
    return AccessKeyVerifier(
        store=services.storage.application_keys,
        masters=services.masters,
        limiter=guesses(services),
        clock=services.clock,
    )


def key_files(services: Services) -> KeyFiles:
    directory = services.settings.applications.keys_dir
    return KeyFiles(Path(directory) if directory else None, clock=services.clock)


def principal_rate_limit(services: Services) -> RateLimiter:
    """One principal may ask as often as one address may, from however many addresses he does (PA-15)."""
    rates = services.settings.rates
    return RateLimiter({PRINCIPAL_RATE_CLASS: RateLimit(rates.admin)} if rates.enabled else {}, clock=services.clock)


def service_tokens(services: Services) -> ServiceTokens:
    return ServiceTokens(
        store=services.storage.application_keys,
        signer=services.signer,
        recorder=services.recorder,
        clock=services.clock,
        issuer=services.settings.server.base_url,
        days=services.settings.tokens.service_jwt_days,
    )


def email_secrets(services: Services) -> EmailSecretCommands:
    return EmailSecretCommands(
        store=services.storage.permissions,
        applications=services.storage.applications,
        recorder=services.recorder,
        clock=services.clock,
    )


def public_endpoints(services: Services, authentication: AuthenticationServices) -> list[Endpoint]:
    """Those that ask for no rights: public keys, and exchangeJwt, for which an access key is enough."""
    exchange = JwtExchange(caller_identifier=authentication.callers, signer=services.signer, clock=services.clock)
    return [
        *PublicKeyEndpoints(authentication.application_keys).endpoints(),
        ExchangeJwtEndpoint(exchange).endpoint(),
    ]
