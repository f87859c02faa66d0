"""The protocol of the server: as guarded as its base, and quick to answer what it was asked before."""

from typing import Any, Final, cast

from starlette.types import Scope

from gatehouse.web.protocol import GuardedProtocol, Phase
from gatehouse.web.repeated import Question, RepeatedAnswers, question_of

BEFORE_A_REQUEST: Final = frozenset({Phase.NEW, Phase.BETWEEN})


class RepeatingProtocol(GuardedProtocol):
    """Knows a request again that comes whole, at once and with nothing before it on the connection.

    Such a one need not even be parsed: its bytes were in order the first time.
    """

    __slots__ = ("_asked",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - those of the base class
        super().__init__(*args, **kwargs)
        self._asked: Question | None = None  # what the application is answering, if it may be asked again

    def data_received(self, data: bytes) -> None:
        self._forget()
        question = question_of(self.client, data) if self._stands_alone() else None
        if question is None or self._ready is None:
            super().data_received(data)
            return
        answer = self._ready.repeated.answer(question, self.server_state.default_headers)
        if answer is None:
            self._ask(question, data, self._ready.repeated)
            return
        self._requests += 1
        self._answer_at_once(answer)
        self._watch()

    def on_response_complete(self) -> None:
        asked, answered, written = self._asked, self._answering, self._line.written
        self._forget()
        super().on_response_complete()
        if asked and answered and written and self._ready and not self._is_over():
            scope = cast("Scope", answered.scope)
            self._ready.repeated.note(asked, scope, written, len(answered.default_headers))

    def _ask(self, question: Question, data: bytes, repeated: RepeatedAnswers) -> None:
        """Let it be answered. Of several requests none is kept, and the rest of one forgets it (data_received)."""
        requests = self._requests
        self._line.written = []
        super().data_received(data)
        if self._requests != requests + 1 or self._is_over():
            return
        if self._said is not None:
            repeated.keep(question, self._said)
        else:
            self._asked = question

    def _forget(self) -> None:
        self._asked = self._said = self._line.written = None

    def _stands_alone(self) -> bool:
        return self._phase in BEFORE_A_REQUEST and self._is_free() and not self._is_over()

    def _is_over(self) -> bool:
        return self._is_deaf() or self.transport.is_closing()
