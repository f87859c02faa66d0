"""How records of the audit log are described, and how far it is verified."""

from gatehouse.app.console.shared import ConsoleServices
from gatehouse.web.console.activity import LogVerification, RecordDescriber


def record_describer(console: ConsoleServices) -> RecordDescriber:
    return RecordDescriber(store=console.activity_store, mac_key=console.services.core.audit_key)


def log_verification(console: ConsoleServices) -> LogVerification:
    audit = console.services.audit
    return LogVerification(
        store=console.activity_store, verifier=audit.continuous_verifier, head_codec=audit.head_codec
    )
