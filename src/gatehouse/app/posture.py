"""The settings as admin/risks.py looks at them."""

from gatehouse.admin.risks import Posture
from gatehouse.settings import Settings
from gatehouse.settings.grammar import is_loopback, parse_origin


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
        rotate_days=settings.keys.rotate_days,
        publish_lead_seconds=settings.keys.publish_lead_seconds,
        user_jwt_days=settings.tokens.user_jwt_days,
        retention_days=settings.audit.retention_days,
        log_level=settings.log.level,
    )
