"""A wrong master key refuses to start and changes nothing (faults R-24)."""

from pathlib import Path

import pytest

from gatehouse.keys.sealing import master_key_id, new_master_key, parse_master_key
from tests.faults.run_record import on_databases
from tests.support.database_contents import dump_database
from tests.support.processes import DidNotStart, Node


def node_with(key: str, url: str, data: Path) -> Node:
    """A node with its own base_url, which it would store in the database."""
    return Node(data=data, database_url=url, environment={"GATEHOUSE__SECURITY__MASTER_KEY": key})


@on_databases("postgres", "migrated_url")
def test_r_24_a_wrong_master_key_refuses_to_start_and_changes_nothing(migrated_url: str, tmp_path: Path) -> None:
    ours, another = new_master_key(), new_master_key()
    with node_with(ours, migrated_url, tmp_path) as node:
        assert node.terminate() == 0
    before = dump_database(migrated_url)
    other_node = node_with(another, migrated_url, tmp_path)
    with pytest.raises(DidNotStart, match="encrypted with master key"):
        other_node.start()
    assert other_node.process.wait() == 1
    assert "Traceback" not in other_node.process.output()
    assert another not in other_node.process.output()
    for key in (ours, another):
        assert master_key_id(parse_master_key(key)) in other_node.process.output()
    assert "security.previous_master_keys" in other_node.process.output()
    assert dump_database(migrated_url) == before
    with node:  # the right key still works
        assert node.terminate() == 0
