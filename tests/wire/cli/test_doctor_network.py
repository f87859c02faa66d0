"""`gatehouse doctor` reaches out: the mail server, the address of the service, and their certificates."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from gatehouse.app.services.core import DAY
from gatehouse.cli.doctor_network import about_address, about_mail, certificate_finding
from gatehouse.cli.findings import CheckedInstallation, Finding, Level
from gatehouse.kernel.clock import SystemClock
from gatehouse.mail.delivery import SmtpSecurity
from gatehouse.settings.merge import LoadedSettings
from gatehouse.storage.installation import BASE_URL
from tests.support.builders import ORIGIN
from tests.support.mail import Mailbox, certificates, mail_server, refusing_port, smtp_transport_to
from tests.support.processes import LOOPBACK
from tests.support.service import RunningService
from tests.support.stub_server import StubServer, http_response, run_stub_server, tls_contexts_for

HEALTHY = http_response(b'{"status": "ok"}')


def checked(service: RunningService, **changes: object) -> CheckedInstallation:
    services = service.services
    loaded: LoadedSettings = services.core.live_settings.current
    settings = loaded.settings
    for name, value in changes.items():
        part, _, entry = name.partition("__")
        settings = replace(settings, **{part: replace(getattr(settings, part), **{entry: value})})
    return CheckedInstallation(
        loaded=replace(loaded, settings=settings),
        storage=services.storage,
        masters=services.core.masters,
        clock=SystemClock(),
    )


async def one_finding(findings: AsyncIterator[Finding]) -> Finding:
    [found] = [finding async for finding in findings]
    return found


async def test_op_91_a_missing_mail_server_is_told_outside_development(service: RunningService) -> None:
    installation = checked(service)
    assert (await one_finding(about_mail(installation))).level is Level.OK
    production = replace(installation, loaded=replace(installation.loaded, dev=False))
    found = await one_finding(about_mail(production))
    assert (found.level, "mail.host" in found.text) == (Level.WARN, True)


def with_mail_server(service: RunningService, port: int) -> CheckedInstallation:
    address = "gatehouse@studio.example"
    return checked(service, mail__host=LOOPBACK, mail__port=port, mail__security="none", mail__from_address=address)


async def test_op_91_an_unreachable_mail_server_is_told(service: RunningService) -> None:
    port = refusing_port()
    found = await one_finding(about_mail(with_mail_server(service, port)))
    assert (found.level, f"{LOOPBACK}:{port}" in found.text) == (Level.WARN, True)
    async with mail_server(Mailbox()) as port:
        assert (await one_finding(about_mail(with_mail_server(service, port)))).level is Level.OK


async def test_a_mail_server_stored_in_the_database_is_checked(service: RunningService) -> None:
    installation = checked(service)
    changes = {"mail.host": "mail.invalid", "mail.from_address": "gatehouse@studio.example"}
    await service.services.settings_editor.save(changes, ORIGIN)
    assert "mail.invalid" in (await one_finding(about_mail(installation))).text


async def test_the_certificate_of_the_mail_server_is_read(tmp_path: Path) -> None:
    pair = certificates(tmp_path)
    async with mail_server(Mailbox(), tls=pair.server) as port:
        ends_at = await smtp_transport_to(port, security=SmtpSecurity.TLS, tls=pair.client).certificate_end()
    assert ends_at is not None
    assert 0 < ends_at - SystemClock().now() <= 3_600


async def test_op_91_base_url_is_fetched_while_a_node_runs(service: RunningService) -> None:
    installation = checked(service)
    assert "no node is running" in (await one_finding(about_address(installation))).text
    await service.services.keys.node_reporter.run_once()
    found = await one_finding(about_address(installation))
    assert (found.level, found.text) == (Level.OK, f"{service.base_url} answers")
    nowhere = f"http://{LOOPBACK}:{refusing_port()}"
    await service.services.storage.installation.set_value(BASE_URL, nowhere)
    found = await one_finding(about_address(installation))
    assert (found.level, f"{nowhere} cannot be fetched" in found.text) == (Level.WARN, True)


@pytest.mark.parametrize("answer", [http_response(b"hello"), http_response(b'{"status": 1}', "404 Not Found")])
async def test_an_answer_of_another_server_at_base_url_is_told(service: RunningService, answer: bytes) -> None:
    await service.services.keys.node_reporter.run_once()
    async with run_stub_server(StubServer(respond=lambda _: answer)) as stub:
        await service.services.storage.installation.set_value(BASE_URL, f"http://{LOOPBACK}:{stub.port}")
        found = await one_finding(about_address(checked(service)))
    assert (found.level, "not like Gatehouse" in found.text) == (Level.WARN, True)


async def test_op_91_a_certificate_that_ends_within_two_weeks_is_told(
    service: RunningService, tmp_path: Path
) -> None:
    tls = tls_contexts_for(tmp_path, "localhost")
    await service.services.keys.node_reporter.run_once()
    async with run_stub_server(StubServer(respond=lambda _: HEALTHY), tls=tls.server) as stub:
        await service.services.storage.installation.set_value(BASE_URL, f"https://localhost:{stub.port}")
        installation = checked(service, outbound__ca_file=str(tmp_path / "localhost.pem"))
        found = await one_finding(about_address(installation))
        assert (found.level, "renew it" in found.text) == (Level.WARN, True)
        untrusted = await one_finding(about_address(checked(service)))
        assert "certificate verify failed" in untrusted.text
    now = installation.clock.now()
    days = {13: Level.WARN, 15: Level.OK}
    assert {left: certificate_finding(installation, "address", "x", now + left * DAY).level for left in days} == days
