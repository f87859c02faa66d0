"""The installation as administrators see it: settings, policies, risks; loaded at the first use."""

from collections.abc import Mapping, Sequence
from typing import Final

from gatehouse import __version__
from gatehouse.accounts.phones.text_messages import TextMessages
from gatehouse.admin.key_admin import KeyAdmin
from gatehouse.admin.risks import Posture, find_risks
from gatehouse.admin.settings import InstallationStore, MailServer, SettingGroup, SettingListItem
from gatehouse.app.services import Services
from gatehouse.fields.model import Kind
from gatehouse.kernel.graphics import Color
from gatehouse.mail.model import MailTemplate
from gatehouse.settings.display import display_line, display_value
from gatehouse.settings.entries import Setting, all_names, setting_of_name
from gatehouse.settings.grammar import is_loopback, parse_origin
from gatehouse.settings.model import Settings
from gatehouse.storage.migrations import HEAD
from gatehouse.web.api.health import Readiness
from gatehouse.web.api.permissions.installation import Installation, InstallationReader
from gatehouse.web.api.permissions.setting_parts import SettingParts
from gatehouse.web.pages.branding import DEFAULT_ACCENT, swatches


def posture(settings: Settings, *, dev: bool) -> Posture:
    server, mail, operations = settings.server, settings.mail, settings.operations
    return Posture(
        dev=dev,
        base_url=server.base_url,
        is_local=is_loopback(parse_origin(server.base_url, "http", "https").host),
        listens_locally=is_loopback(server.host),
        trusted_proxies=server.trusted_proxies,
        operations_locally=not operations.bind or is_loopback(operations.bind.rpartition(":")[0].strip("[]")),
        registration=settings.accounts.registration,
        allowed_domains=settings.accounts.allowed_domains,
        mail_host=mail.host,
        mail_encrypted=not mail.host or mail.security != "none" or is_loopback(mail.host),
        rates_enabled=settings.rates.enabled,
        outbound=settings.outbound.allow,
        session_info=settings.game.session_info_allow,
        jwt_without_factor=settings.tokens.jwt_without_factor,
        sites_require_application=settings.forward_auth.require_application,
        rotate_days=settings.keys.rotate_days,
        publish_lead_seconds=settings.keys.publish_lead_seconds,
        user_jwt_days=settings.tokens.user_jwt_days,
        retention_days=settings.audit.retention_days,
        log_level=settings.log.level,
    )


POLICIES: Final[Mapping[str, Sequence[str]]] = {  # sections, or single settings of one
    "passwords": ("passwords", "accounts.breached_passwords"),
    "registration": ("accounts.registration", "accounts.allowed_domains"),
    "guests": ("guests",),
    "sign_in": ("accounts.email_sign_in", "accounts.password_optional", "accounts.username_sign_in"),
    "sessions": ("sessions",),
    "tokens": ("tokens", "oauth", "keys"),
    "rates": ("rates", "game"),
    "protection": ("protection", "forward_auth"),
    "audit": ("audit",),
}


def setting_parts(services: Services, readiness: Readiness) -> SettingParts:
    async def send_test(user_id: str) -> None:
        user = await services.storage.accounts.user(user_id)
        message = services.mail.composer.compose(MailTemplate.TEST, to=user.login or "", lang=user.lang)
        await services.mail.outbox.deliver_now(message)

    return SettingParts(
        installation_admin(services, readiness),
        save=services.settings_editor.save,
        send_test=send_test,
        text_messages=text_messages(services),
        accounts=services.storage.accounts,
    )


def text_messages(services: Services) -> TextMessages:
    return TextMessages(
        store=services.storage.phones,
        outbox=services.storage.mail,
        worker=services.mail.text_outbox,
        phones=services.factors.phones,
        composer=services.mail.composer,
        clock=services.clock,
    )


def installation_admin(services: Services, readiness: Readiness) -> InstallationReader:
    storage = services.storage
    return InstallationReader(
        installation=lambda: installation(services),
        reads=InstallationStore(storage.runner),
        outbox=storage.mail,
        audit=storage.audit,
        box=services.audit.head_codec,
        readiness=readiness,
        keys=KeyAdmin(
            store=storage.keys,
            rotation=services.keys.rotation,
            keyring=services.keys.keyring,
            policy=services.keys.rotation_policy,
            clock=services.clock,
        ),
    )


def installation(services: Services) -> Installation:
    settings = services.settings
    lines = [setting_line(services, name) for name in all_names(settings)]
    return Installation(
        version=__version__,
        opened_at=services.core.opened_at,
        on_sqlite=settings.database.url.is_sqlite,
        schema=HEAD,
        workers=settings.server.workers,
        mail=MailServer(
            host=settings.mail.host,
            port=settings.mail.port,
            security=settings.mail.security,
            username=settings.mail.username,
            sender=settings.mail.from_address,
            is_shown=services.mail.is_logged(),
        ),
        lines=lines,
        policies=[SettingGroup(name=name, lines=lines_in_sections(lines, parts)) for name, parts in POLICIES.items()],
        risks=find_risks(posture(settings, dev=services.core.dev)),
        swatches=swatches(Color.parse(settings.branding.accent or DEFAULT_ACCENT)),
        branding=lines_in_sections(lines, ("branding", "mail.from_name")),
    )


def setting_line(services: Services, name: str) -> SettingListItem:
    entry = setting_of_name(name)
    return SettingListItem(
        name=name,
        value=display_line(display_value(services.settings, name)),
        unit="" if entry.is_secret else entry.field.unit,
        meaning=entry.field.help,
        source=services.core.live_settings.current.source_of(name),
        stored=entry.field.stored,
        changeable=services.core.live_settings.is_changeable(name),
        control=form_control(entry),
        choices=("true", "false") if entry.kind is Kind.FLAG else tuple(map(str, entry.choices)),
        low=entry.field.minimum,
        high=entry.field.maximum or 0,
    )


def lines_in_sections(lines: Sequence[SettingListItem], sections: Sequence[str]) -> list[SettingListItem]:
    return [line for part in sections for line in lines if line.name == part or line.name.startswith(f"{part}.")]


def form_control(entry: Setting) -> str:
    if entry.is_image:
        return "image"
    if entry.is_secret:
        return "secret"
    if entry.is_list:
        return "list"
    if entry.choices:
        return "choice"
    return "flag" if entry.kind is Kind.FLAG else "number" if entry.kind is Kind.NUMBER else "text"
