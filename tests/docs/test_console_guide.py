"""The guide to the console shows what is photographed from it, and nothing else."""

from tools.console_pictures import IN_THE_GUIDE, PICTURES


def test_the_guide_shows_the_pictures_that_are_made() -> None:
    guide = (PICTURES.parent / "console.md").read_text()
    assert [name for name in IN_THE_GUIDE if f"](pictures/console-{name}.png)" not in guide] == []
    assert guide.count("](pictures/") == len(IN_THE_GUIDE)
    assert {path.name for path in PICTURES.iterdir()} == {f"console-{name}.png" for name in IN_THE_GUIDE}
