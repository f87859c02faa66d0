"""Contract tests of what administrators and their screens read."""

from collections import Counter

from gatehouse.admin.assignments import AssignmentListStore, AssignmentPeopleQuery
from gatehouse.admin.home import CLIENT_TARGET, HomeStore
from gatehouse.admin.names import NameStore
from gatehouse.admin.paging import PageRequest
from gatehouse.admin.people_list import PeopleListQuery, list_people
from gatehouse.admin.people_search import PeopleQuestion, PeopleSearchStore
from gatehouse.admin.search import SearchStore
from gatehouse.audit.model import SignInCounts
from gatehouse.storage.database import Storage
from gatehouse.storage.tallies import TallyStorage
from tests.support.builders import NOW, a_client, a_record, a_user
from tests.support.permission_builders import a_person, create_application, install_central, publish
from tests.support.spellings import share_login, wide

HOUR = NOW - NOW % 3_600


async def test_applications_of_projects_are_found(storage: Storage) -> None:
    await install_central(storage)
    project = await publish(storage)
    shop = await create_application(storage, name="Shop", project_id=project.project_id)
    await create_application(storage, name="Other")
    found = await storage.applications.applications_in({project.project_id, "no_such_project"})
    assert [one.application_id for one in found] == [shop.application_id]


async def test_sign_ins_of_a_client_count_for_its_application(storage: Storage) -> None:
    await install_central(storage)
    shop = await create_application(storage, name="Shop")
    await storage.clients.create_client(a_client(application_id=shop.application_id), a_record())
    counted = SignInCounts(targets=Counter({(HOUR, f"{CLIENT_TARGET}web"): 3}))
    await TallyStorage(storage.runner).add_counts(counted)
    [top] = await HomeStore(storage.runner).top_applications(HOUR, 5)
    assert (top.application_id, top.name, top.times) == (shop.application_id, "Shop", 3)


async def test_people_without_a_record_in_the_application_are_not_found_there(storage: Storage) -> None:
    await install_central(storage)
    await a_person(storage)
    shop = await create_application(storage, name="Shop")
    question = PeopleQuestion(application_id=shop.application_id)
    assert (await PeopleSearchStore(storage.runner).search(question, None, 10)).users == []


async def test_people_are_found_by_any_spelling_of_an_address_the_exact_one_first(storage: Storage) -> None:
    """Anna and Ann share an address since before spellings were compared; Ben's is in full-width letters."""
    await install_central(storage)
    shop = await create_application(storage, name="Shop")
    anna = a_user(login="anna@studio.example", nick="P1")
    ann = a_user(login="ann@studio.example", nick="P2", reg_time=NOW + 1)
    ben = a_user(login=f"{wide('ben')}@studio.example", nick="P3", reg_time=NOW + 2)
    for user in (anna, ann, ben):
        await storage.accounts.create_user(user, a_record())
    shared = f"{wide('anna')}@studio.example"
    await share_login(storage.runner, ann.user_id, shared)
    runner = storage.runner
    people, names = PeopleSearchStore(runner), NameStore(runner)
    searching, assigning = SearchStore(runner), AssignmentListStore(runner)

    async def found_by(text: str) -> list[list[str]]:
        page = PageRequest(search=text)
        listed = await runner.snapshot_read(lambda: list_people(PeopleListQuery(), page, NOW))
        holders = await assigning.people(
            shop.application_id, AssignmentPeopleQuery(page_request=page, by_address=True)
        )
        everyone = await assigning.people(
            shop.application_id,
            AssignmentPeopleQuery(page_request=page, everyone=True, by_address=True, by_part_of_login=True),
        )
        return [
            [one.user_id for one in (await people.search(PeopleQuestion(text=text), None, 10)).users],
            [one.user_id for one in (await people.search(PeopleQuestion(login=text), None, 10)).users],
            [one.user_id for one in await names.find_person_exactly("", text)],
            [one.user_id for one in await searching.people_exactly(text, 10)],
            [one.user_id for one in await searching.people(text, 10, with_logins=True)],
            [one.user_id for one in listed.rows],
            [one.user_id for one in holders.rows],
            sorted(one.user_id for one in everyone.rows),
            [*(await assigning.find_user_ids([text], by_address=True)).values()],
        ]

    both, first, second = sorted([anna.user_id, ann.user_id]), [anna.user_id], [ann.user_id]
    assert await found_by("anna@studio.example") == [first, first, first, first, first, first, first, both, first]
    newest = [ann.user_id, anna.user_id]
    assert await found_by(shared) == [newest, second, second, second, first, newest, second, both, second]
    for text in ("BEN@studio.example", ben.login or "", f"b{wide('en')}@studio.example"):
        assert await found_by(text) == [[ben.user_id]] * 9
