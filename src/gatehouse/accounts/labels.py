"""Tags and purchases of an account: words that conditions look at (R1, interface §2.7)."""

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.model import KEPT_TAGS, TAG_LONGEST, TAGS_MOST
from gatehouse.kernel.text import is_plain_line


def check_tags(tags: frozenset[str]) -> frozenset[str]:
    own = tags & KEPT_TAGS
    if own:
        raise BadAccount(f"{', '.join(sorted(own))}: the service itself keeps this in step with the account")
    if any("," in tag for tag in tags):
        raise BadAccount("a tag holds no comma")  # they travel joined by commas (R2, claim tgs)
    return check_words(tags)


def check_words(words: frozenset[str]) -> frozenset[str]:
    if len(words) > TAGS_MOST:
        raise BadAccount(f"has more than {TAGS_MOST} entries")
    for word in words:
        if not 0 < len(word) <= TAG_LONGEST or word != word.strip() or not is_plain_line(word):
            raise BadAccount(f"each entry is 1 to {TAG_LONGEST} visible characters on one line")
    return words
