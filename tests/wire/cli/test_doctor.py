"""`gatehouse doctor` on healthy installations, and on each kind of problem."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine, InstallationPaths, execute_statements
from tests.support.mail import refusing_port
from tests.support.processes import LOOPBACK, Node
from tests.support.service import FAST_SETTINGS
from tests.support.spellings import wide

ANNA = ("--login", "anna@studio.example", "--nick", "Anna", "--password-stdin")
MASTER = "GATEHOUSE__SECURITY__MASTER_KEY"
OTHER_KEY = "9b1fe07c43d5aa2867f09e3c11d84b6e5a70cf2294be638d0d7715e8fa92c35b"


def worst_findings(gatehouse: CommandLine, **environment: str) -> dict[str, tuple[str, str]]:
    """The worst finding about each topic."""
    result: Any = gatehouse.run("doctor", "--json", environment=environment).json()
    order = ("ok", "warn", "bad")
    worst: dict[str, tuple[str, str]] = {}
    for finding in sorted(result["findings"], key=lambda finding: order.index(finding["level"])):
        worst[finding["topic"]] = (finding["level"], finding["text"])
    assert result["ok"] == ("bad" not in {level for level, _ in worst.values()})
    return worst


@pytest.fixture
def filled_installation(installation: InstallationPaths, gatehouse: CommandLine) -> CommandLine:
    """A bootstrapped installation with an administrator."""
    gatehouse("admin", "create", *ANNA, stdin="correct horse battery")
    installation.data.chmod(0o700)
    return gatehouse


def test_a_sound_installation_is_called_so(migrated_sqlite_url: str, tmp_path: Path) -> None:
    lived_in = InstallationPaths(data=tmp_path / "data", url=migrated_sqlite_url).command_line()
    lived_in("admin", "create", *ANNA, stdin="correct horse battery")
    printed = lived_in("doctor")
    assert all(line.startswith(("ok   ", "warn ")) for line in printed.splitlines())
    topics = worst_findings(lived_in)
    assert {topic for topic, (level, _) in topics.items() if level != "ok"} == {"settings"}, "--dev must be reported"
    assert "encrypts everything" in topics["master key"][1]
    assert topics["signing keys"][1] == "5 signing"
    assert topics["setup"] == ("ok", "closed")
    assert "integrity ok" in topics["database"][1]


def test_doctor_looks_at_the_mail_server_and_fetches_base_url(migrated_sqlite_url: str, tmp_path: Path) -> None:
    """As an operator runs it: over the address of the running service, and outside development."""
    installation = InstallationPaths(data=tmp_path, url=migrated_sqlite_url)
    gatehouse = installation.command_line()
    with Node(data=tmp_path, database_url=migrated_sqlite_url, environment=FAST_SETTINGS) as node:
        found = worst_findings(gatehouse)
        assert found["mail"] == ("ok", "printed by the service, as there is no mail server")
        assert found["address"] == ("ok", f"http://localhost:{node.port} answers")
        unreachable = {
            "GATEHOUSE__MAIL__HOST": LOOPBACK,
            "GATEHOUSE__MAIL__PORT": str(refusing_port()),
            "GATEHOUSE__MAIL__SECURITY": "none",
            "GATEHOUSE__MAIL__FROM_ADDRESS": "id@studio.example",
        }
        level, text = worst_findings(gatehouse, **unreachable)["mail"]
        assert (level, "the mail server cannot be used" in text) == ("warn", True)
        node.process.send(signal.SIGSTOP)  # accepts connections and answers nothing
        level, text = worst_findings(gatehouse)["address"]
        assert (level, "cannot be fetched from here" in text) == ("warn", True)
        node.process.send(signal.SIGCONT)


def test_a_postgresql_that_can_lose_writes_or_have_its_history_rewritten_is_told(
    migrated_postgres_url: str, tmp_path: Path
) -> None:
    """The cluster of the tests runs without fsync, and its only role owns everything."""
    gatehouse = InstallationPaths(data=tmp_path / "data", url=migrated_postgres_url).command_line()
    gatehouse("key", "list")
    result = gatehouse.run("doctor")
    assert result.code == 1
    assert "bad  database: PostgreSQL runs with fsync off" in result.out
    assert "bad  database: PostgreSQL runs with full_page_writes off" in result.out
    assert "synchronous_commit" not in result.out
    assert "warn database: this database role can change audit_events and audit_seals" in result.out
    assert "ok   clock: 0 seconds difference to the database" in result.out


def test_doctor_warns_before_the_first_administrator_exists(gatehouse: CommandLine) -> None:
    gatehouse("key", "list")
    assert worst_findings(gatehouse)["setup"][0] == "warn"


def test_doctor_reports_a_missing_database_without_creating_it(tmp_path: Path) -> None:
    installation = InstallationPaths(data=tmp_path / "data", url=f"sqlite:///{tmp_path}/none.db")
    gatehouse = installation.command_line()
    level, text = worst_findings(gatehouse)["database"]
    assert (level, "no database at" in text) == ("bad", True)
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "none.db").write_bytes(b"not a database, certainly" * 100)
    assert worst_findings(gatehouse)["database"][0] == "bad"
    unreachable = {"GATEHOUSE__DATABASE__URL": "postgresql://no_one@127.0.0.1:1/none"}
    assert "cannot reach PostgreSQL" in worst_findings(gatehouse, **unreachable)["database"][1]


def test_a_wrong_master_key_and_another_schema_are_told(
    installation: InstallationPaths, filled_installation: CommandLine
) -> None:
    level, text = worst_findings(filled_installation, **{MASTER: OTHER_KEY})["master key"]
    assert (level, "configure the right key" in text) == ("bad", True)
    execute_statements(installation.url, ["UPDATE alembic_version SET version_num = '9999'"])
    assert "upgrade Gatehouse" in worst_findings(filled_installation)["schema"][1]
    execute_statements(installation.url, ["UPDATE alembic_version SET version_num = '0000'"])
    assert "gatehouse migrate" in worst_findings(filled_installation)["schema"][1]


def test_keys_that_are_damaged_gone_or_old_are_named(
    installation: InstallationPaths, filled_installation: CommandLine
) -> None:
    old, removed, damaged, *_ = filled_installation.json("key", "list")
    long_ago = f"UPDATE signing_keys SET created_at = 1 WHERE kid = '{old['kid']}'"  # noqa: S608
    execute_statements(installation.url, [long_ago])
    assert worst_findings(filled_installation)["signing keys"] == (
        "warn",
        f"{old['kid']} is due for rotation: the service rotates it while it is running",
    )
    hex_form = "x'00'" if installation.url.startswith("sqlite:") else "'\\x00'"
    execute_statements(
        installation.url,
        [
            f"DELETE FROM signing_keys WHERE kid = '{removed['kid']}'",  # noqa: S608
            f"UPDATE signing_keys SET sealed_private = {hex_form} WHERE kid = '{damaged['kid']}'",  # noqa: S608
        ],
    )
    result = filled_installation.run("doctor")
    assert result.code == 1
    assert f"no {removed['alg']} key for {removed['purpose']}" in result.out
    assert f"{damaged['kid']} cannot be used" in result.out


def test_a_missing_index_and_a_log_no_one_seals_are_noticed(
    installation: InstallationPaths, filled_installation: CommandLine
) -> None:
    execute_statements(
        installation.url,
        ["DROP INDEX ix_users_reg_time", "UPDATE audit_events SET at = 1 WHERE event = 'setup.closed'"],
    )
    output = filled_installation.run("doctor").out
    assert "missing indexes: ix_users_reg_time" in output
    assert "unsealed records since 1970-01-01T00:00:01Z" in output


def test_a_data_directory_open_to_others_is_warned_of(
    installation: InstallationPaths, filled_installation: CommandLine
) -> None:
    installation.data.chmod(0o755)
    (installation.data / "dev.key").chmod(0o644)
    output = filled_installation.run("doctor").out
    assert f"{installation.data} is accessible to other users (mode 0755)" in output
    assert f"{installation.data}/dev.key is accessible to other users (mode 0644)" in output


def test_settings_that_would_not_start_are_all_told(filled_installation: CommandLine) -> None:
    result = filled_installation.run(
        "doctor", "--json", environment={"GATEHOUSE__LOG__LEVEL": "loud", "GATEHOUSE__X": "1"}
    )
    assert result.code == 1
    assert {finding["topic"] for finding in result.json()["findings"]} == {"settings"}
    assert len(result.json()["findings"]) == 2


def test_ro_22_stored_rules_with_a_reserved_name_are_told_and_left_out_of_an_export(
    installation: InstallationPaths, filled_installation: CommandLine, tmp_path: Path
) -> None:
    file, exported = tmp_path / "file.yaml", tmp_path / "export.yaml"
    file.write_text(
        """\
projects: [{title: Games, owners: ["1001"]}]
users: [{user_id: "1001", login: one@x.example, nick: One}]
applications:
  - application_id: 50001
    name: Shop
    project_id: games
    schema: {private_data: {hidden: {x: {value: false}}, plain: {value: false}}}
    roles: {mod: {meta: {public_data: {hidden2: {value: true}}}}}
    users: {"1001": {public_data: {hidden3: {value: true}}, private_data: {projectAccess: {games: {
      private_data: {hidden4: {value: true}}}}}}}
"""
    )
    filled_installation("apply", file)
    assert worst_findings(filled_installation)["rules"] == ("ok", "no reserved names")
    execute_statements(
        installation.url,
        [
            """UPDATE application_schemas SET private_data = replace(private_data, '"hidden"', '"secret_data"')""",
            """UPDATE roles SET meta = replace(meta, '"hidden2"', '"private_data"')""",
            """UPDATE user_records SET public_data = replace(public_data, '"hidden3"', '"public_data"')""",
            """UPDATE scope_records SET private_data = replace(private_data, '"hidden4"', '"projectAccess"')""",
        ],
    )
    output = [line for line in filled_installation.run("doctor").out.splitlines() if " rules: " in line]
    assert output == [
        f"warn rules: {line}: the name is reserved and cannot be saved again; rename it"
        for line in (
            "private_data.secret_data in the schema of application 50001",
            "public_data.private_data in the role mod of application 50001",
            "public_data.public_data in the record of user 1001 in application 50001",
            "private_data.projectAccess in the record of user 1001 in application 50001",
        )
    ]
    assert "this name is reserved" in filled_installation.run("export", "--output", exported).err
    assert filled_installation.run("apply", exported, "--dry-run").code in (0, 2), "the rest can be applied"
    text = exported.read_text()
    assert "plain" in text
    file.write_text(file.read_text().replace("hidden2", "secret_data"))
    refusal = filled_installation.run("apply", file)
    assert refusal.code != 0
    assert "secret_data: this name is reserved" in refusal.err


@pytest.mark.both_databases
def test_doctor_tells_accounts_with_one_address(
    installation: InstallationPaths, filled_installation: CommandLine, tmp_path: Path
) -> None:
    assert worst_findings(filled_installation)["addresses"] == ("ok", "no email address belongs to two accounts")
    file = tmp_path / "file.yaml"
    people = [
        f'{{user_id: "{1000 + n}", login: "{login}", nick: N}}'
        for n, login in enumerate(
            ["ben@x.example", "cora@x.example", "d\u00f6rte@x.example", f"{wide('eve')}@x.example"]
        )
    ]
    file.write_text(f"users: [{', '.join(people)}]")
    filled_installation("apply", file)
    assert worst_findings(filled_installation)["addresses"][0] == "ok"
    respell = "UPDATE users SET login = '{0}', login_key = '{0}', shared_key = 'ben@x.example' WHERE user_id = '1001'"
    execute_statements(installation.url, [respell.format(f"{wide('ben')}@x.example")])
    level, text = worst_findings(filled_installation)["addresses"]
    assert (level, text.partition(" have ")[0]) == ("warn", "accounts 1000, 1001")


def test_doctor_finds_protected_sites_that_are_closed_to_everyone(
    filled_installation: CommandLine, tmp_path: Path
) -> None:
    assert "protected sites" not in worst_findings(filled_installation)
    file = tmp_path / "file.yaml"
    file.write_text(
        """\
applications:
  - application_id: 50001
    name: Wiki
    schema: {private_data: {page: {read: {value: false}}}}
    protected_sites: {"https://wiki.example": page.read, "https://docs.example": page.write}
"""
    )
    filled_installation("apply", file)
    output = [line for line in filled_installation.run("doctor").out.splitlines() if " protected sites: " in line]
    assert [line.partition(": ")[2].partition(":")[0] for line in output] == ["https", "no proxy may ask about them"]
    assert "docs.example asks for page.write, which is not in the schema of application 50001" in output[0]
    file.write_text(file.read_text().replace("page.write", "page.read"))
    filled_installation("apply", file)
    trusted = {"GATEHOUSE__SERVER__TRUSTED_PROXIES": "127.0.0.1/32"}
    found = worst_findings(filled_installation, **trusted)["protected sites"]
    assert found == ("ok", "2, each with a permission of its application")


def test_ci_01_doctor_tells_clients_with_a_reserved_id(
    installation: InstallationPaths, filled_installation: CommandLine
) -> None:
    create = ("client", "create", "--name", "Shop", "--redirect-uri", "https://shop.example/cb")
    assert "digits only or a reserved name" in filled_installation.expect_failure(*create, "4711")
    filled_installation(*create, "shop")
    assert worst_findings(filled_installation)["clients"][0] == "ok"
    execute_statements(
        installation.url,
        [f"UPDATE {table} SET client_id = '4711'" for table in ("clients", "client_secrets")],  # noqa: S608
    )
    level, text = worst_findings(filled_installation)["clients"]
    assert (level, text.startswith("4711 has an ID of digits only"), "client:4711" in text) == ("warn", True, True)


def test_fa_13_doctor_tells_sites_of_two_applications_whose_proxies_need_not_name_theirs(
    filled_installation: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(
        """\
applications:
  - application_id: 50001
    name: Wiki
    protected_sites: {"https://wiki.example": page.read}
    schema: {private_data: {page: {read: {value: true}}}}
  - application_id: 50002
    name: Shop
    protected_sites: {"https://shop.example": page.read}
    schema: {private_data: {page: {read: {value: true}}}}
"""
    )
    dry_run = filled_installation.run("apply", file, "--dry-run", "--json").json()
    assert "application_id" in dry_run["warnings"][0]
    assert "! protected_sites: sites of two applications are registered now" in filled_installation("apply", file)
    assert "!" not in filled_installation("apply", file)
    trusted = {"GATEHOUSE__SERVER__TRUSTED_PROXIES": "127.0.0.1/32"}
    level, text = worst_findings(filled_installation, **trusted)["protected sites"]
    assert (level, text.partition("; ")[2]) == ("ok", "/proxy/auth without application_id is refused")
    filled_installation("config", "set", "forward_auth.require_application=false")
    level, text = worst_findings(filled_installation, **trusted)["protected sites"]
    assert level == "warn"
    assert "2 applications have sites, but forward_auth.require_application is off" in text


def test_ci_07_doctor_tells_apis_with_a_resource_that_cannot_be_declared_today(
    installation: InstallationPaths, filled_installation: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "apis.yaml"
    entries = [f"  - {{name: A{number}, api: {{resource: 'https://api.example/{number}'}}}}" for number in range(3)]
    file.write_text("\n".join(["applications:", *entries]))
    filled_installation("apply", file)
    assert worst_findings(filled_installation)["APIs"] == ("ok", "3, each with a resource of its own")
    old = ("http://localhost:8080/api", "https://api.example/2/", "https://clients.example/x")
    for number, resource in enumerate(old):
        execute_statements(
            installation.url,
            [f"UPDATE applications SET api_resource = '{resource}' WHERE name = 'A{number}'"],  # noqa: S608
        )
    hosts = {"GATEHOUSE__OAUTH__CLIENT_DOCUMENT_HOSTS": "clients.example"}
    output = filled_installation.run("doctor", environment=hosts).out
    assert "warn APIs: http://localhost:8080/api of application 50001 is an address of Gatehouse itself" in output
    assert "warn APIs: https://clients.example/x of application 50003 is on a host of oauth.client" in output
    execute_statements(
        installation.url, ["UPDATE applications SET api_resource = 'https://API.example/2' WHERE name = 'A2'"]
    )
    output = filled_installation.run("doctor").out
    assert "https://api.example/2/ of application 50002 is also that of application 50003" in output
    assert "https://API.example/2 of application 50003 is also that of application 50002" in output


def test_apply_and_doctor_tell_a_client_that_can_never_authenticate(
    filled_installation: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "clients.yaml"
    entry = {"name": "Shop", "profile": "oidc", "redirect_uris": ["https://shop.example/cb"]}
    closed = {"client_id": "closed", **entry, "client_secret": None}
    open_ones = [{"client_id": "shop", **entry}, {"client_id": "app", **entry, "public": True}]
    file.write_text(json.dumps({"clients": [*open_ones, closed]}))
    told = "closed has neither a secret nor keys and can never authenticate"
    dry_run = filled_installation.run("apply", file, "--dry-run", "--json").json()
    assert dry_run["warnings"] == [f"clients[2]: {told}"]
    assert f"! clients[2]: {told}" in filled_installation("apply", file)
    level, text = worst_findings(filled_installation)["clients"]
    assert (level, text.startswith(told)) == ("warn", True)
    filled_installation("client", "rotate-secret", "closed")
    assert worst_findings(filled_installation)["clients"][0] == "ok"
