"""The timeline of keys matches what the keys do."""

from gatehouse.admin.keys import KEYS_PER_LINE, WIDTH, key_timeline
from gatehouse.keys.model import Algorithm, KeyLine, KeyPurpose, KeyState, SigningKey
from gatehouse.keys.rotation import KEY_LINES

DAY = 86_400
NOW = 1_000 * DAY
LINE = KeyLine(KeyPurpose.TOKENS, Algorithm.ES256)


def a_key(kid: str, created: int, signs: int, until: int = 0, verifies: int = 0) -> SigningKey:
    return SigningKey(
        kid=kid,
        alg=LINE.alg,
        purpose=LINE.purpose,
        public=b"",
        sealed_private=b"",
        created_at=created * DAY,
        signs_from=signs * DAY,
        signs_until=until * DAY,
        verifies_until=verifies * DAY,
    )


def test_every_key_goes_from_next_to_signing_to_verifying_without_a_gap() -> None:
    keys = [a_key("old", 800, 810, 1_010, 1_200), a_key("new", 990, 1_010), a_key("gone", 600, 610, 650, 700)]
    drawn = key_timeline(keys, KEY_LINES, now=NOW, every=90 * DAY)
    assert (drawn.begins_at, drawn.ends_at) == (600 * DAY, 1_200 * DAY)
    strip = next(strip for strip in drawn.strips if strip.line == LINE)
    assert [(bar.kid, bar.state) for bar in strip.bars] == [
        ("new", KeyState.NEXT),
        ("old", KeyState.SIGNING),
        ("gone", KeyState.RETIRED),
    ]
    new, old, removed = (bar.segments for bar in strip.bars)
    assert [(one.state, one.x + one.width) for one in old] == [
        (KeyState.NEXT, 350),
        (KeyState.SIGNING, 683),
        (KeyState.VERIFYING, WIDTH),
    ]
    assert [one.x for one in old][1:] == [350, 683]
    assert new[-1].x + new[-1].width == WIDTH
    assert {one.state for one in removed} == {KeyState.RETIRED}
    assert drawn.now_x == round((1_000 - 600) / 600 * WIDTH)
    assert strip.waits


def test_a_picture_of_many_years_shows_the_newest_keys_and_one_of_nothing_is_empty() -> None:
    many = [a_key(f"k{n}", n * 10, n * 10, n * 10 + 10, n * 10 + 20) for n in range(1, 50)]
    strip = next(strip for strip in key_timeline(many, KEY_LINES, now=NOW, every=DAY).strips if strip.line == LINE)
    assert [bar.kid for bar in strip.bars] == [f"k{n}" for n in range(49, 49 - KEYS_PER_LINE, -1)]
    assert all(not strip.bars for strip in key_timeline([], KEY_LINES, now=NOW, every=DAY).strips)
