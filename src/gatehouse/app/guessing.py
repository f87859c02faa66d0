"""The part of the composition root that counts guesses at passwords; nothing here keeps anything between calls."""

from gatehouse.accounts.devices import DeviceCookies
from gatehouse.accounts.sign_in import PasswordSignIn
from gatehouse.app.house import Services
from gatehouse.keys.sealing import derive_key
from gatehouse.throttle.guesses import AttemptLimiter
from gatehouse.throttle.model import AttemptLimit


def guesses(house: Services) -> AttemptLimiter:
    return AttemptLimiter(store=house.storage.throttle, limit=AttemptLimit(), clock=house.clock)


def devices(house: Services) -> DeviceCookies:
    return DeviceCookies(key=derive_key(house.instance_key, "device"), clock=house.clock)


def sign_in(house: Services) -> PasswordSignIn:
    return PasswordSignIn(
        store=house.storage.accounts,
        passwords=house.passwords,
        guesses=guesses(house),
        devices=devices(house),
        tally=house.tally,
    )
