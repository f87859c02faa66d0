"""Contract tests of what administrators and their screens read."""

from collections import Counter

from gatehouse.admin.home import CLIENT_TARGET, HomeStore
from gatehouse.admin.people_search import PeopleQuestion, PeopleSearchStore
from gatehouse.audit.model import SignInCounts
from gatehouse.storage.audit import TallyStorage
from gatehouse.storage.database import Storage
from tests.support.builders import NOW, a_client, a_record
from tests.support.permission_builders import a_person, create_application, install_central, publish

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
