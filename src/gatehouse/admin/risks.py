"""Risks: settings that are valid but that an administrator should know about. Pure."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from gatehouse.kernel.addresses import Network

WIDE_PREFIX: Final = 8  # bits; a wider network is not a private one
SHORT_ROTATION: Final = 7  # days; verifiers that fetch keys once a week would miss one
SHORT_LEAD: Final = 600  # seconds; less than many verifiers cache a key set
LONG_JWT: Final = 180  # days
SHORT_RETENTION: Final = 90  # days


class Posture(Struct, frozen=True, kw_only=True):
    """The settings that risks depend on, as plain values: this package does not import the settings."""

    dev: bool
    base_url: str
    is_local: bool  # the base_url names this machine
    listens_locally: bool
    trusted_proxies: Sequence[Network]
    operations_locally: bool
    registration: bool
    allowed_domains: Sequence[str]
    mail_host: str
    mail_encrypted: bool  # or to a server on this machine
    rates_enabled: bool
    outbound: Sequence[Network]
    session_info: Sequence[Network]
    jwt_without_factor: bool
    sites_require_application: bool
    rotate_days: int
    publish_lead_seconds: int
    user_jwt_days: int
    retention_days: int  # 0 for ever
    log_level: str


class Risk(Struct, frozen=True, kw_only=True):
    """A risky setting; the texts are `risk.<name>` and `risk.<name>_text`."""

    name: str
    setting: str  # to change; "" for a command line flag
    serious: bool = False


def find_risks(posture: Posture) -> tuple[Risk, ...]:
    """Return the risks, the serious ones first."""
    every = (
        (posture.dev, Risk(name="dev", setting="", serious=True)),
        (is_plain_http(posture), Risk(name="plain_http", setting="server.base_url", serious=True)),
        (lacks_proxy(posture), Risk(name="no_proxy", setting="server.trusted_proxies")),
        (
            has_wide_network(posture.trusted_proxies),
            Risk(name="wide_proxies", setting="server.trusted_proxies", serious=True),
        ),
        (not posture.operations_locally, Risk(name="open_operations", setting="operations.bind")),
        (not posture.rates_enabled, Risk(name="no_rates", setting="rates.enabled", serious=True)),
        (has_wide_network(posture.outbound), Risk(name="wide_outbound", setting="outbound.allow", serious=True)),
        (
            has_wide_network(posture.session_info),
            Risk(name="wide_info", setting="game.session_info_allow", serious=True),
        ),
        (posture.jwt_without_factor, Risk(name="without_factor", setting="tokens.jwt_without_factor", serious=True)),
        (
            not posture.sites_require_application,
            Risk(name="sites_without_application", setting="forward_auth.require_application", serious=True),
        ),
        (has_open_registration(posture), Risk(name="registration", setting="accounts.registration")),
        (not posture.mail_host, Risk(name="no_mail", setting="mail.host")),
        (not posture.mail_encrypted, Risk(name="mail_in_clear", setting="mail.security", serious=True)),
        (posture.rotate_days < SHORT_ROTATION, Risk(name="short_keys", setting="keys.rotate_days")),
        (posture.publish_lead_seconds < SHORT_LEAD, Risk(name="short_lead", setting="keys.publish_lead_seconds")),
        (posture.user_jwt_days > LONG_JWT, Risk(name="long_jwt", setting="tokens.user_jwt_days")),
        (0 < posture.retention_days < SHORT_RETENTION, Risk(name="short_audit", setting="audit.retention_days")),
        (posture.log_level == "debug", Risk(name="debug", setting="log.level")),
    )
    risks = [risk for holds, risk in every if holds]
    return tuple(sorted(risks, key=lambda risk: not risk.serious))


def is_plain_http(posture: Posture) -> bool:
    return posture.base_url.startswith("http:") and not posture.is_local


def lacks_proxy(posture: Posture) -> bool:
    """Tell whether a proxy must be in front, since the service has no TLS itself, and none is trusted."""
    is_behind_proxy = posture.base_url.startswith("https:") or not posture.listens_locally
    return is_behind_proxy and not posture.trusted_proxies


def has_open_registration(posture: Posture) -> bool:
    return posture.registration and not posture.allowed_domains


def has_wide_network(networks: Sequence[Network]) -> bool:
    return any(network.prefixlen < WIDE_PREFIX for network in networks)
