"""Keys along a time line: what the picture says is what the keys do."""

from gatehouse.admin.key_strip import SHOWN_MOST, WIDTH, picture
from gatehouse.keys.model import Algorithm, KeyLine, Purpose, SigningKey, State
from gatehouse.keys.rotation import LINES

DAY = 86_400
NOW = 1_000 * DAY
LINE = KeyLine(Purpose.TOKENS, Algorithm.ES256)


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
    drawn = picture(keys, LINES, now=NOW, every=90 * DAY)
    assert (drawn.begins_at, drawn.ends_at) == (600 * DAY, 1_200 * DAY)
    strip = next(one for one in drawn.strips if one.line == LINE)
    assert [(bar.kid, bar.state) for bar in strip.bars] == [
        ("new", State.NEXT),
        ("old", State.SIGNING),
        ("gone", State.RETIRED),
    ]
    new, old, gone = (bar.segments for bar in strip.bars)
    assert [(one.state, one.x + one.width) for one in old] == [
        (State.NEXT, 350),
        (State.SIGNING, 683),
        (State.VERIFYING, WIDTH),
    ]
    assert [one.x for one in old][1:] == [350, 683]
    assert new[-1].x + new[-1].width == WIDTH
    assert {one.state for one in gone} == {State.RETIRED}
    assert drawn.now_x == round((1_000 - 600) / 600 * WIDTH)
    assert strip.waits


def test_a_picture_of_many_years_shows_the_newest_keys_and_one_of_nothing_is_empty() -> None:
    many = [a_key(f"k{n}", n * 10, n * 10, n * 10 + 10, n * 10 + 20) for n in range(1, 50)]
    strip = next(one for one in picture(many, LINES, now=NOW, every=DAY).strips if one.line == LINE)
    assert [bar.kid for bar in strip.bars] == [f"k{n}" for n in range(49, 49 - SHOWN_MOST, -1)]
    assert all(not one.bars for one in picture([], LINES, now=NOW, every=DAY).strips)
