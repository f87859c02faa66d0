"""What happened in one game session, as points on a line of time. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from gatehouse.audit.model import Refusal
from gatehouse.fields.derive import copy_as
from gatehouse.gamesessions.model import GameSession

LEFT: Final = 190  # where the line begins, right of the labels
WIDTH: Final = 480
ROW: Final = 30
TOP: Final = 34
MARKS: Final = 4  # of the scale


class TimelinePoint(Struct, frozen=True, kw_only=True):
    name: str  # the text is `games.point_<name>`
    at: int
    after: int  # seconds after the beginning
    x: int
    y: int
    count: int = 0  # of polls, if it is the last of many
    detail: str = ""
    tone: str = "plain"  # plain, good, bad or faint


class ScaleMark(Struct, frozen=True, kw_only=True):
    x: int
    after: int


class Timeline(Struct, frozen=True, kw_only=True):
    points: Sequence[TimelinePoint]
    marks: Sequence[ScaleMark]
    now_x: int

    @property
    def height(self) -> int:
        return TOP + ROW * len(self.points) + 8

    @property
    def width(self) -> int:
        return LEFT + WIDTH + 90

    @property
    def left(self) -> int:
        return LEFT

    @property
    def right(self) -> int:
        return LEFT + WIDTH


class TimelineEvent(Struct, frozen=True, kw_only=True):
    name: str
    at: int
    count: int = 0
    detail: str = ""
    tone: str = "plain"


def build_timeline(session: GameSession, refusals: Iterable[Refusal], now: int) -> Timeline:
    happened = sorted((*session_events(session), *map(refusal_event, refusals)), key=lambda one: one.at)
    start, end = session.created_at, max(session.ends_at, now, session.created_at + 1)

    def x(at: int) -> int:
        return LEFT + round((min(max(at, start), end) - start) * WIDTH / (end - start))

    points = [
        copy_as(TimelinePoint, one, after=one.at - start, x=x(one.at), y=TOP + ROW * place + ROW // 2)
        for place, one in enumerate(happened)
    ]
    step = (end - start) / MARKS
    marks = [ScaleMark(x=x(start + round(step * number)), after=round(step * number)) for number in range(MARKS + 1)]
    return Timeline(points=points, marks=marks, now_x=x(now))


def session_events(session: GameSession) -> Iterable[TimelineEvent]:
    """Of polls and heartbeats the last one is stored, and of polls how many there were."""
    known = (
        TimelineEvent(name="created", at=session.created_at),
        TimelineEvent(name="opened", at=session.opened_at),
        TimelineEvent(name="signing_in", at=session.signing_in_at),
        TimelineEvent(name="polled", at=session.polled_at, count=session.polls, tone="faint"),
        TimelineEvent(name="heartbeat", at=session.last_seen, tone="faint"),
        TimelineEvent(name="confirmed", at=session.confirmed_at, tone="good"),
        TimelineEvent(name="delivered", at=session.delivered_at, tone="good"),
        TimelineEvent(name="closed", at=session.closed_at, detail=session.closed),
        TimelineEvent(name="ends", at=session.ends_at, tone="faint"),
    )
    return (one for one in known if one.at)


def refusal_event(refusal: Refusal) -> TimelineEvent:
    name = refusal.event.partition(".")[2]
    return TimelineEvent(name=name if name in ("violation", "blocked") else "failed", at=refusal.at, tone="bad")
