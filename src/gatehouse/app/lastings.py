"""The part of the composition root that tells what an answer was made of is still so."""

from gatehouse.app.house import House
from gatehouse.web.lasting import Lastings, Moment


def lastings(house: House) -> Lastings:
    runner, keyring = house.storage.runner, house.keyring

    def moment() -> Moment:
        """Keys are the one thing that is decided by what this process has read, and not by what is stored now."""
        stored = runner.moment()
        return None if stored is None else (stored, keyring.version)

    return Lastings(moment=moment, renew=runner.renew, clock=house.clock)
