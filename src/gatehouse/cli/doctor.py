"""What `gatehouse doctor` finds without the database: settings that carry a risk, files others can read, space."""

import asyncio
import shutil
import stat
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import click

from gatehouse import logs
from gatehouse.app.instance_key import INSTANCE_KEY, has_head, refuse_wrong_master_key
from gatehouse.app.readiness import MAX_CLOCK_SKEW
from gatehouse.app.rewrapping import count_under_old_keys
from gatehouse.app.services.core import DAY, master_keys
from gatehouse.audit.head import HeadCodec, problems_at_end
from gatehouse.cli.common import NO_FLAGS, Invocation, common_options, json_option, print_json, read_settings
from gatehouse.cli.doctor_network import about_address, about_mail, about_passkeys, about_workloads
from gatehouse.cli.findings import CheckedInstallation, DatabaseCheck, Finding, Level, bad, ok, warn
from gatehouse.cli.output import format_time
from gatehouse.cli.services import open_existing_database, sqlite_file
from gatehouse.kernel.clock import Clock, SystemClock
from gatehouse.kernel.errors import GatehouseError
from gatehouse.kernel.times import seconds_outside
from gatehouse.keys.keyring import open_key
from gatehouse.keys.model import KeyState, SigningKey, Tampered, WrongMasterKey, key_state
from gatehouse.keys.rotation import KEY_LINES
from gatehouse.keys.sealing import MasterKeys
from gatehouse.oauth.clients import can_never_authenticate, has_reserved_id
from gatehouse.permissions.documents.apis import ReservedResources
from gatehouse.permissions.documents.rules import schema_rules
from gatehouse.permissions.documents.sites import NAMING_APPLICATIONS
from gatehouse.permissions.model.protected_site import ProtectedSite
from gatehouse.permissions.questions.parsing import read_rule
from gatehouse.settings.checks import LoadPurpose
from gatehouse.settings.grammar import is_loopback
from gatehouse.settings.merge import LoadedSettings, SettingsRefused
from gatehouse.settings.secret_files import DEV_KEY_FILE, GROUP_AND_WORLD, path_exists
from gatehouse.storage.database import Storage
from gatehouse.storage.inspection import (
    DeclaredResource,
    all_protected_sites,
    declared_resources,
    find_reserved_names,
    find_shared_logins,
    postgres_state,
    sqlite_state,
)
from gatehouse.storage.installation import BASE_URL
from gatehouse.storage.migrations import HEAD
from gatehouse.storage.permissions.sample_factors import sample_factor_applications
from gatehouse.storage.sqlite.connection import SYNCHRONOUS_FULL

MEBIBYTE: Final = 2**20
SPACE_WANTED: Final = 1024 * MEBIBYTE
SPACE_NEEDED: Final = 100 * MEBIBYTE
WIDE_PREFIX: Final = 8  # bits; a network wider than this is no network of one's own


def about_settings(loaded: LoadedSettings) -> Iterator[Finding]:
    risks = [*address_risks(loaded), *risky_choices(loaded)]
    yield from (warn("settings", risk) for risk in risks)
    if not risks:
        yield ok("settings", "no risky settings")


def address_risks(loaded: LoadedSettings) -> Iterator[str]:
    server, operations = loaded.settings.server, loaded.settings.operations
    if loaded.dev:
        yield "--dev is only for development on this machine"
    if (server.base_url.startswith("https:") or not is_loopback(server.host)) and not server.trusted_proxies:
        yield (
            "server.trusted_proxies is empty: all clients appear to come from the proxy and share its rate limits; "
            "list the proxy's addresses"
        )
    if any(network.prefixlen < WIDE_PREFIX for network in server.trusted_proxies):
        yield "server.trusted_proxies trusts most of the internet to set the client IP: list only your proxies"
    if operations.bind and not is_loopback(operations.bind.rpartition(":")[0].strip("[]")):
        yield f"operations.bind exposes metrics to everyone who can reach {operations.bind}: use a private network"


def risky_choices(loaded: LoadedSettings) -> Iterator[str]:
    settings = loaded.settings
    if not settings.rates.enabled:
        yield "rates.enabled is off: requests are not rate limited"
    if any(network.prefixlen < WIDE_PREFIX for network in settings.outbound.allow):
        yield "outbound.allow permits almost every address, including private ones: list only what must be reachable"
    if settings.tokens.jwt_without_factor:
        yield "tokens.jwt_without_factor issues JWTs to game clients that are not bound to a device"
    if settings.log.level == "debug":
        yield "log.level is debug, which produces large logs"


def about_files(loaded: LoadedSettings) -> Iterator[Finding]:
    exposed = [path for path in paths_to_check(loaded) if is_exposed(path)]
    for path in exposed:
        mode = stat.S_IMODE(path.stat().st_mode)
        yield warn("files", f"{path} is accessible to other users (mode {mode:04o}): run chmod go-rwx")
    if not exposed:
        yield ok("files", "the data directory is private")


def paths_to_check(loaded: LoadedSettings) -> Iterator[Path]:
    """Skip files in a directory that no other user can enter."""
    database = sqlite_file(loaded)
    for directory in dict.fromkeys([loaded.data, *([database.parent] if database else [])]):
        if path_exists(directory) and is_exposed(directory):
            yield directory
            yield from (path for path in secrets_in(directory, database) if path_exists(path))


def secrets_in(directory: Path, database: Path | None) -> list[Path]:
    files = [directory / DEV_KEY_FILE]
    if database is not None and database.parent == directory:
        files += [database, Path(f"{database}-wal")]
    return files


def is_exposed(path: Path) -> bool:
    return bool(path.stat().st_mode & GROUP_AND_WORLD)


def about_space(loaded: LoadedSettings) -> Iterator[Finding]:
    database = sqlite_file(loaded)
    place = database.parent if database else loaded.data
    if not path_exists(place):
        return
    free = shutil.disk_usage(place).free
    text = f"{free // MEBIBYTE:,} MiB free in {place}"
    if free < SPACE_NEEDED:
        yield bad("disk", f"{text}: free up space, writes will fail soon")
    elif free < SPACE_WANTED:
        yield warn("disk", f"{text}: free up space")
    else:
        yield ok("disk", text)


# What `gatehouse doctor` finds in the database.


MAX_RESERVED_LISTED = 20  # rules with a reserved name that are listed
MAX_SHARED_LISTED = 20  # groups of accounts with one address that are listed
MAX_UNSEALED_SECONDS = 60  # seconds after which a record should have found its place


async def about_schema(installation: CheckedInstallation) -> AsyncIterator[Finding]:
    held = await installation.storage.runner.revision()
    if held < HEAD:
        yield bad("schema", f"schema revision {held}, but {HEAD} is required: back up, then run `gatehouse migrate`")
    elif held > HEAD:
        yield bad(
            "schema", f"schema revision {held} is newer than this Gatehouse supports ({HEAD}): upgrade Gatehouse"
        )
    else:
        yield ok("schema", f"schema revision {held}")


async def about_database(installation: CheckedInstallation) -> AsyncIterator[Finding]:
    on_sqlite = installation.settings.database.url.is_sqlite
    for finding in await (sqlite_findings(installation) if on_sqlite else postgres_findings(installation)):
        yield finding


async def sqlite_findings(installation: CheckedInstallation) -> list[Finding]:
    found = await installation.storage.runner.snapshot_read(sqlite_state)
    problems = [bad("database", f"SQLite reports damage: {line}; restore a backup") for line in found.damage]
    if found.journal_mode != "wal" or found.synchronous != SYNCHRONOUS_FULL:
        problems.append(
            bad(
                "database",
                f"SQLite runs with journal_mode {found.journal_mode} and synchronous {found.synchronous} and "
                "can lose committed writes on power loss: put the file on a local disk",
            )
        )
    problems += missing_indices(found.missing_indices)
    return problems or [ok("database", "SQLite, journal_mode wal, synchronous full, integrity ok")]


async def postgres_findings(installation: CheckedInstallation) -> list[Finding]:
    found = await installation.storage.runner.snapshot_read(postgres_state)
    problems = [
        bad("database", f"PostgreSQL runs with {name} off and can lose committed writes in a crash: turn it on")
        for name, value in (
            ("fsync", found.fsync),
            ("synchronous_commit", found.synchronous_commit),
            ("full_page_writes", found.full_page_writes),
        )
        if value == "off"
    ]
    problems += missing_indices(found.missing_indices)
    if found.rewritable:
        problems.append(
            warn(
                "database",
                f"this database role can change {' and '.join(found.rewritable)}: use a role that cannot "
                "change audit records (deploy/postgresql-grants.sql)",
            )
        )
    return problems or [ok("database", f"PostgreSQL {found.version}, durable, audit records are write-protected")]


def missing_indices(missing: frozenset[str]) -> list[Finding]:
    names = ", ".join(sorted(missing))
    return [bad("database", f"missing indexes: {names}; restore a backup")] if missing else []


async def about_clock(installation: CheckedInstallation) -> AsyncIterator[Finding]:
    before = installation.clock.now()
    theirs = await installation.storage.runner.database_time()
    if theirs is None:
        return
    apart = seconds_outside(theirs, before, installation.clock.now())
    if apart > MAX_CLOCK_SKEW:
        yield bad("clock", f"the clocks of this machine and the database differ by {apart} seconds: run NTP on both")
    else:
        yield ok("clock", f"{apart} seconds difference to the database")


async def about_master_key(installation: CheckedInstallation) -> AsyncIterator[Finding]:
    try:
        await refuse_wrong_master_key(installation.storage, installation.masters)
    except (WrongMasterKey, Tampered) as error:
        yield bad("master key", f"it does not decrypt this database ({error}): configure the right key")
        return
    left = await count_under_old_keys(installation.storage, installation.masters)
    for table, count in left.items():
        yield warn(
            "master key",
            f"{count:,} secrets in {table} are encrypted with another key: run `gatehouse key rewrap`",
        )
    if not left and installation.settings.security.previous_master_keys:
        yield warn("master key", "the previous key is no longer used: remove it from the settings")
    elif not left:
        yield ok("master key", f"{installation.masters.primary_id} encrypts everything")


async def about_nodes(installation: CheckedInstallation) -> AsyncIterator[Finding]:
    """List the running nodes: `gatehouse key rewrap` is refused while one of them does not hold the new key."""
    nodes = await installation.storage.nodes.live_nodes()
    in_use = (await installation.storage.nodes.master_keys_in_use()).split()
    for node in nodes:
        lacking = [key_id for key_id in in_use if not node.holds(key_id)]
        text = f"{node.name}, version {node.version}, master keys {node.master_keys.replace(' ', ', ')}"
        if lacking:
            yield bad("nodes", f"{text}: {', '.join(lacking)} is in use; restart it with this key")
        elif not node.holds(installation.masters.primary_id):
            yield warn("nodes", f"{text}: restart it with {installation.masters.primary_id}, then rewrap")
        else:
            yield ok("nodes", text)
    if len({node.version for node in nodes}) > 1:
        yield warn("nodes", "they run different versions: finish the upgrade")
    if not nodes:
        yield ok("nodes", "none is running")


async def about_signing_keys(installation: CheckedInstallation) -> AsyncIterator[Finding]:
    now = installation.clock.now()
    live = [
        key
        for key in (await installation.storage.keys.load_keys()).keys
        if key_state(key, now) is not KeyState.RETIRED
    ]
    problems = [
        *damaged_keys(live, installation.masters),
        *unsigned_lines(live, now),
        *old_keys(live, now, installation),
    ]
    for problem in problems:
        yield problem
    if not problems:
        counts = {kind: sum(key_state(key, now) is kind for key in live) for kind in KeyState}
        yield ok("signing keys", ", ".join(f"{count} {kind}" for kind, count in counts.items() if count))


def damaged_keys(live: list[SigningKey], masters: MasterKeys) -> Iterator[Finding]:
    for key in live:
        try:
            open_key(key, masters)
        except (Tampered, WrongMasterKey) as error:
            yield bad("signing keys", f"{key.kid} cannot be used ({error}): restore it from a backup")


def unsigned_lines(live: list[SigningKey], now: int) -> Iterator[Finding]:
    signing = {key.line for key in live if key_state(key, now) is KeyState.SIGNING}
    for line in KEY_LINES:
        if line not in signing:
            yield bad("signing keys", f"no {line.alg} key for {line.purpose}: start the service to create one")


def old_keys(live: list[SigningKey], now: int, installation: CheckedInstallation) -> Iterator[Finding]:
    due = (installation.settings.keys.rotate_days + 1) * DAY
    for key in live:
        if not key.signs_until and now - max(key.signs_from, key.created_at) > due:
            yield warn("signing keys", f"{key.kid} is due for rotation: the service rotates it while it is running")


async def about_audit(installation: CheckedInstallation) -> AsyncIterator[Finding]:
    waiting = await installation.storage.audit.unsealed_records(1)
    end = await installation.storage.audit.chain_end()
    head = end.seal
    key = await installation.storage.installation.value(INSTANCE_KEY)
    if end.head is None and (key is None or not has_head(installation.masters, key)):
        yield warn("audit log", "it has no head yet: the service creates one when it starts")
        return
    problems = problems_at_end(HeadCodec(installation.masters).decode(end), end)
    for problem in problems:
        yield bad("audit log", f"{problem}: run `gatehouse audit verify`")
    if problems:
        return
    if waiting and installation.clock.now() - waiting[0].at > MAX_UNSEALED_SECONDS:
        since = format_time(waiting[0].at)
        yield warn("audit log", f"unsealed records since {since}: the service seals them while it is running")
    elif head is None:
        yield ok("audit log", "nothing is sealed yet")
    else:
        yield ok("audit log", f"{head.place:,} records sealed, the last at {format_time(head.at)}")


async def about_setup(installation: CheckedInstallation) -> AsyncIterator[Finding]:
    if await installation.storage.accounts.setup_is_closed():
        yield ok("setup", "closed")
    else:
        yield warn("setup", "there is no administrator yet: open the setup link or run `gatehouse admin create`")


async def about_rules(installation: CheckedInstallation) -> AsyncIterator[Finding]:
    found = await installation.storage.runner.snapshot_read(partial(find_reserved_names, MAX_RESERVED_LISTED))
    for line in found:
        yield warn("rules", f"{line}: the name is reserved and cannot be saved again; rename it")
    if not found:
        yield ok("rules", "no reserved names")


async def about_factors(installation: CheckedInstallation) -> AsyncIterator[Finding]:
    """Tell games that send the factor of a code sample, which is the same on every device."""
    found = await installation.storage.runner.snapshot_read(
        partial(sample_factor_applications, installation.clock.now())
    )
    for name in found:
        yield warn(
            "factors",
            f"players of {name} send the factor of a code sample, the same on every device: "
            "call device_factor of the client library",
        )
    if not found:
        yield ok("factors", "no game sends the factor of a code sample")


async def about_addresses(installation: CheckedInstallation) -> AsyncIterator[Finding]:
    """Tell accounts that have one address, from before compatibility forms were compared."""
    found = await installation.storage.runner.snapshot_read(partial(find_shared_logins, MAX_SHARED_LISTED))
    for group in found:
        yield warn(
            "addresses",
            f"accounts {', '.join(group)} have one email address in different letters; each signs in with its exact "
            "spelling: change the address of all but one, or erase the accounts that are not used",
        )
    if not found:
        yield ok("addresses", "no email address belongs to two accounts")


async def about_sites(installation: CheckedInstallation) -> AsyncIterator[Finding]:
    """Check what would close a protected site to everyone."""
    sites = await installation.storage.runner.snapshot_read(all_protected_sites)
    if not sites:
        return
    problems = [*await sites_outside_schema(installation.storage, sites)]
    if not installation.settings.server.trusted_proxies:
        problems.append("no proxy may ask about them: list the addresses of your proxies in server.trusted_proxies")
    if any(site.origin == installation.settings.server.base_url for site in sites):
        problems.append(f"{installation.settings.server.base_url} is Gatehouse itself: remove this site")
    count = len({site.application_id for site in sites})
    is_named = (await installation.live_settings()).forward_auth.require_application
    if count >= NAMING_APPLICATIONS and not is_named:
        problems.append(
            f"{count} applications have sites, but forward_auth.require_application is off: a mistake in the proxy "
            "of one site can open sites of other applications; add application_id to the configuration of every "
            "proxy, then run `gatehouse config set forward_auth.require_application=true`"
        )
    for problem in problems:
        yield warn("protected sites", problem)
    if not problems:
        named = "; /proxy/auth without application_id is refused" if count >= NAMING_APPLICATIONS else ""
        yield ok("protected sites", f"{len(sites)}, each with a permission of its application{named}")


async def sites_outside_schema(storage: Storage, sites: Sequence[ProtectedSite]) -> list[str]:
    models = await storage.permissions.application_models({site.application_id for site in sites})
    known = {
        number: schema_rules(model.schema.private_data, model.schema.public_data) for number, model in models.items()
    }
    return [
        f"{site.origin} asks for {site.rule}, which is not in the schema of application {site.application_id}: "
        "add it there, or change the site"
        for site in sites
        if not any(rule in known[site.application_id] for rule in read_rule(site.rule, "rule").rules)
    ]


async def about_clients(installation: CheckedInstallation) -> AsyncIterator[Finding]:
    clients = await installation.storage.clients.clients()
    problems = [
        f"{client.client_id} has an ID of digits only or a reserved name, which is refused for new clients: replace "
        f"it by a client with another ID; APIs list it as {client.subject}"
        for client in clients
        if has_reserved_id(client)
    ]
    problems += [
        f"{client.client_id} has neither a secret nor keys and can never authenticate: run `gatehouse client "
        f"rotate-secret {client.client_id}`, or remove it"
        for client in clients
        if can_never_authenticate(client, installation.clock.now())
    ]
    for problem in problems:
        yield warn("clients", problem)
    if not problems:
        yield ok("clients", f"{len(clients)}, each with a proper ID and a way to authenticate")


async def about_apis(installation: CheckedInstallation) -> AsyncIterator[Finding]:
    """Check for resources that could not be declared today; their APIs keep working, but cannot be changed."""
    oauth = installation.settings.oauth
    base_url = await installation.storage.installation.value(BASE_URL) or installation.settings.server.base_url
    reserved = ReservedResources(base_url=base_url, document_hosts=lambda: oauth.client_document_hosts)
    by_key: dict[str, list[DeclaredResource]] = {}
    for one in await installation.storage.runner.snapshot_read(declared_resources):
        by_key.setdefault(one.api_resource.rstrip("/").lower(), []).append(one)
    live = [one for same in by_key.values() for one in same if not one.removed]
    problems = [
        *reserved_resource_problems(live, reserved),
        *(problem for same in by_key.values() for problem in shared_resource_problems(same)),
    ]
    for problem in problems:
        yield warn("APIs", f"{problem}: declare another resource")
    if live and not problems:
        yield ok("APIs", f"{len(live)}, each with a resource of its own")


def reserved_resource_problems(live: Sequence[DeclaredResource], reserved: ReservedResources) -> Iterator[str]:
    for one in live:
        name = f"{one.api_resource} of application {one.application_id}"
        if reserved.is_own(one.api_resource):
            yield f"{name} is an address of Gatehouse itself, and no token is issued for it"
        elif reserved.is_document_host(one.api_resource):
            yield f"{name} is on a host of oauth.client_document_hosts, and its API cannot be changed"


def shared_resource_problems(same: Sequence[DeclaredResource]) -> Iterator[str]:
    """Yield what is wrong with APIs whose resources differ at most in case and a final slash."""
    for one in same:
        others = [
            str(other.application_id)
            for other in same
            if other is not one and not (other.removed and other.project_id == one.project_id is not None)
        ]
        if others and not one.removed:
            yield (
                f"{one.api_resource} of application {one.application_id} is also that of application "
                f"{', '.join(others)}, and its API cannot be changed"
            )


DATABASE_CHECKS: tuple[DatabaseCheck, ...] = (
    about_database,
    about_clock,
    about_master_key,
    about_nodes,
    about_signing_keys,
    about_audit,
    about_setup,
    about_rules,
    about_addresses,
    about_factors,
    about_sites,
    about_clients,
    about_workloads,
    about_apis,
    about_mail,
    about_address,
    about_passkeys,
)


async def run_database_checks(loaded: LoadedSettings, storage: Storage, clock: Clock) -> AsyncIterator[Finding]:
    """Check the schema first: with an unknown one no other query works."""
    from apsw import Error as SQLiteError
    from asyncpg import PostgresError

    masters = master_keys(loaded.settings)
    patient = CheckedInstallation(loaded=loaded, storage=storage, masters=masters, clock=clock)
    async for finding in about_schema(patient):
        yield finding
        if finding.level != "ok":
            return
    for examination in DATABASE_CHECKS:
        try:
            async for finding in examination(patient):
                yield finding
        except (GatehouseError, SQLiteError, PostgresError) as error:
            topic = examination.__name__.removeprefix("about_").replace("_", " ")
            yield bad(topic, f"check failed: {error}")


# `gatehouse doctor`: what is wrong with an installation, and how to fix it.


COLOURS: Final = {Level.OK: "green", Level.WARN: "yellow", Level.BAD: "red"}


@click.command()
@common_options
@json_option
def doctor(invocation: Invocation, *, as_json: bool) -> None:
    """Check the whole installation and what it needs around it; exit 1 on problems.

    That is settings, files, disk, database, keys, nodes, audit log, addresses of accounts, protected sites, clients,
    issuers of workload identities, APIs, the mail server, base_url as it is reached from here, and certificates.

    Read-only; the service may be running.
    """
    logs.configure(dev=True, level="critical")
    findings = collect_findings(invocation)
    is_sound = all(finding.level is not Level.BAD for finding in findings)
    if as_json:
        print_json({"ok": is_sound, "findings": findings})
    else:
        for finding in findings:
            level = click.style(f"{finding.level:<5}", fg=COLOURS[finding.level])
            click.echo(f"{level}{finding.topic}: {finding.text}")
    if not is_sound:
        raise SystemExit(1)


def collect_findings(invocation: Invocation) -> list[Finding]:
    try:
        loaded = read_settings(invocation, NO_FLAGS, purpose=LoadPurpose.COMMAND)
    except SettingsRefused as refused:
        return [bad("settings", problem) for problem in refused.problems]
    return asyncio.run(all_findings(loaded))


async def all_findings(loaded: LoadedSettings) -> list[Finding]:
    local = [*about_settings(loaded), *about_files(loaded), *about_space(loaded)]
    return [*local, *[finding async for finding in database_findings(loaded)]]


async def database_findings(loaded: LoadedSettings) -> AsyncIterator[Finding]:
    from apsw import Error as SQLiteError

    try:
        async with open_existing_database(loaded) as storage:
            async for finding in run_database_checks(loaded, storage, SystemClock()):
                yield finding
    except (GatehouseError, SQLiteError) as error:
        yield bad("database", str(error))
