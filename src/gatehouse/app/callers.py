"""The part of the composition root that tells who is calling a permission endpoint."""

from dataclasses import dataclass
from pathlib import Path

from gatehouse.app.guessing import guesses
from gatehouse.app.house import DAY, House
from gatehouse.oauth.exchange import LiveGrants
from gatehouse.permissions.callers.callers import PRINCIPAL, Callers
from gatehouse.permissions.callers.exchange import JwtExchange
from gatehouse.permissions.callers.key_proofs import KeyProofs
from gatehouse.permissions.callers.service_jwts import ServiceJwts, ServiceTokens
from gatehouse.permissions.callers.user_jwts import UserJwts
from gatehouse.permissions.commands.service_tokens import EmailSecrets
from gatehouse.permissions.keys.files import KeyFiles
from gatehouse.permissions.keys.published import ApplicationKeys
from gatehouse.throttle.volume import Volume, VolumeLimit
from gatehouse.tokens.verifying import Verifier
from gatehouse.web.permissions.exchange import ExchangeJwtEndpoint
from gatehouse.web.permissions.public_keys import PublicKeyEndpoints
from gatehouse.web.routes.table import Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Proofs:
    """Whatever proves who a caller is; built once, because it remembers."""

    application_keys: ApplicationKeys
    verifier: Verifier
    service_jwts: ServiceJwts
    callers: Callers


def proofs(house: House) -> Proofs:
    application_keys = ApplicationKeys(
        store=house.storage.application_keys, files=key_files(house), keyring=house.keyring, clock=house.clock
    )
    verifier = Verifier(
        issuer=house.settings.server.base_url,
        keyring=house.keyring,
        application_keys=application_keys,
        clock=house.clock,
    )
    service_jwts = ServiceJwts(store=house.storage.application_keys, verifier=verifier)
    callers = Callers(
        store=house.storage.permissions,
        user_jwts=UserJwts(verifier),
        service_jwts=service_jwts,
        keys=key_proofs(house),
        grants=LiveGrants(store=house.storage.grants, clock=house.clock),
        volume=volume(house),
        clock=house.clock,
        grace=house.settings.tokens.expired_grace_days * DAY,
    )
    return Proofs(application_keys=application_keys, verifier=verifier, service_jwts=service_jwts, callers=callers)


def key_proofs(house: House) -> KeyProofs:
    return KeyProofs(
        store=house.storage.application_keys, masters=house.masters, guesses=guesses(house), clock=house.clock
    )


def key_files(house: House) -> KeyFiles:
    directory = house.settings.applications.keys_dir
    return KeyFiles(Path(directory) if directory else None, clock=house.clock)


def volume(house: House) -> Volume:
    """One principal may ask as often as one address may, from however many addresses he does (PA-15)."""
    rates = house.settings.rates
    return Volume({PRINCIPAL: VolumeLimit(rates.admin)} if rates.enabled else {}, clock=house.clock)


def service_tokens(house: House) -> ServiceTokens:
    return ServiceTokens(
        store=house.storage.application_keys,
        signer=house.signer,
        recorder=house.recorder,
        clock=house.clock,
        issuer=house.settings.server.base_url,
        days=house.settings.tokens.service_jwt_days,
    )


def email_secrets(house: House) -> EmailSecrets:
    return EmailSecrets(
        store=house.storage.permissions,
        applications=house.storage.applications,
        recorder=house.recorder,
        clock=house.clock,
    )


def open_endpoints(house: House, known: Proofs) -> list[Endpoint]:
    """Those that ask for no rights: public keys, and exchangeJwt, for which an access key is enough."""
    exchange = JwtExchange(callers=known.callers, signer=house.signer, clock=house.clock)
    return [*PublicKeyEndpoints(known.application_keys).endpoints(), ExchangeJwtEndpoint(exchange).endpoint()]
