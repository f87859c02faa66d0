"""Second factors and passkeys of people."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from gatehouse.accounts.model import User
from gatehouse.accounts.phones.verification import PhoneNumbers
from gatehouse.accounts.second_factors.codes import RecoveryCodes
from gatehouse.accounts.second_factors.email_codes import EmailCodes
from gatehouse.accounts.second_factors.passkeys import Passkeys
from gatehouse.accounts.second_factors.phone_codes import PhoneCodes
from gatehouse.accounts.second_factors.totp import Totp
from gatehouse.accounts.second_factors.verification import SecondFactors
from gatehouse.accounts.second_factors.webauthn import RelyingParty
from gatehouse.app.services.accounts import AccountServices
from gatehouse.app.services.core import Core
from gatehouse.app.services.policies import phone_policy
from gatehouse.settings.grammar import parse_origin
from gatehouse.throttle.limits import AttemptLimiter


class FactorServices(Struct, frozen=True, kw_only=True, eq=False):
    recovery_codes: RecoveryCodes
    totp: Totp
    email_codes: EmailCodes
    passkeys: Passkeys
    phones: PhoneNumbers
    phone_codes: PhoneCodes
    second_factors: SecondFactors  # verifies any of them


def build_factors(
    core: Core,
    accounts: AccountServices,
    limiter: AttemptLimiter,
    has_protected_role: Callable[[User], Awaitable[bool]],
) -> FactorServices:
    store, notifier, clock = core.storage.second_factors, accounts.notifier, core.clock
    key = core.derive_key("factors")
    recovery = RecoveryCodes(store=store, key=key, notifier=notifier, clock=clock)
    totp = Totp(
        store=store,
        masters=core.masters,
        recovery=recovery,
        notifier=notifier,
        clock=clock,
        issuer=lambda: core.settings.branding.name,
    )
    email_codes = EmailCodes(
        store=store,
        key=key,
        recovery=recovery,
        limiter=limiter,
        notifier=notifier,
        clock=clock,
        methods=accounts.enabled_methods,
    )

    phones = PhoneNumbers(
        store=core.storage.phones,
        key=core.derive_key("phones"),
        composer=notifier.composer,
        notifier=notifier,
        clock=clock,
        policy=lambda: phone_policy(core.settings.phone, dev=core.dev),
    )
    phone_codes = PhoneCodes(
        store=core.storage.phones,
        phones=phones,
        recovery=recovery,
        notifier=notifier,
        clock=clock,
        has_protected_role=has_protected_role,
    )

    def party() -> RelyingParty:  # a command may have no address
        host, passkeys = parse_origin(core.base_url, "http", "https").host, core.settings.passkeys
        return RelyingParty(
            name=core.settings.branding.name,
            origin=core.base_url,
            host=host,
            former_host=passkeys.rp_id,
            listed=passkeys.related_origins,
        )

    return FactorServices(
        recovery_codes=recovery,
        totp=totp,
        email_codes=email_codes,
        passkeys=Passkeys(
            store=core.storage.passkeys,
            party=party,
            recovery=recovery,
            notifier=notifier,
            clock=clock,
            methods=accounts.enabled_methods,
        ),
        phones=phones,
        phone_codes=phone_codes,
        second_factors=SecondFactors(
            store=store,
            totp=totp,
            email_codes=email_codes,
            phone_codes=phone_codes,
            recovery=recovery,
            limiter=limiter,
            notifier=notifier,
            clock=clock,
        ),
    )
