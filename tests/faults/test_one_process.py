"""One process serves a SQLite file; its lock ends with the process, however that ends."""

from pathlib import Path

import pytest

from tests.support.processes import DidNotStart, Node


def test_a_second_process_on_one_sqlite_file_is_refused_until_the_first_is_gone(
    migrated_sqlite_url: str, tmp_path: Path
) -> None:
    first, second = (Node(data=tmp_path, database_url=migrated_sqlite_url) for _ in range(2))
    with first:
        with pytest.raises(DidNotStart, match="another process is using"):
            second.start()
        assert second.process.wait() == 1
        first.kill()
    with second:
        assert second.terminate() == 0
