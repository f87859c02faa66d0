"""Contract tests of accounts/importing/model.py: BatchFunction, through the importer."""

import asyncio
import io
import time
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from gatehouse.accounts.decoys import DecoyHashes
from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.importing import importer as importer_module
from gatehouse.accounts.importing.checks import ProviderIssuer
from gatehouse.accounts.importing.files import open_import_file
from gatehouse.accounts.importing.importer import Importer, ImportJob, ImportTotals
from gatehouse.accounts.importing.model import AccountCandidate, ImportFormat, RefusedRow
from gatehouse.accounts.model import ProviderAnswer
from gatehouse.accounts.second_factors.model import totp_sealing_purpose
from gatehouse.audit.events import AuditEvent
from gatehouse.keys.sealing import MasterKeys
from gatehouse.storage.database import Storage
from tests.support.builders import ALL_METHODS, NOW, ORIGIN, RECORDER, a_record, a_user, an_identity
from tests.support.clock import MovableClock

MASTERS = MasterKeys(bytes(range(32)))
BCRYPT = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"
STEAM = ProviderIssuer("steam", "https://steamcommunity.com/openid")
ISSUERS = {
    "steam": STEAM,
    "google": ProviderIssuer("google", "https://accounts.google.com"),
    "microsoft": ProviderIssuer("microsoft", ""),
}
LINKED = "login,provider,subject,user_id"
HEADER = "login,nick,username,password_hash,totp_secret,tags,purchases,email_verified,user_id"
FULL = f'anna@studio.example,Anna,anna,{BCRYPT},JBSWY3DPEHPK3PXP,"beta,vip",steam:480,true,4711'
BARE = "ben@studio.example,,,,,,,,"


def an_importer(storage: Storage, store: Any = None) -> Importer:
    imports = store or storage.imports
    return Importer(
        judge=storage.imports.judge_candidates,
        store=imports.import_candidates,
        issuers=lambda: ISSUERS,
        decoys=DecoyHashes(store=storage.accounts, key=bytes(32), clock=MovableClock(NOW)),
        sealer=MASTERS,
        recorder=RECORDER,
        clock=MovableClock(NOW),
    )


async def run(
    target: Importer, *lines: str, header: str = HEADER, import_id: str = "", dry_run: bool = False
) -> tuple[ImportTotals, list[RefusedRow]]:
    content = "\n".join((header, *lines)).encode()
    opened = open_import_file(io.BytesIO(content), ImportFormat.CSV)
    refused: list[RefusedRow] = []
    job = ImportJob(source=ImportFormat.CSV, import_id=import_id or opened.import_id, origin=ORIGIN, dry_run=dry_run)
    return await target.run(opened.rows, job, report=refused.append), refused


def counts(totals: ImportTotals) -> tuple[int, int, int]:
    return totals.imported, totals.known, totals.refused


async def imported_records(storage: Storage) -> Sequence[Any]:
    return await storage.audit.newest_records(100, "", AuditEvent.USER_IMPORTED.value)


async def test_an_account_comes_with_everything_that_its_row_has(storage: Storage) -> None:
    totals, refused = await run(an_importer(storage), FULL, BARE)
    assert (counts(totals), refused) == ((2, 0, 0), [])
    assert (totals.hashes["bcrypt"], totals.totp, totals.without_password) == (1, 1, 1)
    anna = await storage.accounts.user("4711")
    assert (anna.login, anna.nick, anna.username, anna.email_verified) == (
        "anna@studio.example",
        "Anna",
        "anna",
        True,
    )
    assert anna.tags == {"beta", "vip"}
    assert anna.purchases == {"steam:480"}
    assert anna.password_hash == f"imported:{BCRYPT}"
    assert MASTERS.open(anna.sealed_totp or b"", purpose=totp_sealing_purpose("4711")) == b"JBSWY3DPEHPK3PXP"
    assert await storage.accounts.user_by_username("anna") == anna
    ben = await storage.accounts.user_by_login("ben@studio.example")
    assert ben is not None
    assert (ben.nick, ben.password_hash, ben.email_verified) == (f"Player {ben.user_id}", None, False)
    assert not ben.may_add_factors
    records = {record.subject: record for record in await imported_records(storage)}
    assert records.keys() == {"4711", ben.user_id}
    assert records["4711"].personal == {"address": ORIGIN.address, "login": "anna@studio.example", "nick": "Anna"}


async def test_im_04_nothing_that_exists_is_changed(storage: Storage) -> None:
    old = a_user(user_id="4711", login="other@studio.example", username="cleo", password_hash="kept")
    await storage.accounts.create_user(old, RECORDER.record(AuditEvent.USER_CREATED, ORIGIN, subject="4711"))
    gone = a_user(user_id="4712", username="gone")
    await storage.accounts.create_user(gone, RECORDER.record(AuditEvent.USER_CREATED, ORIGIN, subject="4712"))
    entry = RECORDER.record(AuditEvent.USER_ERASED, ORIGIN, subject="4712")
    await storage.profile.erase_user("4712", entry, even_last_administrator=False, now=NOW)
    before = await storage.accounts.user("4711")

    totals, refused = await run(
        an_importer(storage),
        f"Other@Studio.example,Eve,,{BCRYPT},,,,true,",
        "eve@studio.example,Eve,cleo,,,,,,",
        "eve2@studio.example,Eve,,,,,,,4711",
        "eve3@studio.example,Eve,,,,,,,4712",
        "eve4@studio.example,Eve,gone,,,,,,",
        "eve5@studio.example,Eve,,,,,,,",
    )
    assert counts(totals) == (1, 0, 5)
    assert [(row.number, row.reason) for row in refused] == [
        (2, "the login belongs to user 4711"),
        (3, "the user name cleo belongs to another account, or did before"),
        (4, "the user ID 4711 is in use or was used before"),
        (5, "the user ID 4712 is in use or was used before"),
        (6, "the user name gone belongs to another account, or did before"),
    ]
    assert await storage.accounts.user("4711") == before


async def test_rows_are_checked_by_the_rules_of_registration(storage: Storage) -> None:
    totals, refused = await run(
        an_importer(storage),
        "no-address,,,,,,,,",
        ",Anna,,,,,,,",
        f"a@studio.example,{'x' * 65},,,,,,,",
        "a@studio.example,,admin,,,,,,",
        "a@studio.example,,,,,email_verified,,,",
        "a@studio.example,,,,short,,,,",
        "a@studio.example,,,,,,,,0012",
        "a@studio.example,,,$2b$31$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW,,,,,",
        "a@studio.example,,,,,,,maybe,",
        "a\u202e@studio.example,,,,,,,,",
    )
    assert counts(totals) == (0, 0, 10)
    assert [row.reason.partition(":")[0] for row in refused] == [
        *("login", "has no login and no identity", "nick", "username", "tags", "totp_secret", "user_id"),
        *("the bcrypt cost is 31; at most 14 is accepted", "email_verified must be true or false", "login"),
    ]
    assert await storage.accounts.all_users() == []


async def test_im_05_names_that_appear_twice_in_a_file_are_refused_the_second_time(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importer_module, "BATCH_SIZE", 1)  # in another batch too
    totals, refused = await run(
        an_importer(storage),
        "a@studio.example,,anna,,,,,,1",
        "A@studio.example,,,,,,,,",
        "b@studio.example,,Anna,,,,,,",
        "c@studio.example,,,,,,,,1",
    )
    assert counts(totals) == (1, 0, 3)
    assert [row.reason for row in refused] == [
        "has the same login as row 2",
        "has the same username as row 2",
        "has the same user_id as row 2",
    ]


async def test_a_dry_run_tells_the_same_and_stores_nothing(storage: Storage) -> None:
    lines = (FULL, BARE, "no-address,,,,,,,,", BARE)
    planned = await run(an_importer(storage), *lines, dry_run=True)
    assert await storage.accounts.all_users() == []
    assert await imported_records(storage) == []
    assert await run(an_importer(storage), *lines) == planned


async def test_an_import_makes_50_000_accounts_a_minute(storage: Storage) -> None:
    """Measured in CPU time, which other tests on the machine do not change much; it takes a third of it."""
    lines = [FULL.replace("anna", f"p{number}").replace("4711", str(number)) for number in range(10, 2_010)]
    started = time.process_time()
    totals, _ = await run(an_importer(storage), *lines)
    assert totals.imported == 2_000
    assert time.process_time() - started < 2_000 / 50_000 * 60


class InterruptedStore:
    """Stops after the first batch, like a process that is killed."""

    def __init__(self, storage: Storage) -> None:
        self._stores = [storage.imports]

    async def import_candidates(self, candidates: Sequence[AccountCandidate], import_id: str) -> Any:
        if not self._stores:
            raise KeyboardInterrupt
        return await self._stores.pop().import_candidates(candidates, import_id)


async def test_im_06_an_interrupted_import_continues_and_doubles_nothing(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importer_module, "BATCH_SIZE", 2)
    lines = [f"p{number}@studio.example,,,,,,,,{number if number == 1 else ''}" for number in range(1, 6)]
    with pytest.raises(KeyboardInterrupt):
        await run(an_importer(storage, InterruptedStore(storage)), *lines)
    first = {user.login: user.user_id for user in await storage.accounts.all_users()}
    assert first.keys() == {"p1@studio.example", "p2@studio.example"}
    totals, refused = await run(an_importer(storage), *lines)
    assert (counts(totals), refused) == ((3, 2, 0), [])
    users = {user.login: user.user_id for user in await storage.accounts.all_users()}
    assert len(users) == 5
    assert first.items() <= users.items()
    assert len(await imported_records(storage)) == 5
    # Another file is another import, unless it names the first one.
    _, refused = await run(an_importer(storage), *lines, "p6@studio.example,,,,,,,,")
    assert len(refused) == 5
    again, _ = await run(an_importer(storage), lines[0], import_id="mine")
    corrected, _ = await run(an_importer(storage), "p7@studio.example,,,,,,,,", import_id="mine")
    assert (counts(again), counts(corrected)) == ((0, 0, 1), (1, 0, 0))


async def test_of_two_imports_at_once_each_account_is_made_by_one(storage: Storage) -> None:
    lines = [f"p{number}@studio.example,,,,,,,,{number}" for number in range(1, 200)]
    results = await asyncio.gather(
        run(an_importer(storage), *lines, import_id="one"), run(an_importer(storage), *lines, import_id="two")
    )
    assert sum(totals.imported for totals, _ in results) == 199
    assert sum(totals.refused for totals, _ in results) == 199
    assert len(await storage.accounts.all_users()) == 199


async def test_a_used_generated_id_is_replaced(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = a_user(user_id="1000000001")
    await storage.accounts.create_user(taken, RECORDER.record(AuditEvent.USER_CREATED, ORIGIN, subject="1000000001"))
    ids = iter(["1000000001", "1000000001", "1000000002"])
    monkeypatch.setattr("gatehouse.accounts.importing.checks.new_user_id", lambda: next(ids))
    totals, refused = await run(an_importer(storage), "a@studio.example,,,,JBSWY3DPEHPK3PXP,,,,")
    assert (counts(totals), refused) == ((1, 0, 0), [])
    user = await storage.accounts.user_by_login("a@studio.example")
    assert user is not None
    assert user.user_id == "1000000002"
    assert MASTERS.open(user.sealed_totp or b"", purpose=totp_sealing_purpose("1000000002"))


@pytest.mark.parametrize("import_id", ["", "x" * 65, "a\nb"])
async def test_the_import_id_is_one_short_line(storage: Storage, import_id: str) -> None:
    job = ImportJob(source=ImportFormat.CSV, import_id=import_id, origin=ORIGIN)
    with pytest.raises(BadAccount):
        await an_importer(storage).run(iter(()), job, report=print)


async def test_id_14_imported_identity_has_its_kept_tags(storage: Storage) -> None:
    """A sanction is about the identity, also when its account is imported anew."""
    user = a_user()
    identity = replace(an_identity(user.user_id, "76561197960265728"), issuer=STEAM.issuer, provider="steam")
    await storage.profile.create_with_identity(user, identity, a_record())
    answer = ProviderAnswer(tags={"vac_banned": True, "fair": True}, kept_tags=frozenset({"vac_banned"}))
    await storage.profile.record_identity_use(identity, answer, lambda _: a_record())
    await storage.profile.link_identity(an_identity(user.user_id), a_record(), (), rev=0)
    await storage.profile.unlink_identity(
        user.user_id, identity.issuer, identity.subject, a_record(), (), methods=ALL_METHODS
    )
    await run(an_importer(storage), f",steam,{identity.subject},4711", header=LINKED)
    assert (await storage.accounts.user("4711")).provided_tags == {"vac_banned"}


async def test_im_10_identities_come_along_and_belong_to_one_account(storage: Storage) -> None:
    lines = (
        ",steam,7656,",
        "a@studio.example,google,1,",
        "b@studio.example,facebook,1,",
        ",facebook,2,",
        ",steam,7656,",
        "c@studio.example,microsoft,3,",
        f"d@studio.example,google,{'x' * 256},",
        ",,,",
    )
    totals, refused = await run(an_importer(storage), *lines, header=LINKED)
    assert (counts(totals), totals.identities, totals.left_out) == ((4, 0, 4), 2, 2)
    assert [(row.number, row.reason) for row in refused] == [
        (4, "imported without identity at facebook: no such provider is configured"),
        (5, "has no login and no identity; identity at facebook: no such provider is configured"),
        (6, "has the same identity as row 2"),
        (7, "imported without identity at microsoft: the provider needs the ID of one tenant"),
        (8, "subject: must be 1 to 255 visible characters on one line"),
        (9, "has no login and no identity"),
    ]
    gustav = await storage.profile.user_by_identity(STEAM.issuer, "7656")
    assert gustav is not None
    assert (gustav.login, gustav.password_hash, gustav.system_tags) == (None, None, {"linked_steam"})
    again, _ = await run(an_importer(storage), *lines, header=LINKED)
    assert counts(again) == (0, 4, 4)
    # Another import cannot take an identity over, or add it to an account.
    _, stolen = await run(an_importer(storage), "eve@studio.example,steam,7656,", ",steam,7656,9", header=LINKED)
    assert [row.reason for row in stolen] == [
        f"an identity of it belongs to user {gustav.user_id}",
        "has the same identity as row 2",
    ]
    assert await storage.profile.user_by_identity(STEAM.issuer, "7656") == gustav
