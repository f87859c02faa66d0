"""Connects the samples to an installation: the records they need, made as `gatehouse apply` makes them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from gatehouse.app.house import House
from gatehouse.app.provisioning import provisioning_of
from gatehouse.audit.model import Origin
from gatehouse.client.base_url import LOOPBACK, WRITTEN
from gatehouse.demo.cast import new_access_key
from gatehouse.demo.sample_app.settings import SampleSettings, read, write
from gatehouse.kernel.errors import BadInput, Misconfigured
from gatehouse.kernel.ids import new_secret
from gatehouse.provision.document import Document
from gatehouse.provision.entries import read_entries
from gatehouse.provision.given import SecretSources
from gatehouse.provision.model import Plan
from gatehouse.provision.sections.section import Terms
from gatehouse.provision.sections.table import SECTIONS

FILE: Final = "sample-app.json"
SAMPLE_APP: Final = "sample_app"  # facts of the installation: which applications the samples are
SAMPLE_GAME: Final = "sample_game"
CLIENT: Final = "sample-app"
PORTS_ABOVE: Final = 10  # where the sample application is, seen from the service
HIGHEST_PORT: Final = 65_535
THE_DEMO: Final = Origin(actor="demo")
RULES: Final = {
    "note.read": "Read notes",
    "note.write": "Write notes",
    "note.delete": "Delete other people's notes",
    "report.open": "Open the monthly report",
}


class NotOnThisMachine(Misconfigured):
    public = "The samples only work with a local installation."


def port_beside(port: int) -> int:
    return port + PORTS_ABOVE if port + PORTS_ABOVE <= HIGHEST_PORT else port - PORTS_ABOVE


async def applied(house: House, document: Document, variables: Mapping[str, str]) -> Plan:
    sources = SecretSources(environment=variables, read_file=refuse_file)
    return await provisioning_of(house).apply(
        read_entries(document, SECTIONS), Terms(secrets=sources, prune=False, allow_weak=False), THE_DEMO
    )


def refuse_file(path: str) -> str:
    raise BadInput(f"{path}: the samples cannot read files")


async def sample_app(house: House, data: Path, *, port: int) -> SampleSettings:
    """What it needs to run there: connected already, or now. Raises NotOnThisMachine."""
    refuse_elsewhere(house)
    kept = read(data / FILE) if (data / FILE).exists() else await connected(house)
    settings = replace(kept, base_url=house.settings.server.base_url, port=port)
    addresses = {"redirect_uris": [settings.redirect_uri], "post_logout_uris": [settings.home]}
    await applied(house, {"clients": [{"client_id": settings.client_id, **addresses}]}, {})
    write(data / FILE, settings)
    return settings


async def sample_game(house: House) -> int:
    """The application that stands for the game. Raises NotOnThisMachine."""
    refuse_elsewhere(house)
    return await application(house, SAMPLE_GAME, {"name": "Sky Raiders", "description": "Sample game"})


def refuse_elsewhere(house: House) -> None:
    base_url = house.settings.server.base_url
    if not is_here(base_url):
        raise NotOnThisMachine(f"{NotOnThisMachine.public} This installation: {base_url or 'not started yet'}.")


def is_here(base_url: str) -> bool:
    """Whether it is of this machine, and spelt as the client and the game take it without TLS."""
    found = WRITTEN.fullmatch(base_url)
    return found is not None and found["scheme"] == "http" and found["host"] in LOOPBACK


async def connected(house: House) -> SampleSettings:
    """A new client and a new key, also where those there were are lost."""
    client_secret, access_key = new_secret(), new_access_key()
    variables = {"CLIENT_SECRET": client_secret, "ACCESS_KEY": access_key}
    number = await application(house, SAMPLE_APP, sample_application(), variables)
    placeholder = SampleSettings(
        name="Sample application",
        base_url=house.settings.server.base_url,
        port=1,
        client_id=CLIENT,
        client_secret=client_secret,
        application_id=number,
        access_key=access_key,
        rules=RULES,
    )
    client = {
        "client_id": CLIENT,
        "name": placeholder.name,
        "profile": "oidc",
        "client_secret": {"env": "CLIENT_SECRET"},
        "application_id": number,
        "redirect_uris": [placeholder.redirect_uri],
        "require_pkce": True,
        "may_exchange": True,
        "explain_errors": True,
    }
    await applied(house, {"clients": [client]}, variables)
    return placeholder


def sample_application() -> dict[str, Any]:
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


async def application(
    house: House, fact: str, wanted: Mapping[str, Any], variables: Mapping[str, str] | None = None
) -> int:
    """The id of the application that this installation remembers by that fact; made when there is none."""
    known = await house.storage.installation.fact(fact)
    record = dict(wanted) if known is None else {**wanted, "application_id": int(known)}
    plan = await applied(house, {"applications": [record]}, variables or {})
    if known is not None:
        return int(known)
    number = next(int(change.name) for change in plan.changes if change.kind == "application")
    await house.storage.installation.state(fact, str(number))
    return number
