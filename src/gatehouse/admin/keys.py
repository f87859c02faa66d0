"""Signing keys on a timeline. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from gatehouse.keys.model import KeyAlgorithm, KeyLine, KeyState, SigningKey, key_state

WIDTH: Final = 1_000  # of the picture, in units
KEYS_PER_LINE: Final = 6  # the newest
MIN_SEGMENT_WIDTH: Final = 8  # units: an hour stays visible beside a year


class KeySegment(Struct, frozen=True, kw_only=True):
    state: KeyState
    x: int
    width: int


class KeyBar(Struct, frozen=True, kw_only=True):
    """One key. Times are Unix seconds; an end of 0 is open."""

    kid: str
    alg: KeyAlgorithm  # of keys of refresh tokens made before HS256, another than the line's
    state: KeyState
    created_at: int
    signs_from: int
    signs_until: int
    verifies_until: int
    segments: tuple[KeySegment, ...]


class KeyLineTimeline(Struct, frozen=True, kw_only=True):
    line: KeyLine
    bars: tuple[KeyBar, ...]  # the newest first

    @property
    def waits(self) -> bool:
        """Whether the next key is already published: a planned rotation is in progress."""
        return any(bar.state is KeyState.NEXT for bar in self.bars)


class KeyTimeline(Struct, frozen=True, kw_only=True):
    strips: tuple[KeyLineTimeline, ...]
    begins_at: int
    ends_at: int
    now_x: int


def key_timeline(keys: Sequence[SigningKey], lines: Sequence[KeyLine], *, now: int, every: int) -> KeyTimeline:
    """One axis for all lines; `every` is how long a key signs, so that the next rotation is in the picture."""
    chosen = {line: _newest(keys, line) for line in lines}
    keys = [key for own in chosen.values() for key in own]
    begins = min([now - every // 6, *(key.created_at for key in keys)])
    ends = max([now + every, *(key.verifies_until for key in keys), *(key.signs_until for key in keys)])
    axis = TimeAxis(begins=begins, ends=ends)
    return KeyTimeline(
        strips=tuple(
            KeyLineTimeline(line=line, bars=tuple(_bar(key, axis, now) for key in own))
            for line, own in chosen.items()
        ),
        begins_at=begins,
        ends_at=ends,
        now_x=axis.x(now),
    )


class TimeAxis(Struct, frozen=True, kw_only=True):
    begins: int
    ends: int

    def x(self, at: int) -> int:
        return round((min(max(at, self.begins), self.ends) - self.begins) * WIDTH / (self.ends - self.begins))


def _newest(keys: Sequence[SigningKey], line: KeyLine) -> list[SigningKey]:
    own = [key for key in keys if key.line == line]
    return sorted(own, key=lambda key: (key.signs_from, key.created_at), reverse=True)[:KEYS_PER_LINE]


def _bar(key: SigningKey, axis: TimeAxis, now: int) -> KeyBar:
    state = key_state(key, now)
    return KeyBar(
        kid=key.kid,
        alg=key.alg,
        state=state,
        created_at=key.created_at,
        signs_from=max(key.signs_from, key.created_at),
        signs_until=key.signs_until,
        verifies_until=key.verifies_until,
        segments=tuple(_segments(key, axis, retired=state is KeyState.RETIRED)),
    )


def _segments(key: SigningKey, axis: TimeAxis, *, retired: bool) -> Iterator[KeySegment]:
    signs_from = max(key.signs_from, key.created_at)
    stops = key.signs_until or axis.ends
    spans = [(KeyState.NEXT, key.created_at, signs_from), (KeyState.SIGNING, signs_from, stops)]
    if key.signs_until:
        spans.append((KeyState.VERIFYING, key.signs_until, key.verifies_until or axis.ends))
    for kind, begins, ends in spans:
        if ends > begins:
            x = min(axis.x(begins), WIDTH - MIN_SEGMENT_WIDTH)
            yield KeySegment(
                state=KeyState.RETIRED if retired else kind, x=x, width=max(MIN_SEGMENT_WIDTH, axis.x(ends) - x)
            )
