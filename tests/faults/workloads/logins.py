"""W6: logins with one-time passwords, each valid once, and guesses that are all counted."""

from collections.abc import Coroutine, Sequence
from itertools import count
from typing import Any, Final

import httpx2
import pyotp

from tests.faults.clients import CheckedRequest, ClientPool, FaultClient, JudgedAnswer, error_of, repeat_until_over
from tests.faults.fault_setup import FaultSetup, with_password
from tests.faults.history import Act, History, Result
from tests.faults.invariants.once import a_secret_is_spent_at_most_once
from tests.faults.invariants.sets import i5_limits_are_never_exceeded
from tests.support.browser import PASSWORD
from tests.support.builders import ORIGIN
from tests.support.database_contents import Rows

PEOPLE: Final = 2
LOGIN: Final = "/proxy/api/login"
GUESSES: Final = "guesses"
FREE: Final = 10  # guesses at one login before it is blocked
AT_ONE: Final = 13  # guesses at one login before the next one
STEP: Final = 30  # seconds of a one-time password


class Logins:
    def __init__(self) -> None:
        self._guesses = count()

    async def prepare(self, setup: FaultSetup) -> None:
        services = setup.services
        self._clock = services.clock
        them = services
        self._apps: dict[str, pyotp.TOTP] = {}
        for number in range(PEOPLE):
            user = await with_password(services, f"codes with {number}".replace(" ", "."))
            enrolment = await them.factors.totp.begin_enrollment(user)
            app = pyotp.TOTP(enrolment.secret)
            # A code of the previous step: the current one is for the run.
            await them.factors.totp.confirm_enrollment(user, app.at(services.clock.now() - STEP), origin=ORIGIN)
            self._apps[user.login or ""] = app

    @property
    def people(self) -> Sequence[str]:
        """The logins of the people."""
        return list(self._apps)

    def clients(self, pool: ClientPool) -> Sequence[Coroutine[Any, Any, None]]:
        return [repeat_until_over(pool.client(f"logins {n}"), self._log_in, self._guess) for n in range(PEOPLE)]

    async def _log_in(self, client: FaultClient) -> None:
        """Log in with one of a few codes that all clients share."""
        await client.ask(self.login_request(client.chance.choice(list(self._apps))))

    def login_request(self, login: str) -> CheckedRequest:
        code = self._apps[login].at(self._clock.now())
        body = {"login": login, "password": PASSWORD, "otp": code}
        return CheckedRequest(
            op=Act.SPEND, key=f"{login} {code}", path=LOGIN, request={"json": body}, judge=judge_login
        )

    async def _guess(self, client: FaultClient) -> None:
        await client.ask(self.guess_request())

    def guess_request(self) -> CheckedRequest:
        number = next(self._guesses)
        login = f"no_one{number // AT_ONE}@studio.example"
        body = {"login": login, "password": "wrong"}
        return CheckedRequest(
            op=Act.ADD,
            key=f"{GUESSES}:{login}",
            value=str(number),
            path=LOGIN,
            request={"json": body},
            judge=judge_guess,
            repeatable=False,
        )

    async def finish(self, pool: ClientPool) -> None:
        """Do nothing: the history has what was spent and counted."""

    def problems(self, history: History, rows: Rows) -> list[str]:  # noqa: ARG002 - history tells it all
        return [*a_secret_is_spent_at_most_once(history), *i5_limits_are_never_exceeded(history, {GUESSES: FREE})]


def judge_login(response: httpx2.Response) -> JudgedAnswer:
    status = response.json()["status"] if response.is_success else error_of(response)
    if status == "OK":
        return JudgedAnswer(result=Result.OK)
    # A spent code is refused like a wrong one, so a repeated request gets invalid_grant.
    return JudgedAnswer(
        result=Result.FAIL, note=f"invalid_grant (told as {status})" if status == "2STEPERROR" else status
    )


def judge_guess(response: httpx2.Response) -> JudgedAnswer:
    """A wrong password that was checked counts; a refused attempt does not."""
    status = response.json()["status"] if response.status_code in (200, 429) else error_of(response)
    return JudgedAnswer(result=Result.OK if status == "LOGINERROR" else Result.FAIL, note=status)
