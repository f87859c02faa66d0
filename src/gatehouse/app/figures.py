"""What the services of a process count, as metrics (docs/operations/monitoring.md).

Every label is one of a few values that the code knows: no caller can make the set grow (checklist HT-17).
"""

from collections.abc import Callable, Mapping

from gatehouse.app.services import Services
from gatehouse.web.http.metrics import Figure


def figures_of(services: Services) -> list[Figure]:
    return [
        value(
            "gatehouse_held_requests", "Requests being held open (long polling).", lambda: len(services.games.waiters)
        ),
        value("gatehouse_change_streams", "Open change streams.", lambda: len(services.changes.streams)),
        value(
            "gatehouse_permission_cache_bytes",
            "Estimated memory of cached permission models and evaluations.",
            lambda: services.permissions.loader.cache_weight,
        ),
        Figure(
            name="gatehouse_cache_bytes",
            help="Estimated memory of other caches.",
            labels=("cache",),
            read=lambda: {
                ("clients",): services.storage.clients.cache_weight,
                ("user_jwts",): services.permissions.caller_jwts.cache_weight,
            },
        ),
        Figure(
            name="gatehouse_database_connections",
            help="Connections of the PostgreSQL pool: open, idle, and the limit.",
            labels=("state",),
            read=lambda: by_label(services.storage.runner.connection_counts()),
        ),
        value(
            "gatehouse_audit_sealing_lag_seconds",
            "Time since this process found every audit record sealed.",
            lambda: services.audit.sealer.lag,
        ),
        counter(
            "gatehouse_sign_ins",
            "Sign-ins by method; refused ones are wrong passwords, codes and tickets.",
            ("method", "result"),
            lambda: {**services.core.tally.by_method},
        ),
        counter(
            "gatehouse_second_factors",
            "Checked codes and passkeys; a refused code has the factor `code`.",
            ("factor", "result"),
            lambda: {**services.factors.second_factors.outcomes, **services.factors.passkeys.outcomes},
        ),
        counter(
            "gatehouse_tokens_issued",
            "Successful token requests.",
            ("grant_type",),
            lambda: by_label(services.oauth.token_endpoint.issued),
        ),
        counter(
            "gatehouse_game_sessions",
            "Game sessions by what became of them.",
            ("outcome",),
            lambda: by_label(services.games.results.outcomes),
        ),
        counter(
            "gatehouse_mails",
            "Attempts to send an email.",
            ("outcome",),
            lambda: by_label(services.mail.outbox.outcomes),
        ),
        counter(
            "gatehouse_text_messages",
            "Attempts to send a text message.",
            ("outcome",),
            lambda: by_label(services.mail.text_outbox.outcomes),
        ),
        counter(
            "gatehouse_phone_codes",
            "Codes that people typed to verify a phone number.",
            ("outcome",),
            lambda: by_label(services.factors.phones.outcomes),
        ),
        counter(
            "gatehouse_webhook_deliveries",
            "Attempts to deliver to a webhook.",
            ("outcome",),
            lambda: by_label(services.webhooks.deliveries.outcomes),
        ),
    ]


def value(name: str, text: str, read: Callable[[], float]) -> Figure:
    return Figure(name=name, help=text, read=lambda: {(): read()})


def counter(
    name: str, text: str, labels: tuple[str, ...], read: Callable[[], Mapping[tuple[str, ...], float]]
) -> Figure:
    return Figure(name=name, help=text, labels=labels, read=read, counts=True)


def by_label(counts: Mapping[str, int]) -> dict[tuple[str, ...], float]:
    return {(label,): count for label, count in counts.items()}
