"""The protocol of the server: as guarded as its base, and quick to answer what it was asked before."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, cast

from starlette.types import Scope

from gatehouse.web.lasting import Renew
from gatehouse.web.protocol import GuardedProtocol, Phase
from gatehouse.web.repeated import Question, RepeatedAnswers, Said, question_of

BEFORE_A_REQUEST: Final = frozenset({Phase.NEW, Phase.BETWEEN})


@dataclass(frozen=True, slots=True)
class Known:
    """A request that was answered before, by those very bytes."""

    question: Question
    data: bytes = field(repr=False)  # with whatever it proves itself by
    said: Said
    begun: float
    answers: RepeatedAnswers


class RepeatingProtocol(GuardedProtocol):
    """Knows a request again that comes whole, at once and with nothing before it on the connection.

    Such a one need not even be parsed: its bytes were in order the first time. Where the database has to be asked
    whether the answer still holds, the request waits as it came, and may at any time be read like all others.
    """

    __slots__ = ("_asked", "_known")

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - those of the base class
        super().__init__(*args, **kwargs)
        self._asked: Question | None = None  # what the application is answering, if it may be asked again
        self._known: Known | None = None  # what waits for the database to tell whether its answer holds

    def data_received(self, data: bytes) -> None:
        self._wait_no_longer()
        self._forget()
        question = question_of(self.client, data) if self._stands_alone() else None
        if question is None or self._ready is None:
            super().data_received(data)
            return
        answers = self._ready.repeated
        said = answers.find(question)
        if said is None:
            self._ask(question, data, answers)
            return
        known = Known(question, data, said, answers.begin(), answers)
        if said.lasting.renew is None:
            self._answer_again(known)
        else:
            self._wait(known, said.lasting.renew)

    def connection_lost(self, exc: Exception | None) -> None:
        known, self._known = self._known, None
        super().connection_lost(exc)
        if known is not None:
            known.answers.left(known.said, begun=known.begun)

    def shutdown(self) -> None:
        self._wait_no_longer()
        super().shutdown()

    def on_response_complete(self) -> None:
        asked, answered, written = self._asked, self._answering, self._line.written
        self._forget()
        super().on_response_complete()
        if asked and answered and written and self._ready and not self._is_over():
            scope = cast("Scope", answered.scope)
            self._ready.repeated.note(asked, scope, written, len(answered.default_headers))

    def _wait(self, known: Known, renew: Renew) -> None:
        self._known = known
        self._client_owes.cancel()  # now it is our turn
        self._watched = None
        renew(partial(self._is_renewed, known))

    def _is_renewed(self, known: Known) -> None:
        if self._known is not known:  # something else came first
            return
        self._known = None
        try:
            self._answer_again(known)
        except BaseException:
            self.transport.abort()  # as whoever calls data_received would
            raise

    def _wait_no_longer(self) -> None:
        if self._known is not None:
            known, self._known = self._known, None
            self._ask(known.question, known.data, known.answers)

    def _answer_again(self, known: Known) -> None:
        answer = known.answers.again(known.said, self.server_state.default_headers, begun=known.begun)
        if answer is None:
            self._ask(known.question, known.data, known.answers)
            return
        self._requests += 1
        self._answer_at_once(answer)
        self._watch()

    def _ask(self, question: Question, data: bytes, answers: RepeatedAnswers) -> None:
        """Let it be answered. Of several requests none is kept, and the rest of one forgets it (data_received)."""
        requests = self._requests
        self._line.written = []
        super().data_received(data)
        if self._requests != requests + 1 or self._is_over():
            return
        if self._said is not None:
            answers.keep(question, self._said)
        else:
            self._asked = question

    def _forget(self) -> None:
        self._asked = self._said = self._line.written = None

    def _stands_alone(self) -> bool:
        return self._phase in BEFORE_A_REQUEST and self._is_free() and not self._is_over()

    def _is_over(self) -> bool:
        return self._is_deaf() or self.transport.is_closing()
