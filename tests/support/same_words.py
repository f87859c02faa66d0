"""Texts that are the same in English and German, reviewed one by one; any other equal text was forgotten."""

from typing import Final

WORDS: Final = {
    *(
        "API",
        "Administrator",
        "Backups",
        "Branding",
        "Client",
        "Clients",
        "Code",
        "Codes",
        "Demo",
        "Details",
        "Export",
        "Import",
        "Secret",
    ),
    *("ID", "Installation", "Issuer", "Links", "Logo", "Logos", "Matrix", "Name", "Origin", "Passkey", "Passkeys"),
    *(
        "Person",
        "Port",
        "Scope",
        "Scopes",
        "Server",
        "Status",
        "System",
        "Tag",
        "Tags",
        "Tokens",
        "URL",
        "Version",
        "Website",
    ),
    *("Webhook", "Webhooks", "ok"),
    *("Secret {number}", "Version {version}", "In {title}", "in {project}", "in {where}", "{status} in {ms} ms"),
}
NAMES: Final = {
    *("Gatehouse", "Gatehouse {version}", "OpenID Connect", "PostgreSQL", "Python", "SQLite", "STARTTLS", "TLS"),
    *("MessageBird", "Twilio", "Vonage"),
    *("--dev", "KiB", "{count} KiB", "{count} MiB", "{count} s"),
}
EXAMPLES: Final = {
    *("beta", "season-pass", "studio.example", "user., store."),
    *("https://git.studio.example", "http://localhost:3000/callback"),
}
SAME_IN_GERMAN: Final = WORDS | NAMES | EXAMPLES
