"""Sign-in providers as their settings describe them."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from gatehouse.accounts.identities import IdentityRules, TagRule
from gatehouse.accounts.importing.checks import ProviderIssuer
from gatehouse.accounts.model import GUEST_PROVIDER, EnabledMethods, ProvidedLabels
from gatehouse.fields.derive import copy_as
from gatehouse.providers.kinds import PRESETS
from gatehouse.providers.model import Provider
from gatehouse.providers.steam_tickets import purchase_of_app
from gatehouse.settings.grammar import parse_origin
from gatehouse.settings.model import Settings
from gatehouse.settings.providers import KEEP, ProviderSettings

# Names of providers in exports of other systems, and the kind of each; where the subject is the provider's own.
EXPORTED_PROVIDERS: Final = {
    "google.com": "google",
    "google-oauth2": "google",
    "apple.com": "apple",
    "github.com": "github",
}
TENANT_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


def provider_issuers(wanted: Mapping[str, ProviderSettings]) -> Mapping[str, ProviderIssuer]:
    """Return the issuers of imported identities, by the ID of the provider and by the names that exports have."""
    known = {name: ProviderIssuer(name, identity_issuer(one)) for name, one in wanted.items()}
    for exported, kind in EXPORTED_PROVIDERS.items():
        of_kind = [name for name, one in wanted.items() if one.kind == kind]
        if len(of_kind) == 1:
            known.setdefault(exported, known[of_kind[0]])
    return known


def identity_issuer(wanted: ProviderSettings) -> str:
    """Return the issuer that a sign-in with the provider finds identities by; empty if it depends on the person."""
    issuer = wanted.issuer or PRESETS[wanted.kind].issuer
    match wanted.kind:
        case "steam":
            return f"{issuer.rstrip('/')}/openid"
        case "microsoft":
            return f"{issuer.rstrip('/')}/{wanted.tenant}/v2.0" if TENANT_ID.fullmatch(wanted.tenant) else ""
        case _:
            return issuer.rstrip("/")


def enabled_providers(settings: Settings) -> Mapping[str, Provider]:
    """Return the enabled providers by their ID."""
    return {name: one for name, one in configured_providers(settings).items() if settings.providers[name].enabled}


def configured_providers(settings: Settings) -> Mapping[str, Provider]:
    """Return all providers by their ID, also those that are turned off."""
    host = parse_origin(settings.server.base_url, "http", "https").host
    account_domains = settings.accounts.allowed_domains
    return {name: provider_of(name, one, host, account_domains) for name, one in settings.providers.items()}


def enabled_methods(settings: Settings) -> EnabledMethods:
    providers = [name for name, one in enabled_providers(settings).items() if one.signs_people_in]
    return EnabledMethods(
        by_email=settings.accounts.email_sign_in,
        by_username=settings.accounts.username_sign_in,
        providers=(*providers, *((GUEST_PROVIDER,) if settings.guests.enabled else ())),
    )


def provided_labels(wanted: Mapping[str, ProviderSettings]) -> Mapping[str, ProvidedLabels]:
    """Return what each provider may set, also one that is turned off."""
    return {name: labels_of_provider(one) for name, one in wanted.items()}


def labels_of_provider(wanted: ProviderSettings) -> ProvidedLabels:
    rules = [tag_rule_of(text) for text in wanted.tags]
    apps = {audience for audiences in audiences_of(wanted.tickets).values() for audience in audiences}
    return ProvidedLabels(
        tags={rule.tag: any(one.keep for one in rules if one.tag == rule.tag) for rule in rules},
        purchases=frozenset(map(purchase_of_app, apps)) if wanted.kind == "steam" else frozenset(),
    )


def provider_of(provider_id: str, wanted: ProviderSettings, host: str, account_domains: tuple[str, ...]) -> Provider:
    preset = PRESETS[wanted.kind]
    name = wanted.name or preset.title or provider_id
    issuer = (wanted.issuer or preset.issuer).rstrip("/")
    rules = IdentityRules(
        provider_id=provider_id,
        provider_name=name,
        creates_accounts=wanted.create_accounts,
        domains=wanted.allowed_domains,
        account_domains=account_domains,
        tags=tuple(map(tag_rule_of, wanted.tags)),
    )
    return copy_as(
        Provider,
        wanted,
        provider_id=provider_id,
        name=name,
        issuer=issuer,
        client_secret=wanted.client_secret.reveal(),
        private_key=wanted.private_key.reveal(),
        scopes=wanted.scopes or preset.scopes,
        application_ids=frozenset(map(int, wanted.applications)),
        audiences=audiences_of(wanted.tickets),
        ticket_identity=wanted.ticket_identity or host,
        publisher_key=wanted.publisher_key.reveal(),
        keys_url=keys_url_of(wanted, issuer),
        rules=rules,
    )


def keys_url_of(wanted: ProviderSettings, issuer: str) -> str:
    """Return the address of the issuer's keys; "" for providers that announce it, or have none."""
    keys_path = PRESETS[wanted.kind].keys_path
    if keys_path:
        return f"{issuer}{keys_path}"
    if wanted.kind == "jwt":
        return wanted.keys_url
    return ""


def audiences_of(tickets: Sequence[str]) -> Mapping[int, tuple[str, ...]]:
    """Read APPLICATION:AUDIENCE, which the settings have checked."""
    found: dict[int, tuple[str, ...]] = {}
    for one in tickets:
        application, _, audience = one.partition(":")
        found[int(application)] = (*found.get(int(application), ()), audience)
    return found


def tag_rule_of(text: str) -> TagRule:
    """Read CLAIM=VALUE:TAG or CLAIM=VALUE:TAG:keep, which the settings have checked."""
    claim, _, rest = text.partition("=")
    value, _, tag = rest.partition(":")
    name = tag[: -len(KEEP)] if tag.endswith(KEEP) and tag != KEEP else tag
    return TagRule(claim=claim, value=value, tag=name, keep=name != tag)
