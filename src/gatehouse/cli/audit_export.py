"""`gatehouse audit export`: copy the audit log to a log collector or SIEM, and continue where it ended."""

import asyncio
import os
import re
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar

import click
from msgspec.structs import replace

from gatehouse.app.services import Services
from gatehouse.audit.export import AuditExport, ExportFormat, RecordFormatter
from gatehouse.audit.model import AuditRecord, Refusal
from gatehouse.cli.common import Invocation, common_options
from gatehouse.cli.services import run_with_services
from gatehouse.gamesessions.model import short_gsid, short_gsids
from gatehouse.kernel.errors import BadInput, Conflict, Unavailable

POLL_SECONDS: Final = 2.0
RECONNECT_SECONDS: Final = 10.0
CONNECT_SECONDS: Final = 10.0
WRITE_SECONDS: Final = 60.0
SYSLOG_SERVER: Final = re.compile(r"(tcp|tls)://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):([1-9][0-9]{0,4})", re.ASCII)

Writer = Callable[[bytes], Awaitable[None]]


def parse_server(_context: click.Context, _option: click.Parameter, text: str | None) -> re.Match[str] | None:
    found = None if text is None else SYSLOG_SERVER.fullmatch(text)
    if text is not None and found is None:
        raise click.BadParameter("must be tcp://HOST:PORT or tls://HOST:PORT")
    return found


@click.command("export")
@common_options
@click.option(
    "--state", type=click.Path(dir_okay=False, path_type=Path), help="File that stores how far the export is."
)
@click.option(
    "--after", type=click.IntRange(0), help="Export records after this one; the default is the state, or 0."
)
@click.option(
    "--syslog",
    "server",
    metavar="tcp|tls://HOST:PORT",
    callback=parse_server,
    help="Send syslog messages (RFC 5424) to this server instead of writing JSON lines to standard output.",
)
@click.option(
    "--with-personal", is_flag=True, help="Include IP addresses and emails. Erasures do not reach the copy."
)
@click.option("--follow", is_flag=True, help="Keep running and export new records within seconds.")
def export_records(
    invocation: Invocation,
    *,
    state: Path | None,
    after: int | None,
    server: re.Match[str] | None,
    with_personal: bool,
    follow: bool,
) -> None:
    """Write sealed audit records, oldest first, as JSON lines or to a syslog server.

    With --state the next run continues where this one ended. A record that was written when the command was
    interrupted may be written again, with the same ID and place.
    """
    start = read_state(state) if after is None else after

    async def work(services: Services) -> None:
        formatter = RecordFormatter(
            host=services.base_url.partition("://")[2] or "-",
            personal=with_personal,
            format=ExportFormat.JSON if server is None else ExportFormat.SYSLOG,
        )
        await refuse_future_place(services, start)
        at = start

        def encode(record: AuditRecord) -> bytes:
            return formatter.encode(shorten_gsids(record))

        def confirm(place: int) -> None:
            nonlocal at
            at = place
            write_state(state, place)

        async def export_all() -> None:
            async with open_writer(server, services) as write:
                export = AuditExport(store=services.storage.audit, encode=encode, write=write)
                await export.run(at, confirm)
                while follow:
                    await services.clock.sleep(POLL_SECONDS)
                    await export.run(at, confirm)

        while follow:
            try:
                await export_all()
            except Unavailable as error:
                click.echo(f"{error.detail}; next try in {RECONNECT_SECONDS:.0f} s", err=True)
                await services.clock.sleep(RECONNECT_SECONDS)
        await export_all()

    run_with_services(invocation, work)


AnyRecord = TypeVar("AnyRecord", bound=AuditRecord | Refusal)


def shorten_gsids(one: AnyRecord) -> AnyRecord:
    """Shorten a gsid, as in the console: a person who reads it could use it (checklist GS-32)."""
    return replace(one, subject=short_gsid(one.subject), details=short_gsids(one.details))


def read_state(state: Path | None) -> int:
    try:
        text = "0" if state is None else state.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return 0
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read {state}: {error}") from error
    if not re.fullmatch(r"[0-9]{1,19}", text):
        raise BadInput(f"{state} is not a state file of this command")
    return int(text)


def write_state(state: Path | None, place: int) -> None:
    """Replace the file, so that a crash leaves the old state or the new one."""
    if state is None:
        return
    new = state.with_name(f"{state.name}.new")
    with new.open("w", encoding="ascii") as file:
        file.write(f"{place}\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(state)


async def refuse_future_place(services: Services, place: int) -> None:
    last = (await services.storage.audit.chain_end()).last_place
    if place > last:
        raise Conflict(
            f"the log ends at record {last}, the export is at {place}: was a backup restored? "
            f"Continue with --after {last}"
        )


@asynccontextmanager
async def open_writer(server: re.Match[str] | None, services: Services) -> AsyncIterator[Writer]:
    if server is None:
        yield write_to_output
        return
    scheme, host, port = server[1], server[2].strip("[]"), int(server[3])
    try:
        tls = tls_context(services.settings.outbound.ca_file) if scheme == "tls" else None
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(host, port, ssl=tls)
    except (OSError, TimeoutError) as error:
        raise Unavailable(f"cannot reach {server[0]}: {error}") from error

    async def write(data: bytes) -> None:
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                writer.write(data)
                await writer.drain()
        except (OSError, TimeoutError) as error:
            raise Unavailable(f"lost {server[0]}: {error}") from error
        if reader.at_eof():
            raise Unavailable(f"lost {server[0]}: closed by the server")

    try:
        yield write
    finally:
        writer.close()


def tls_context(ca_file: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file:
        context.load_verify_locations(cafile=ca_file)
    return context


async def write_to_output(data: bytes) -> None:
    try:
        await asyncio.to_thread(write_all, data)
    except OSError as error:
        raise Unavailable(f"cannot write to standard output: {error.strerror}") from error


def write_all(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
