"""The part of the composition root that counts guesses at passwords; nothing here keeps anything between calls."""

from gatehouse.accounts.devices import Devices
from gatehouse.accounts.sign_in import SignIn
from gatehouse.app.house import House
from gatehouse.keys.sealing import expand
from gatehouse.throttle.guesses import Guesses
from gatehouse.throttle.model import GuessLimit


def guesses(house: House) -> Guesses:
    return Guesses(store=house.storage.throttle, limit=GuessLimit(), clock=house.clock)


def devices(house: House) -> Devices:
    return Devices(key=expand(house.instance_key, "device"), clock=house.clock)


def sign_in(house: House) -> SignIn:
    return SignIn(
        store=house.storage.accounts,
        passwords=house.passwords,
        guesses=guesses(house),
        devices=devices(house),
        tally=house.tally,
    )
