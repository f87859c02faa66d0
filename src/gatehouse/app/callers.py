"""The part of the composition root that tells who is calling a permission endpoint."""

from dataclasses import dataclass
from pathlib import Path

from gatehouse.app.guessing import guesses
from gatehouse.app.house import DAY, Services
from gatehouse.oauth.exchange import GrantLiveness
from gatehouse.permissions.callers.callers import PRINCIPAL_RATE_CLASS, CallerIdentifier
from gatehouse.permissions.callers.exchange import JwtExchange
from gatehouse.permissions.callers.key_proofs import AccessKeyVerifier
from gatehouse.permissions.callers.service_jwts import ServiceJwtVerifier, ServiceTokens
from gatehouse.permissions.callers.user_jwts import CallerJwtVerifier
from gatehouse.permissions.commands.service_tokens import EmailSecretCommands
from gatehouse.permissions.keys.files import KeyFiles
from gatehouse.permissions.keys.published import ApplicationKeyDirectory
from gatehouse.throttle.volume import RateLimit, RateLimiter
from gatehouse.tokens.verifying import TokenVerifier
from gatehouse.web.permissions.exchange import ExchangeJwtEndpoint
from gatehouse.web.permissions.public_keys import PublicKeyEndpoints
from gatehouse.web.routes.table import Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationServices:
    """Whatever proves who a caller is; built once, because it remembers."""

    application_keys: ApplicationKeyDirectory
    verifier: TokenVerifier
    service_jwts: ServiceJwtVerifier
    callers: CallerIdentifier


def authentication_services(house: Services) -> AuthenticationServices:
    application_keys = ApplicationKeyDirectory(
        store=house.storage.application_keys, files=key_files(house), keyring=house.keyring, clock=house.clock
    )
    verifier = TokenVerifier(
        issuer=house.settings.server.base_url,
        keyring=house.keyring,
        application_keys=application_keys,
        clock=house.clock,
    )
    service_jwts = ServiceJwtVerifier(store=house.storage.application_keys, verifier=verifier)
    callers = CallerIdentifier(
        store=house.storage.permissions,
        user_jwts=CallerJwtVerifier(verifier),
        service_jwts=service_jwts,
        keys=key_proofs(house),
        grants=GrantLiveness(store=house.storage.grants, clock=house.clock),
        volume=principal_rate_limit(house),
        clock=house.clock,
        grace=house.settings.tokens.expired_grace_days * DAY,
    )
    return AuthenticationServices(
        application_keys=application_keys, verifier=verifier, service_jwts=service_jwts, callers=callers
    )


def key_proofs(house: Services) -> AccessKeyVerifier:
    return AccessKeyVerifier(
        store=house.storage.application_keys, masters=house.masters, guesses=guesses(house), clock=house.clock
    )


def key_files(house: Services) -> KeyFiles:
    directory = house.settings.applications.keys_dir
    return KeyFiles(Path(directory) if directory else None, clock=house.clock)


def principal_rate_limit(house: Services) -> RateLimiter:
    """One principal may ask as often as one address may, from however many addresses he does (PA-15)."""
    rates = house.settings.rates
    return RateLimiter({PRINCIPAL_RATE_CLASS: RateLimit(rates.admin)} if rates.enabled else {}, clock=house.clock)


def service_tokens(house: Services) -> ServiceTokens:
    return ServiceTokens(
        store=house.storage.application_keys,
        signer=house.signer,
        recorder=house.recorder,
        clock=house.clock,
        issuer=house.settings.server.base_url,
        days=house.settings.tokens.service_jwt_days,
    )


def email_secrets(house: Services) -> EmailSecretCommands:
    return EmailSecretCommands(
        store=house.storage.permissions,
        applications=house.storage.applications,
        recorder=house.recorder,
        clock=house.clock,
    )


def public_endpoints(house: Services, known: AuthenticationServices) -> list[Endpoint]:
    """Those that ask for no rights: public keys, and exchangeJwt, for which an access key is enough."""
    exchange = JwtExchange(callers=known.callers, signer=house.signer, clock=house.clock)
    return [*PublicKeyEndpoints(known.application_keys).endpoints(), ExchangeJwtEndpoint(exchange).endpoint()]
