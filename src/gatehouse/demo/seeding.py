"""The first start of `serve --demo`: an empty database becomes a studio with a day behind it."""

import re
from dataclasses import replace
from importlib.resources import files
from typing import Any, Final, cast

from gatehouse.app.front import front
from gatehouse.app.house import House, database, open_house
from gatehouse.app.mailing import postman
from gatehouse.demo.accounts import write_accounts
from gatehouse.demo.cast import Secrets, new_secrets
from gatehouse.demo.connecting import FILE, SAMPLE_APP, SAMPLE_GAME, applied, port_beside
from gatehouse.demo.history import DAY, GAME, HUB, HUB_CLIENT, Day
from gatehouse.demo.past import PastClock
from gatehouse.demo.sample_app.settings import SampleSettings, write
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Misconfigured
from gatehouse.provision.document import read_document
from gatehouse.settings import Loaded
from gatehouse.web.server import Stopping

FACT: Final = "demo"  # of the installation
BEGUN: Final = "begun"
DONE: Final = "done"
AHEAD: Final = re.compile(rb"IN_([0-9]+)_DAYS")
LIVED: Final = DAY + 3_600  # how long ago the studio was made: long enough for a whole day
# The least that is allowed (S-02): a password is hashed anew, as the settings say, when it is first used afterwards.
QUICK: Final = {"memory_kib": 19_456, "time_cost": 2}


class NotADemo(Misconfigured):
    public = "This database was not created by --demo. Use an empty data directory."


class HalfADemo(Misconfigured):
    public = "The first start of --demo was interrupted. Delete its data and start again."


async def seed(loaded: Loaded, clock: Clock) -> Secrets | None:
    """Fill an empty database and return what to tell about it; None when a demo is there already.

    Raises NotADemo and HalfADemo, and leaves such a database as it is.
    """
    if await is_seeded(loaded):
        return None
    now, secrets = clock.now(), new_secrets()
    past = PastClock(now - LIVED)
    port = port_beside(loaded.settings.server.port)
    async with open_house(hurried(loaded), clock=past, serving=True) as house:
        await house.storage.installation.state(FACT, BEGUN)
        sample = await furnish(house, secrets, port=port, now=now)
        write(loaded.data / FILE, sample)
        await live(house, past, secrets, redirect_uri=sample.redirect_uri, now=now)
        await house.tally.write()
        await house.storage.installation.state(FACT, DONE)
    write_accounts(loaded.data, secrets)
    return secrets


async def is_seeded(loaded: Loaded) -> bool:
    url = loaded.settings.database.url
    async with database(loaded) as storage:
        if not await storage.runner.revision():
            return False
        fact = await storage.installation.fact(FACT)
    if fact is None:
        raise NotADemo(f"{NotADemo.public} ({url.shown})")
    if fact != DONE:
        raise HalfADemo(f"{HalfADemo.public} ({loaded.data}, {url.shown})")
    return True


def hurried(loaded: Loaded) -> Loaded:
    passwords = replace(loaded.settings.passwords, **QUICK)
    return replace(loaded, settings=replace(loaded.settings, passwords=passwords))


async def furnish(house: House, secrets: Secrets, *, port: int, now: int) -> SampleSettings:
    """Everything in studio.yaml, and which of it the samples are."""
    text = (files("gatehouse.demo") / "studio.yaml").read_bytes()
    dated = AHEAD.sub(lambda found: b"%d" % (now + int(found[1]) * DAY), text)
    document = cast("dict[str, list[dict[str, Any]]]", read_document(dated, ".yaml"))
    sample = SampleSettings(
        name="Raiders Hub",
        base_url=house.settings.server.base_url,
        port=port,
        client_id=HUB_CLIENT,
        client_secret=secrets.client_secret,
        application_id=HUB,
        access_key=secrets.access_key,
        rules=rules_of(next(one for one in document["applications"] if one["application_id"] == HUB)),
    )
    client = next(one for one in document["clients"] if one["client_id"] == HUB_CLIENT)
    client |= {"redirect_uris": [sample.redirect_uri], "post_logout_uris": [sample.home]}
    await applied(house, {**document}, secrets.variables)
    await house.storage.installation.state(SAMPLE_APP, str(HUB))
    await house.storage.installation.state(SAMPLE_GAME, str(GAME))
    return sample


def rules_of(application: dict[str, Any]) -> dict[str, str]:
    tree = application["schema"]["private_data"]
    return {f"{group}.{name}": rule["description"] for group, rules in tree.items() for name, rule in rules.items()}


async def live(house: House, past: PastClock, secrets: Secrets, *, redirect_uri: str, now: int) -> None:
    """A day of visitors; the letters that came of it were read long ago."""
    served = front(house, stopping=Stopping())
    day = Day(served.app, house=house, clock=past, secrets=secrets, redirect_uri=redirect_uri)
    await day.live(now)
    await served.game.leave(house.storage.game_sessions)
    reading = postman(
        house.settings, store=house.storage.mail, masters=house.masters, clock=past, show=lambda _letter: None
    )
    await reading.run_once()
    past.let_go()
