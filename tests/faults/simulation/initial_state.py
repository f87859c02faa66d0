"""The initial data of a simulated run: people, a client, an application with a role of two holders, signing keys."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

from gatehouse.accounts.model import User
from gatehouse.app.instance_key import ensure_instance_key
from gatehouse.app.services import Services
from gatehouse.app.services.core import Core, master_keys
from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.clock import Clock
from gatehouse.keys.model import REFRESH_KEYS, Algorithm, KeyLine, KeyPurpose
from gatehouse.keys.rotation import make_key
from gatehouse.keys.sealing import MasterKeys
from gatehouse.oauth.model import Client, ClientProfile, TokenSettings
from gatehouse.settings.merge import LoadedSettings
from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.migrations import run_in_child
from tests.support.builders import ORIGIN, a_record
from tests.support.clock import MovableClock
from tests.support.permission_builders import a_new_application, a_person, a_role, install_central, publish
from tests.support.service import load_test_settings

PEOPLE: Final = tuple(f"100000000{n}" for n in range(6))
SHOP: Final = 50_001
MAX_ASSIGNMENTS: Final = 2
GRACE: Final = 30  # seconds in which a refresh may be repeated
LINES: Final = (  # of algorithms with deterministic signatures
    KeyLine(KeyPurpose.TOKENS, Algorithm.EDDSA),
    REFRESH_KEYS,
    KeyLine(KeyPurpose.AUDIT, Algorithm.EDDSA),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialState:
    database: bytes  # the database file at the start of a run
    loaded: LoadedSettings
    masters: MasterKeys
    key: bytes
    secret: str  # of the client
    people: dict[str, User]

    def build_services(self, storage: Storage, clock: Clock) -> Services:
        core = Core(self.loaded, storage=storage, masters=self.masters, clock=clock, instance_key=self.key)
        return Services(core)


async def make_initial_state(directory: Path) -> InitialState:
    file = directory / "initial.db"
    url = f"sqlite:///{file}"
    await run_in_child(url)
    loaded = load_test_settings(url, directory, port=8080)
    masters = master_keys(loaded.settings)
    async with open_storage(url, migrate=False) as storage:
        key = await ensure_instance_key(storage, masters, MovableClock())
        secret, people = await fill_database(
            Services(Core(loaded, storage=storage, masters=masters, clock=MovableClock(), instance_key=key))
        )
    # Made by builders, which lack this installation's audit key.
    connection = apsw.Connection(str(file))
    connection.execute("DELETE FROM audit_events; PRAGMA journal_mode = delete")
    connection.close()
    return InitialState(
        database=file.read_bytes(), loaded=loaded, masters=masters, key=key, secret=secret, people=people
    )


async def fill_database(services: Services) -> tuple[str, dict[str, User]]:
    storage = services.storage
    await install_central(storage)
    created = [
        make_key(line, services.core.masters, now=services.clock.now(), signs_from=0, rsa_bits=2048) for line in LINES
    ]
    await storage.keys.save_keys(created, seen=0, entry=a_record(AuditEvent.KEY_MADE))
    people = {user_id: await a_person(storage, user_id) for user_id in PEOPLE}
    shop = a_new_application(0, a_role("few", user_limit=MAX_ASSIGNMENTS), "guest", project_id="mind_games")
    await publish(storage, new=shop, owners=PEOPLE[:1])
    settings = TokenSettings(id_token_alg=Algorithm.EDDSA, refresh_grace_seconds=GRACE)
    client = Client(
        client_id="web",
        name="Web shop",
        profile=ClientProfile.NATIVE,
        redirect_hosts=("shop.example",),
        first_party=True,
        token_settings=settings,
        created_at=services.clock.now(),
    )
    secret = await services.oauth.clients.commands.create(client, ORIGIN)
    return secret or "", people
