"""What `gatehouse doctor` finds outside this machine: the mail server, the address of the service, certificates."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final

from msgspec import Struct

from gatehouse.accounts.second_factors.webauthn import RELATED_ORIGINS_PATH, RelyingParty
from gatehouse.app.services import host_of
from gatehouse.app.services.core import DAY, outbound_client
from gatehouse.app.services.smtp import smtp_transport
from gatehouse.cli.findings import CheckedInstallation, Finding, ok, warn
from gatehouse.kernel.strict_json import decode_strict_json
from gatehouse.kernel.times import iso8601
from gatehouse.mail.model import ServerUnusable
from gatehouse.oauth.metadata_clients import KEYS_LIMITS
from gatehouse.oauth.workloads.keys import KeysUnreadable, WorkloadKeys, place_of_keys
from gatehouse.outbound.client import OutboundClient
from gatehouse.outbound.model import CallFailed
from gatehouse.storage.installation import BASE_URL, PASSKEY_HOST

TIMEOUT_SECONDS: Final = 4.0
CERTIFICATE_DAYS: Final = 14  # left, from which on a certificate is reported
OK: Final = 200


async def about_mail(installation: CheckedInstallation) -> AsyncIterator[Finding]:
    settings = await installation.live_settings()
    mail = settings.mail
    if not mail.host:
        if installation.loaded.dev:
            yield ok("mail", "printed by the service, as there is no mail server")
        else:
            yield warn("mail", "there is no mail server: invitations, resets and codes wait until you set mail.host")
        return
    try:
        ends_at = await smtp_transport(settings).certificate_end()
    except ServerUnusable as error:
        yield warn("mail", f"the mail server cannot be used ({error}): check the settings of mail")
        return
    yield certificate_finding(installation, "mail", f"{mail.host}:{mail.port}", ends_at)


async def about_workloads(installation: CheckedInstallation) -> AsyncIterator[Finding]:
    """Read the keys of every issuer of workload identities, and tell identities that many workloads have."""
    clients = await installation.storage.clients.clients()
    identities = [(client.client_id, one) for client in clients for one in client.workload_identities]
    for client_id, identity in identities:
        if identity.has_wildcard:
            claims = ", ".join(f"{name}={value}" for name, value in identity.claims.items())
            yield warn(
                "workloads",
                f"{client_id} accepts every subject {identity.subject} of {identity.issuer_name} whose claims are "
                f"{claims}: check that all are yours",
            )
    keys = WorkloadKeys(outbound=outbound_client(installation.settings, KEYS_LIMITS), clock=installation.clock)
    problems = 0
    for client_id, identity in {place_of_keys(one[1]): one for one in identities}.values():
        try:
            await keys.read_keys(identity)
        except KeysUnreadable as error:
            problems += 1
            yield warn("workloads", f"the keys of {identity.issuer_name} for {client_id} cannot be read: {error}")
    if identities and not problems:
        yield ok("workloads", f"{len(identities)} workload identities, whose keys can be read")


async def about_passkeys(installation: CheckedInstallation) -> AsyncIterator[Finding]:
    """After a move, ask the host that the passkeys belong to as browsers do before they let pages here use them."""
    stored = installation.storage.installation
    former, base_url = await stored.value(PASSKEY_HOST), await stored.value(BASE_URL)
    if not former or not base_url or not await stored.are_there_passkeys():
        return
    party = RelyingParty(name="", origin=base_url, host=host_of(base_url), former_host=former)
    if party.is_within_host:
        return
    url = f"https://{former}{RELATED_ORIGINS_PATH}"
    try:
        origins = await fetch_origins(outbound_client(installation.settings), url)
    except CallFailed as error:
        problem = f"which cannot be fetched from here ({error.detail or error.public})"
    except ValueError as error:
        problem = str(error)
    else:
        if base_url in origins:
            yield ok("passkeys", f"they belong to {former}, and {url} lists {base_url}")
            return
        problem = f"which does not list {base_url}"
    yield warn(
        "passkeys",
        f"they belong to {former}, and browsers use them here only by {url}, {problem}: let its proxy pass this path "
        "on to Gatehouse, without a redirect",
    )


async def fetch_origins(outbound: OutboundClient, url: str) -> Sequence[str]:
    """Return the origins that a document of related origins lists. Raises CallFailed, ValueError."""
    response = await outbound.get(url, accept="application/json")
    if not response.is_success:
        raise ValueError(f"which answers HTTP {response.status}")
    try:
        return decode_strict_json(response.body.decode(), RelatedOrigins).origins
    except ValueError:
        raise ValueError("which is no document of related origins") from None


class RelatedOrigins(Struct, frozen=True):
    origins: tuple[str, ...]


async def about_address(installation: CheckedInstallation) -> AsyncIterator[Finding]:
    """Fetch base_url as browsers do, through the proxy."""
    stored = await installation.storage.installation.value(BASE_URL)
    base_url = stored or installation.settings.server.base_url
    if not await installation.storage.nodes.live_nodes():
        yield ok("address", f"{base_url} was not fetched, because no node is running")
        return
    try:
        ends_at = await asyncio.to_thread(fetch_address, base_url, installation.settings.outbound.ca_file)
    except (OSError, HTTPException) as error:
        yield warn(
            "address", f"{base_url} cannot be fetched from here ({error}): check DNS, the proxy and the certificate"
        )
        return
    yield certificate_finding(installation, "address", base_url, ends_at)


def fetch_address(base_url: str, ca_file: str) -> int | None:
    """Return when its certificate ends, None without TLS. Raises OSError or HTTPException."""
    scheme, _, host = base_url.partition("://")
    if scheme == "https":
        context = ssl.create_default_context(cafile=ca_file or None)
        connection: HTTPConnection = HTTPSConnection(host, timeout=TIMEOUT_SECONDS, context=context)
    else:
        connection = HTTPConnection(host, timeout=TIMEOUT_SECONDS)
    try:
        connection.connect()
        ends_at = certificate_end(connection.sock)
        connection.request("GET", "/healthz")
        response = connection.getresponse()
        if response.status != OK or b'"status"' not in response.read(1_000):
            raise HTTPException(f"/healthz answers HTTP {response.status} and not like Gatehouse")
    finally:
        connection.close()
    return ends_at


def certificate_end(sock: object) -> int | None:
    certificate = sock.getpeercert() if isinstance(sock, ssl.SSLSocket) else None
    return ssl.cert_time_to_seconds(str(certificate["notAfter"])) if certificate else None


def certificate_finding(installation: CheckedInstallation, topic: str, place: str, ends_at: int | None) -> Finding:
    if ends_at is None:
        return ok(topic, f"{place} answers")
    text = f"{place} answers; its certificate ends on {iso8601(ends_at)}"
    if ends_at - installation.clock.now() < CERTIFICATE_DAYS * DAY:
        return warn(topic, f"{text}: renew it")
    return ok(topic, text)
