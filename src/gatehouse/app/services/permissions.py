"""Who is calling, and what they may do."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from gatehouse.accounts.bans.devices import SignInDevices
from gatehouse.accounts.bans.model import UserBan
from gatehouse.accounts.sample_factor import SampleFactorRule
from gatehouse.app.services.core import DAY, Core
from gatehouse.app.services.keys import KeyServices
from gatehouse.app.services.limits import LimitServices
from gatehouse.app.services.policies import guest_policy
from gatehouse.oauth.exchange import GrantLiveness
from gatehouse.permissions.authentication.access_keys import AccessKeyVerifier
from gatehouse.permissions.authentication.application_keys import ApplicationKeyDirectory, KeyFiles
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.jwt_exchange import JwtExchange
from gatehouse.permissions.authentication.jwts import CallerJwtVerifier
from gatehouse.permissions.authentication.service_jwts import ServiceJwtVerifier, ServiceTokens
from gatehouse.permissions.authentication.vouching import TokenOwner
from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.login_rules import LoginRules
from gatehouse.permissions.rights.ban_ranks import BanRanks
from gatehouse.storage.permissions.sample_factors import SampleFactorStorage
from gatehouse.tokens.verifier import TokenVerifier

MEGABYTE: Final = 2**20


class PermissionServices(Struct, frozen=True, kw_only=True, eq=False):
    loader: PermissionLoader
    ban_ranks: BanRanks
    devices: SignInDevices
    sample_factor: SampleFactorRule
    application_keys: ApplicationKeyDirectory
    token_verifier: TokenVerifier
    access_keys: AccessKeyVerifier
    caller_jwts: CallerJwtVerifier
    authenticator: Authenticator
    login_rules: LoginRules  # what every kind of sign-in checks about applications
    jwt_exchange: JwtExchange
    service_tokens: ServiceTokens
    admits_guests: Callable[[tuple[int, ...]], bool]


def build_permissions(
    core: Core,
    keys: KeyServices,
    limits: LimitServices,
    find_token_owner: Callable[[str, str], Awaitable[TokenOwner | None]],
) -> PermissionServices:
    storage, clock = core.storage, core.clock
    loader = PermissionLoader(
        store=storage.permissions, clock=clock, cache_bytes=core.settings.permissions.cache_mb * MEGABYTE
    )
    ban_ranks = BanRanks(permission_loader=loader, clock=clock)
    devices = SignInDevices(store=storage.bans, key=core.ban_key, clock=clock)
    application_keys = build_application_keys(core, keys)
    token_verifier = TokenVerifier(
        issuer=core.base_url, keyring=keys.keyring, application_keys=application_keys, clock=clock
    )
    access_keys = AccessKeyVerifier(
        store=storage.application_keys, masters=core.masters, limiter=limits.attempts, clock=clock
    )
    caller_jwts = CallerJwtVerifier(token_verifier)
    service_jwts = ServiceJwtVerifier(store=storage.application_keys, jwts=caller_jwts)

    async def find_device_bans(user_id: str, factor: str) -> tuple[UserBan, ...]:
        """Return the bans of the device whose authors could ban the person."""
        return await ban_ranks.covering(user_id, await devices.find_bans(factor))

    def admits_guests(application_ids: tuple[int, ...]) -> bool:
        """Whether guests may sign in to these applications now."""
        return guest_policy(core.settings.guests).admits(application_ids)

    authenticator = Authenticator(
        permission_loader=loader,
        user_jwts=caller_jwts,
        service_jwts=service_jwts,
        access_keys=access_keys,
        find_token_owner=find_token_owner,
        is_grant_live=GrantLiveness(store=storage.grants, clock=clock).is_live,
        find_device_bans=find_device_bans,
        volume=limits.principals,
        clock=clock,
        grace=core.settings.tokens.expired_grace_days * DAY,
    )
    login_rules = LoginRules(
        store=storage.permissions,
        permission_loader=loader,
        service_jwts=service_jwts,
        ban_ranks=ban_ranks,
        admits_guests=admits_guests,
        clock=clock,
    )
    return PermissionServices(
        loader=loader,
        ban_ranks=ban_ranks,
        devices=devices,
        sample_factor=SampleFactorRule(store=SampleFactorStorage(storage.runner), clock=clock, accepts_none=core.dev),
        application_keys=application_keys,
        token_verifier=token_verifier,
        access_keys=access_keys,
        caller_jwts=caller_jwts,
        authenticator=authenticator,
        login_rules=login_rules,
        jwt_exchange=JwtExchange(
            authenticator=authenticator,
            find_refusal=login_rules.find_refusal,
            signer=keys.signer,
            clock=clock,
        ),
        service_tokens=ServiceTokens(
            store=storage.application_keys,
            signer=keys.signer,
            recorder=core.recorder,
            clock=clock,
            issuer=core.base_url,
            days=lambda: core.settings.tokens.service_jwt_days,
        ),
        admits_guests=admits_guests,
    )


def build_application_keys(core: Core, keys: KeyServices) -> ApplicationKeyDirectory:
    directory = core.settings.applications.keys_dir
    return ApplicationKeyDirectory(
        store=core.storage.application_keys,
        files=KeyFiles(Path(directory) if directory else None, clock=core.clock),
        keyring=keys.keyring,
        clock=core.clock,
    )
