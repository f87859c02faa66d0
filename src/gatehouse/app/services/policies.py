"""What the settings say, in the records that the packages take."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from gatehouse.accounts.email_sign_in import EmailSignInPolicy
from gatehouse.accounts.guests.model import GuestPolicy
from gatehouse.accounts.phones.message_call import SENDERS, MessageCall
from gatehouse.accounts.phones.model import PhonePolicy
from gatehouse.accounts.registration import RegistrationPolicy
from gatehouse.accounts.sessions import SessionLifetimes
from gatehouse.accounts.terms.model import TermsDocument
from gatehouse.app.services.core import DAY, MINUTE
from gatehouse.kernel.times import HOUR
from gatehouse.keys.rotation import MAX_CLOCK_SKEW, RotationPolicy
from gatehouse.oauth.authorize.grant_creator import GrantLifetimes
from gatehouse.settings.checks import custom_call
from gatehouse.settings.guests import GuestSettings
from gatehouse.settings.model import (
    AccountSettings,
    OAuthSettings,
    PhoneSettings,
    ProtectionSettings,
    SessionSettings,
    Settings,
)
from gatehouse.settings.terms import TermsSettings
from gatehouse.throttle.proof_of_work import ProofOfWorkMode, ProofOfWorkPolicy


def rotation_policy(settings: Settings) -> RotationPolicy:
    keys, tokens = settings.keys, settings.tokens
    return RotationPolicy(
        interval=keys.rotate_days * DAY,
        publish_lead=keys.publish_lead_seconds,
        grace=tokens.expired_grace_days * DAY + MAX_CLOCK_SKEW,
        rsa_bits=keys.rsa_bits,
    )


def guest_policy(wanted: GuestSettings) -> GuestPolicy:
    return GuestPolicy(
        enabled=wanted.enabled,
        application_ids=frozenset(map(int, wanted.applications)),
        created_per_hour=wanted.created_per_hour,
        total_per_hour=wanted.total_per_hour,
        idle_days=wanted.idle_days,
    )


def session_lifetimes(wanted: SessionSettings) -> SessionLifetimes:
    return SessionLifetimes(
        idle=wanted.idle_hours * HOUR,
        absolute=wanted.absolute_days * DAY,
        unless_stay=wanted.unless_stay_hours * HOUR,
        fresh=wanted.fresh_minutes * MINUTE,
    )


def email_sign_in_policy(wanted: AccountSettings) -> EmailSignInPolicy:
    return EmailSignInPolicy(
        is_on=wanted.email_sign_in,
        registers=wanted.email_sign_in and wanted.password_optional and wanted.registration,
        domains=wanted.allowed_domains,
    )


def registration_policy(wanted: AccountSettings) -> RegistrationPolicy:
    return RegistrationPolicy(is_open=wanted.registration, domains=wanted.allowed_domains)


def phone_policy(wanted: PhoneSettings, *, dev: bool) -> PhonePolicy:
    return PhonePolicy(
        countries=frozenset(wanted.countries),
        can_send=wanted.sender != "none" or dev,
        messages_a_day=wanted.cost_a_day // wanted.message_cents,
        confirms_sign_in=wanted.confirm_sign_in,
    )


def message_call(wanted: PhoneSettings) -> MessageCall | None:
    """The call that sends a text message; None without a sender."""
    match wanted.sender:
        case "none":
            return None
        case "custom":
            return custom_call(wanted)
        case "json":
            return replace(SENDERS[wanted.sender], url=wanted.url)
        case _:
            return SENDERS[wanted.sender]


def proof_of_work_policy(wanted: ProtectionSettings) -> ProofOfWorkPolicy:
    return ProofOfWorkPolicy(
        mode=ProofOfWorkMode(wanted.proof_of_work), difficulty=wanted.difficulty, attack_rate=wanted.attack_rate
    )


def enabled_documents(wanted: Mapping[str, TermsSettings]) -> Sequence[TermsDocument]:
    return [
        TermsDocument(
            document_id=document_id,
            title=one.title or document_id,
            url=one.url,
            version=one.version,
            application_ids=frozenset(map(int, one.applications)),
            countries=frozenset(one.countries),
            replaces=one.replaces,
            minimum_age=one.minimum_age,
        )
        for document_id, one in wanted.items()
        if one.enabled
    ]


def grant_lifetimes(wanted: OAuthSettings) -> GrantLifetimes:
    return GrantLifetimes(code_seconds=wanted.code_seconds, family_seconds=wanted.refresh_family_days * DAY)
