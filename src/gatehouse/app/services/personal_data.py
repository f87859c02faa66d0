"""Personal data: requested from applications, exported, erased."""

from msgspec import Struct

from gatehouse.accounts.own_account.export import DataExport
from gatehouse.app.services.core import Core, outbound_client
from gatehouse.personal_data.data_jobs import DataJobs
from gatehouse.personal_data.requests import DataRequests
from gatehouse.tokens.signer import Signer


class PersonalDataServices(Struct, frozen=True, kw_only=True, eq=False):
    requests: DataRequests
    jobs: DataJobs
    export: DataExport


def build_personal_data(core: Core, signer: Signer) -> PersonalDataServices:
    store, recorder, clock = core.storage.personal_data, core.recorder, core.clock
    requests = DataRequests(store=store, sealer=core.masters, recorder=recorder, clock=clock)
    return PersonalDataServices(
        requests=requests,
        jobs=DataJobs(
            store=store,
            poster=outbound_client(core.settings),
            signer=signer,
            sealer=core.masters,
            recorder=recorder,
            clock=clock,
            issuer=core.base_url,
        ),
        export=DataExport(
            store=core.storage.profile,
            applications=requests,
            recorder=recorder,
            clock=clock,
            service=core.base_url,
        ),
    )
