"""Cases put to a running service, through its `check` and `explain` (R6)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from gatehouse.permissions.errors import Malformed
from gatehouse.provision.permission_tests.modelled import expectation_text
from gatehouse.provision.permission_tests.results import CaseFailure
from gatehouse.provision.permission_tests.suite import ExpectedPermission, PermissionCase

QUESTIONS_PER_REQUEST: Final = 100  # questions of one request

Post = Callable[[str, Mapping[str, object]], Awaitable[Any]]  # an endpoint's name and a body; its `data`


class ServiceRunner:
    def __init__(self, post: Post) -> None:
        self._post = post

    async def failures(self, case: PermissionCase) -> list[CaseFailure]:
        """What is otherwise than the case expects. Raises Malformed for what a service cannot be asked."""
        refuse_hypothetical(case)
        found = []
        by_user: dict[str, list[ExpectedPermission]] = {}
        for question in case.questions:
            by_user.setdefault(str(question.user), []).append(question)
        for user_id, questions in by_user.items():
            for start in range(0, len(questions), QUESTIONS_PER_REQUEST):
                found += await self._failures_of_user(case, user_id, questions[start : start + QUESTIONS_PER_REQUEST])
        return found

    async def _failures_of_user(
        self, case: PermissionCase, user_id: str, questions: Sequence[ExpectedPermission]
    ) -> list[CaseFailure]:
        found = []
        for question, allowed in zip(questions, await self._answers(case, user_id, questions), strict=True):
            if allowed is not (question.expected == "may"):
                explanation = await self._explain(case, user_id, question)
                told = tuple(str(sentence) for sentence in explanation["sentences"])
                found.append(CaseFailure(expected=expectation_text(question), sentences=told))
        return found

    async def _answers(
        self, case: PermissionCase, user_id: str, questions: Sequence[ExpectedPermission]
    ) -> list[bool]:
        """A check knows no address; where the case names one it is explained what would be."""
        if case.address is not None:
            return [(await self._explain(case, user_id, one))["allowed"] for one in questions]
        checks = [{"rule": one.rule.text, **scope_fields(case)} for one in questions]
        data = {"user_id": user_id, "checks": checks}
        answers: list[bool] = await self._post("check", {"application_id": case.application_id, "data": data})
        return answers

    async def _explain(self, case: PermissionCase, user_id: str, question: ExpectedPermission) -> Mapping[str, Any]:
        data = {"user_id": user_id, "rule": question.rule.text, **scope_fields(case)}
        if case.address is not None:
            data["ip"] = str(case.address)
        answer: Mapping[str, Any] = await self._post("explain", {"application_id": case.application_id, "data": data})
        return answer


def scope_fields(case: PermissionCase) -> dict[str, object]:
    place: dict[str, object] = {} if case.project is None else {"project_id": case.project}
    if case.resource is not None:
        place["resource"] = {"kind": case.resource.kind, "id": case.resource.id}
    return place


def refuse_hypothetical(case: PermissionCase) -> None:
    """A service knows its own people and its own time."""
    if case.at is not None:
        raise Malformed(f"{case.place}.at: only models can be evaluated at another time")
    if case.roles is not None:
        raise Malformed(f"{case.place}.roles: only models can be asked for roles")
    for question in case.questions:
        if not isinstance(question.user, str):
            raise Malformed(f"{case.place}: a server needs user IDs")
