"""Proof of work on registration and password reset (checklist PW-01 to PW-05)."""

import asyncio
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.throttle.proof_of_work import PUZZLE_SECONDS, Puzzle, PuzzlePurpose, PuzzleUnsolved
from tests.support.browser import PASSWORD, HttpBrowser, hidden_fields
from tests.support.guides import programs_for
from tests.support.mailbox import new_messages
from tests.support.service import RunningService, running_service

DIFFICULTY = 9
(SOLVER,) = programs_for(__file__, "proof-of-work", "python")
BOB = {"login": "bob@studio.example", "nick": "Bob", "password": PASSWORD}


async def set_protection(service: RunningService, **settings: object) -> None:
    wanted = {f"protection.{name}": value for name, value in {"difficulty": DIFFICULTY, **settings}.items()}
    await service.services.settings_editor.save(wanted, AuditOrigin(actor="test"))


@pytest.fixture
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    async with running_service(installed_url, tmp_path) as running:
        await set_protection(running, proof_of_work="on")
        yield running


def solve(puzzle: str, bits: int = DIFFICULTY - 3, parts: int = 8) -> str:
    """Solve a puzzle with the program of the guide."""
    names: dict[str, Any] = {}
    exec(SOLVER, names)  # noqa: S102 - our own guide
    solution: str = names["solve"](puzzle, bits, parts)
    return solution


def puzzle_in(page: httpx2.Response) -> str:
    return unescape(hidden_fields(page.text)["puzzle"])


async def register(browser: HttpBrowser, **fields: str) -> httpx2.Response:
    """Post the registration form by the puzzle and solution given, without opening the page again."""
    return await browser.post("/register", **{**BOB, **fields})


async def account(service: RunningService) -> User | None:
    return await service.services.storage.accounts.user_by_login(BOB["login"])


async def test_pw_01_a_solved_puzzle_registers_and_works_once(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser
) -> None:
    puzzle = puzzle_in(await browser_client.get("/register"))
    solution = solve(puzzle)
    await other.get("/register")
    assert (await register(browser_client, puzzle=puzzle, solution=solution)).status_code == 200
    assert await account(service) is not None
    again = await register(other, puzzle=puzzle, solution=solution, login="eve@studio.example")
    assert (again.status_code, "Submit the form again" in again.text) == (400, True)
    assert len(await new_messages(service)) == 1
    renewed = puzzle_in(again)
    assert (await register(other, puzzle=renewed, solution=solve(renewed))).status_code == 200


async def test_pw_01_one_of_two_nodes_accepts_a_solution(installed_postgres_url: str, tmp_path: Path) -> None:
    setting = {"GATEHOUSE__PROTECTION__PROOF_OF_WORK": "on", "GATEHOUSE__PROTECTION__DIFFICULTY": str(DIFFICULTY)}
    async with (
        running_service(installed_postgres_url, tmp_path, environment=setting) as first,
        running_service(installed_postgres_url, tmp_path, clock=first.clock, environment=setting) as second,
    ):
        puzzle = await first.services.limits.proof_of_work.issue_puzzle(PuzzlePurpose.GUEST)
        assert puzzle is not None
        uses = [
            node.services.limits.proof_of_work.require_solution(
                PuzzlePurpose.GUEST, puzzle.puzzle, solve(puzzle.puzzle)
            )
            for node in (first, second)
        ]
        outcomes = await asyncio.gather(*uses, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [PuzzleUnsolved]


async def test_pw_02_expired_forged_easier_and_foreign_puzzles_are_refused(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    puzzle = puzzle_in(await browser_client.get("/register"))
    solution = solve(puzzle)
    purpose, _, rest = puzzle.split(".", 2)
    easier = f"{purpose}.0.{rest}"
    reset = puzzle_in(await browser_client.get("/forgot"))
    await browser_client.get("/register")
    for given, answer in (
        (puzzle, "0.0.0.0.0.0.0.0"),
        (puzzle, solution.rpartition(".")[0]),
        (puzzle, f"{solution}.1"),
        (puzzle, ".".join(["4294967296"] * 8)),
        (puzzle, "9" * 10_000),
        (easier, "0.0.0.0.0.0.0.0"),
        (reset, solve(reset)),
        ("", solution),
        ("x" * 10_000, solution),
    ):
        response = await register(browser_client, puzzle=given, solution=answer)
        assert response.status_code == 400, (given, answer)
    assert await account(service) is None
    await service.clock.advance(PUZZLE_SECONDS)
    assert (await register(browser_client, puzzle=puzzle, solution=solution)).status_code == 400
    fresh = puzzle_in(await browser_client.get("/register"))
    assert (await register(browser_client, puzzle=fresh, solution=solve(fresh))).status_code == 200


async def test_pw_03_forms_without_a_solution_are_few_per_hour_and_source(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    for expected in (200, 200, 200, 429):
        await browser_client.get("/forgot")
        response = await browser_client.post("/forgot", login=anna.login or "")
        assert response.status_code == expected
    assert "Turn on JavaScript" in response.text
    assert len(await new_messages(service)) == 3
    puzzle = puzzle_in(response)
    solved = await browser_client.post("/forgot", login=anna.login or "", puzzle=puzzle, solution=solve(puzzle))
    assert solved.status_code == 200
    again = await browser_client.post("/forgot", solution=solve(puzzle_in(solved)))  # from the page that promised it
    assert again.status_code == 200
    assert len(await new_messages(service)) == 2
    await service.clock.advance(3_601)
    await browser_client.get("/forgot")
    assert (await browser_client.post("/forgot", login=anna.login or "")).status_code == 200


async def test_pw_04_an_attack_switches_puzzles_on_for_its_purpose_and_an_hour(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    await set_protection(service, proof_of_work="auto", attack_rate=3)
    for number in range(3):
        assert 'name="puzzle"' not in (await browser_client.get("/forgot")).text
        assert (await browser_client.post("/forgot", login=f"a{number}@studio.example")).status_code == 200
    assert 'name="puzzle"' in (await browser_client.get("/forgot")).text
    assert 'name="puzzle"' not in (await browser_client.get("/register")).text
    await service.clock.advance(3_601)
    assert 'name="puzzle"' not in (await browser_client.get("/forgot")).text


async def test_pw_05_a_game_client_gets_no_stricter_rate_instead_of_a_puzzle(service: RunningService) -> None:
    proof = service.services.limits.proof_of_work
    puzzle = await proof.issue_puzzle(PuzzlePurpose.GUEST)
    assert isinstance(puzzle, Puzzle)
    assert (puzzle.difficulty, puzzle.parts, puzzle.expires) == (6, 8, service.clock.now() + PUZZLE_SECONDS)
    for solution in ("", "0.0.0.0.0.0.0.0"):
        with pytest.raises(PuzzleUnsolved):
            await proof.require_solution(PuzzlePurpose.GUEST, puzzle.puzzle, solution)
    with pytest.raises(PuzzleUnsolved):
        await proof.require_solution(PuzzlePurpose.REGISTER, puzzle.puzzle, solve(puzzle.puzzle))
    await proof.require_solution(PuzzlePurpose.GUEST, puzzle.puzzle, solve(puzzle.puzzle))


async def test_switched_off_no_page_has_a_puzzle(service: RunningService, browser_client: HttpBrowser) -> None:
    await set_protection(service, proof_of_work="off")
    for path in ("/register", "/forgot"):
        assert "puzzle" not in (await browser_client.get(path)).text
    assert await service.services.limits.proof_of_work.issue_puzzle(PuzzlePurpose.GUEST) is None
    await browser_client.get("/register")
    assert (await register(browser_client)).status_code == 200
