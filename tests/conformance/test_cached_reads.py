"""A cached read is never older than the last commit of any process."""

from gatehouse.permissions.model.rules import ROOT
from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.sqlite.runner import READ_CACHE_BYTES, SQLiteRunner
from tests.support.builders import NOW, a_record
from tests.support.permission_builders import a_person, holdings_with, install_central, set_fields

ANNA = "1000000001"


async def is_blocked(storage: Storage) -> bool:
    facts = await storage.permissions.facts(ANNA, (1,))
    assert facts is not None
    return facts.blocked


async def test_a_change_is_seen_at_its_answer(storage: Storage) -> None:
    await install_central(storage)
    await a_person(storage)
    for wanted in (False, True, False, True):
        await storage.accounts.set_blocked(ANNA, a_record(), blocked=wanted, now=NOW)
        assert [await is_blocked(storage) for _ in range(3)] == [wanted] * 3


async def test_a_change_by_someone_else_is_seen_at_its_answer(storage: Storage, migrated_url: str) -> None:
    """The change comes from a second process, like a command beside a server."""
    await install_central(storage)
    await a_person(storage)
    async with open_storage(migrated_url, migrate=False) as other:
        for wanted in (False, True, False, True):
            await other.accounts.set_blocked(ANNA, a_record(), blocked=wanted, now=NOW)
            assert [await is_blocked(storage) for _ in range(3)] == [wanted] * 3


async def test_cached_read_is_reused_on_sqlite_without_writes(storage: Storage, migrated_url: str) -> None:
    await install_central(storage)
    await a_person(storage)
    first, second = [await storage.permissions.facts(ANNA, {1, 50_001}) for _ in range(2)]
    assert first == second
    assert (first is second) == migrated_url.startswith("sqlite:")


async def test_cached_reads_with_different_arguments_are_separate(storage: Storage) -> None:
    await install_central(storage)
    await a_person(storage)
    both, one = [await storage.permissions.facts(ANNA, application_ids) for application_ids in ((50_001, 1), (1,))]
    assert both is not None
    assert one is not None
    assert (set(both.records), set(one.records)) == ({1, 50_001}, {1})
    assert await storage.permissions.facts("1000000002", (1,)) is None


async def test_mm_02_recalled_facts_are_bounded_by_weight_and_unknown_names_are_not_kept(storage: Storage) -> None:
    await install_central(storage)
    await a_person(storage)
    entries = {f"rule{n}": {"value": True} for n in range(5_000)}
    await storage.user_records.edit_record(
        1, ANNA, set_fields(scopes={ROOT: holdings_with(private_data=entries)}), NOW
    )
    for number in range(60):  # more than fit into the cache
        facts = await storage.permissions.facts(ANNA, (1, 50_001 + number))
        assert facts is not None
        assert facts.weight > 500_000
        assert await storage.permissions.facts("x" * 1_000 + str(number), (1,)) is None
    if isinstance(storage.runner, SQLiteRunner):
        cache = storage.runner._read_cache
        assert READ_CACHE_BYTES / 2 < cache.weight <= READ_CACHE_BYTES
        assert len(cache) < 60
