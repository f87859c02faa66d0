"""The part of the composition root that counts guesses at passwords; nothing here keeps anything between calls."""

from gatehouse.accounts.devices import DeviceCookies
from gatehouse.accounts.sign_in import PasswordSignIn
from gatehouse.app.house import Services
from gatehouse.keys.sealing import derive_key
from gatehouse.throttle.guesses import AttemptLimiter
from gatehouse.throttle.model import AttemptLimit


def guesses(services: Services) -> AttemptLimiter:
    return AttemptLimiter(store=services.storage.throttle, limit=AttemptLimit(), clock=services.clock)


def devices(services: Services) -> DeviceCookies:
    return DeviceCookies(key=derive_key(services.instance_key, "device"), clock=services.clock)


def sign_in(services: Services) -> PasswordSignIn:
    return PasswordSignIn(
        store=services.storage.accounts,
        passwords=services.passwords,
        limiter=guesses(services),
        device_cookies=devices(services),
        tally=services.tally,
    )
