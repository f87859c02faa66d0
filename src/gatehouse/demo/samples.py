"""Connects the samples to an installation: the records they need, made as `gatehouse apply` makes them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from gatehouse.app.services import Services
from gatehouse.app.services.provisioning import build_provisioning
from gatehouse.audit.model import AuditOrigin
from gatehouse.client.transport import BASE_URL_PATTERN, LOOPBACK_HOSTS
from gatehouse.demo.accounts import new_access_key
from gatehouse.demo.sample_app.settings import SampleSettings, read_settings, write_settings
from gatehouse.kernel.errors import BadInput, Misconfigured
from gatehouse.kernel.ids import new_secret
from gatehouse.provision.document import Document
from gatehouse.provision.file_secrets import SecretResolver
from gatehouse.provision.model import Plan
from gatehouse.provision.plan import SECTIONS
from gatehouse.provision.sections.section import Options, read_entries

SETTINGS_FILE: Final = "sample-app.json"
SAMPLE_APP: Final = "sample_app"  # facts of the installation: which applications the samples are
SAMPLE_GAME: Final = "sample_game"
CLIENT_ID: Final = "sample-app"
PORT_OFFSET: Final = 10  # where the sample application is, seen from the service
HIGHEST_PORT: Final = 65_535
DEMO_ORIGIN: Final = AuditOrigin(actor="demo")
RULES: Final = {
    "note.read": "Read notes",
    "note.write": "Write notes",
    "note.delete": "Delete other people's notes",
    "report.open": "Open the monthly report",
}


class NotOnThisMachine(Misconfigured):
    public = "The samples only work with a local installation."


def sample_app_port(port: int) -> int:
    return port + PORT_OFFSET if port + PORT_OFFSET <= HIGHEST_PORT else port - PORT_OFFSET


async def apply_document(services: Services, document: Document, variables: Mapping[str, str]) -> Plan:
    sources = SecretResolver(environment=variables, read_file=refuse_file)
    return await build_provisioning(services).apply(
        read_entries(document, SECTIONS), Options(secrets=sources, prune=False, allow_weak=False), DEMO_ORIGIN
    )


def refuse_file(path: str) -> str:
    raise BadInput(f"{path}: the samples cannot read files")


async def prepare_sample_app(services: Services, data: Path, *, port: int) -> SampleSettings:
    """Return its settings; connect it first when it is not. Raises NotOnThisMachine."""
    refuse_elsewhere(services)
    kept = (
        read_settings(data / SETTINGS_FILE) if (data / SETTINGS_FILE).exists() else await connect_sample_app(services)
    )
    settings = replace(kept, base_url=services.settings.server.base_url, port=port)
    addresses = {"redirect_uris": [settings.redirect_uri], "post_logout_uris": [settings.home]}
    await apply_document(services, {"clients": [{"client_id": settings.client_id, **addresses}]}, {})
    write_settings(data / SETTINGS_FILE, settings)
    return settings


async def prepare_sample_game(services: Services) -> int:
    """Return the ID of the game's application. Raises NotOnThisMachine."""
    refuse_elsewhere(services)
    return await ensure_application(services, SAMPLE_GAME, {"name": "Sky Raiders", "description": "Sample game"})


def refuse_elsewhere(services: Services) -> None:
    base_url = services.settings.server.base_url
    if not is_this_machine(base_url):
        raise NotOnThisMachine(f"{NotOnThisMachine.public} This installation: {base_url or 'not started yet'}.")


def is_this_machine(base_url: str) -> bool:
    """Whether the address is on this machine, in a form that the client and the game accept without TLS."""
    found = BASE_URL_PATTERN.fullmatch(base_url)
    return found is not None and found["scheme"] == "http" and found["host"] in LOOPBACK_HOSTS


async def connect_sample_app(services: Services) -> SampleSettings:
    """Create a new client and a new key, also when earlier ones were lost."""
    client_secret, access_key = new_secret(), new_access_key()
    variables = {"CLIENT_SECRET": client_secret, "ACCESS_KEY": access_key}
    number = await ensure_application(services, SAMPLE_APP, sample_application_entry(), variables)
    placeholder = SampleSettings(
        name="Sample application",
        base_url=services.settings.server.base_url,
        port=1,
        client_id=CLIENT_ID,
        client_secret=client_secret,
        application_id=number,
        access_key=access_key,
        rules=RULES,
    )
    client = {
        "client_id": CLIENT_ID,
        "name": placeholder.name,
        "profile": "oidc",
        "client_secret": {"env": "CLIENT_SECRET"},
        "application_id": number,
        "redirect_uris": [placeholder.redirect_uri],
        "require_pkce": True,
        "may_exchange": True,
        "explain_errors": True,
    }
    await apply_document(services, {"clients": [client]}, variables)
    return placeholder


def sample_application_entry() -> dict[str, Any]:
    tree: dict[str, dict[str, Any]] = {}
    for rule, meaning in RULES.items():
        group, _, name = rule.partition(".")
        tree.setdefault(group, {})[name] = {"value": name == "read", "description": meaning}
    return {
        "name": "Sample application",
        "description": "Created by `gatehouse sample-app`",
        "schema": {"private_data": tree},
        "roles": {
            "author": {
                "description": "Everyone with a verified email",
                "condition": {"tag": "email_verified"},
                "meta": {"private_data": {"note": {"write": {"value": True}}}},
            },
            "editor": {
                "description": "All permissions; assign it and reload the page",
                "meta": {
                    "private_data": {
                        "note": {"write": {"value": True}, "delete": {"value": True}},
                        "report": {"open": {"value": True}},
                    }
                },
            },
        },
        "access_keys": [{"comment": "Sample application", "hash": {"env": "ACCESS_KEY"}}],
    }


async def ensure_application(
    services: Services, fact: str, wanted: Mapping[str, Any], variables: Mapping[str, str] | None = None
) -> int:
    """The id of the application that this installation remembers by that fact; made when there is none."""
    known = await services.storage.installation.value(fact)
    record = dict(wanted) if known is None else {**wanted, "application_id": int(known)}
    plan = await apply_document(services, {"applications": [record]}, variables or {})
    if known is not None:
        return int(known)
    number = next(int(change.name) for change in plan.changes if change.kind == "application")
    await services.storage.installation.set_value(fact, str(number))
    return number
