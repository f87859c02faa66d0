"""Accounts of people: passwords, sessions, what administrators and their owners change."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from gatehouse.accounts.account_editor import AccountEditor
from gatehouse.accounts.administration import Administration
from gatehouse.accounts.decoys import DecoyHashes
from gatehouse.accounts.email_links import EmailLinks
from gatehouse.accounts.guests.sign_in import GuestExpiry
from gatehouse.accounts.importing.importer import Importer
from gatehouse.accounts.model import EnabledMethods
from gatehouse.accounts.own_account.claims import ProfileClaims
from gatehouse.accounts.own_account.erasure import Erasure
from gatehouse.accounts.own_account.identities import IdentityAccounts
from gatehouse.accounts.own_account.label_rules import LabelRules
from gatehouse.accounts.own_account.profile import AccountProfile
from gatehouse.accounts.password_rules import BreachedPasswordFile, PasswordRules
from gatehouse.accounts.passwords import PasswordCost, Passwords
from gatehouse.accounts.second_factors.notifications import AccountNotifier
from gatehouse.accounts.sessions import Sessions
from gatehouse.accounts.setup import Setup
from gatehouse.accounts.sign_in import DeviceCookies
from gatehouse.accounts.user_tokens import UserTokens
from gatehouse.app.services.core import DAY, SERVICE_ORIGIN, Core
from gatehouse.app.services.policies import guest_policy, session_lifetimes
from gatehouse.app.services.provider_settings import enabled_methods, provided_labels, provider_issuers
from gatehouse.images.loading import ImageLoader
from gatehouse.mail.composer import Composer
from gatehouse.settings.model import Settings
from gatehouse.throttle.quotas import Quota
from gatehouse.tokens.signer import Signer
from gatehouse.web.http.browser import BrowserSessions


class AccountServices(Struct, frozen=True, kw_only=True, eq=False):
    passwords: Passwords
    password_rules: PasswordRules
    decoy_hashes: DecoyHashes
    administration: Administration
    setup: Setup
    importer: Importer
    editor: AccountEditor
    erasure: Erasure
    label_rules: LabelRules
    guest_expiry: GuestExpiry
    notifier: AccountNotifier
    email_links: EmailLinks
    device_cookies: DeviceCookies
    sessions: Sessions
    browsers: BrowserSessions
    user_tokens: UserTokens
    profile: AccountProfile
    profile_claims: ProfileClaims
    identities: IdentityAccounts
    enabled_methods: Callable[[], EnabledMethods]


def build_accounts(
    core: Core, *, composer: Composer, images: ImageLoader, quota: Quota, signer: Signer
) -> AccountServices:
    storage, recorder, clock = core.storage, core.recorder, core.clock
    passwords, password_rules = build_passwords(core.settings), build_password_rules(core)
    decoy_hashes = DecoyHashes(store=storage.accounts, key=core.derive_key("decoy-hashes"), clock=clock)
    administration = Administration(
        store=storage.accounts, passwords=passwords, rules=password_rules, recorder=recorder, clock=clock
    )
    notifier = AccountNotifier(recorder=recorder, composer=composer)
    device_cookies = DeviceCookies(key=core.derive_key("device"), clock=clock)
    sessions = Sessions(
        store=storage.sessions,
        recorder=recorder,
        clock=clock,
        lifetimes=lambda: session_lifetimes(core.settings.sessions),
    )

    def methods() -> EnabledMethods:
        return enabled_methods(core.settings)

    return AccountServices(
        passwords=passwords,
        password_rules=password_rules,
        decoy_hashes=decoy_hashes,
        administration=administration,
        setup=Setup(store=storage.accounts, administration=administration, recorder=recorder, clock=clock),
        importer=Importer(
            judge=storage.imports.judge_candidates,
            store=storage.imports.import_candidates,
            issuers=lambda: provider_issuers(core.settings.providers),
            decoys=decoy_hashes,
            sealer=core.masters,
            recorder=recorder,
            clock=clock,
        ),
        editor=AccountEditor(store=storage.profile, composer=composer, recorder=recorder),
        erasure=Erasure(store=storage.profile, recorder=recorder, clock=clock),
        label_rules=LabelRules(
            store=storage.profile,
            recorder=recorder,
            origin=SERVICE_ORIGIN,
            clock=clock,
            rules=lambda: provided_labels(core.settings.providers) if core.live_settings.is_complete else None,
        ),
        guest_expiry=GuestExpiry(
            store=storage.profile, recorder=recorder, clock=clock, policy=lambda: guest_policy(core.settings.guests)
        ),
        notifier=notifier,
        email_links=EmailLinks(
            store=storage.registration,
            composer=composer,
            recorder=recorder,
            quota=quota,
            device_cookies=device_cookies,
            sealer=core.masters,
            clock=clock,
        ),
        device_cookies=device_cookies,
        sessions=sessions,
        browsers=BrowserSessions(sessions=sessions, csrf_key=core.derive_key("csrf"), base_url=core.base_url),
        user_tokens=UserTokens(
            store=storage.accounts,
            signer=signer,
            recorder=recorder,
            clock=clock,
            issuer=core.base_url,
            lifetime=lambda: core.settings.tokens.user_jwt_days * DAY,
        ),
        profile=AccountProfile(
            store=storage.profile,
            images=images,
            recorder=recorder,
            clock=clock,
            offers_usernames=lambda: core.settings.accounts.username_sign_in,
            history_seconds=lambda: core.settings.sessions.history_days * DAY,
            failures=storage.failed_sign_ins,
        ),
        profile_claims=ProfileClaims(store=storage.profile, recorder=recorder, base_url=core.base_url),
        identities=IdentityAccounts(
            store=storage.profile,
            notifier=notifier,
            recorder=recorder,
            failures=core.failed_sign_ins,
            clock=clock,
            methods=methods,
        ),
        enabled_methods=methods,
    )


def build_passwords(settings: Settings) -> Passwords:
    cost = settings.passwords
    return Passwords(
        PasswordCost(
            memory_kib=cost.memory_kib,
            time_cost=cost.time_cost,
            parallelism=cost.parallelism,
            workers=cost.workers,
        ),
        pepper=settings.security.password_pepper.reveal().encode(),
    )


def build_password_rules(core: Core) -> PasswordRules:
    path = core.settings.accounts.breached_passwords
    return PasswordRules(
        breached=BreachedPasswordFile(Path(path)) if path else None,
        service_words=lambda: (
            core.base_url,
            core.settings.branding.name,
            core.settings.mail.from_name,
            "gatehouse",
        ),
    )
