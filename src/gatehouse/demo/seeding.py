"""The first start of `serve --demo`: fills an empty database with a studio and a day of its history."""

import re
from importlib.resources import files
from typing import Any, Final, cast

from msgspec.structs import replace

from gatehouse.app.endpoints import build_app
from gatehouse.app.services import Services, open_services
from gatehouse.app.services.core import open_database
from gatehouse.app.services.games import shut_down_games
from gatehouse.app.services.mail import outbox_worker
from gatehouse.demo.accounts import DemoSecrets, new_secrets, write_accounts
from gatehouse.demo.history import DAY, GAME, HUB, HUB_CLIENT, DemoDay, SimulatedClock
from gatehouse.demo.sample_app.settings import SampleSettings, write_settings
from gatehouse.demo.samples import SAMPLE_APP, SAMPLE_GAME, SETTINGS_FILE, apply_document, sample_app_port
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Misconfigured
from gatehouse.provision.document import read_document
from gatehouse.settings.merge import LoadedSettings
from gatehouse.web.server.server import ShutdownSignal

FACT: Final = "demo"  # of the installation
STARTED: Final = "begun"
DONE: Final = "done"
DAYS_AHEAD: Final = re.compile(rb"IN_([0-9]+)_DAYS")
HISTORY_SECONDS: Final = DAY + 3_600  # how long ago the studio was made: long enough for a whole day
# The least that is allowed (S-02): a password is hashed anew, as the settings say, when it is first used afterwards.
FAST_HASHING: Final = {"memory_kib": 19_456, "time_cost": 2}


class NotADemo(Misconfigured):
    public = "This database was not created by --demo. Use an empty data directory."


class HalfADemo(Misconfigured):
    public = "The first start of --demo was interrupted. Delete its data and start again."


async def seed(loaded: LoadedSettings, clock: Clock) -> DemoSecrets | None:
    """Fill an empty database and return what to print about it; None when it is a demo already.

    Raises NotADemo and HalfADemo, and leaves such a database as it is.
    """
    if await is_seeded(loaded):
        return None
    now, secrets = clock.now(), new_secrets()
    past = SimulatedClock(now - HISTORY_SECONDS)
    port = sample_app_port(loaded.settings.server.port)
    async with open_services(with_fast_hashing(loaded), clock=past, serving=True) as services:
        await services.storage.installation.set_value(FACT, STARTED)
        sample = await apply_studio(services, secrets, port=port, now=now)
        write_settings(loaded.data / SETTINGS_FILE, sample)
        await replay_day(services, past, secrets, redirect_uri=sample.redirect_uri, now=now)
        await services.core.tally.flush()
        await services.storage.installation.set_value(FACT, DONE)
    write_accounts(loaded.data, secrets)
    return secrets


async def is_seeded(loaded: LoadedSettings) -> bool:
    url = loaded.settings.database.url
    async with open_database(loaded) as storage:
        if not await storage.runner.revision():
            return False
        fact = await storage.installation.value(FACT)
    if fact is None:
        raise NotADemo(f"{NotADemo.public} ({url.masked})")
    if fact != DONE:
        raise HalfADemo(f"{HalfADemo.public} ({loaded.data}, {url.masked})")
    return True


def with_fast_hashing(loaded: LoadedSettings) -> LoadedSettings:
    passwords = replace(loaded.settings.passwords, **FAST_HASHING)
    return replace(loaded, settings=replace(loaded.settings, passwords=passwords))


async def apply_studio(services: Services, secrets: DemoSecrets, *, port: int, now: int) -> SampleSettings:
    """Apply studio.yaml and return the settings of its sample application."""
    text = (files("gatehouse.demo") / "studio.yaml").read_bytes()
    dated = DAYS_AHEAD.sub(lambda found: b"%d" % (now + int(found[1]) * DAY), text)
    document = cast("dict[str, list[dict[str, Any]]]", read_document(dated, ".yaml"))
    sample = SampleSettings(
        name="Raiders Hub",
        base_url=services.settings.server.base_url,
        port=port,
        client_id=HUB_CLIENT,
        client_secret=secrets.client_secret,
        application_id=HUB,
        access_key=secrets.access_key,
        rules=rules_of(next(one for one in document["applications"] if one["application_id"] == HUB)),
    )
    client = next(one for one in document["clients"] if one["client_id"] == HUB_CLIENT)
    client |= {"redirect_uris": [sample.redirect_uri], "post_logout_uris": [sample.home]}
    await apply_document(services, {**document}, secrets.variables)
    await services.storage.installation.set_value(SAMPLE_APP, str(HUB))
    await services.storage.installation.set_value(SAMPLE_GAME, str(GAME))
    return sample


def rules_of(application: dict[str, Any]) -> dict[str, str]:
    tree = application["schema"]["private_data"]
    return {f"{group}.{name}": rule["description"] for group, rules in tree.items() for name, rule in rules.items()}


async def replay_day(
    services: Services, past: SimulatedClock, secrets: DemoSecrets, *, redirect_uri: str, now: int
) -> None:
    """Replay a day of requests; the mail it caused counts as sent."""
    served = build_app(services, stopping=ShutdownSignal())
    day = DemoDay(served.app, services=services, clock=past, secrets=secrets, redirect_uri=redirect_uri)
    await day.replay(now)
    await shut_down_games(services.games, services.storage.game_sessions)
    await outbox_worker(services.core, lambda _message: None).run_once()
    past.cancel_timers()
