import re
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.find_programs import ROOT
from tests.unit.settings.installation import MASTER, MASTER_KEY, OTHER_MASTER_KEY, SOUND, TemporaryInstallation

PORT = "GATEHOUSE__SERVER__PORT"


def test_a_setting_no_one_gave_has_its_default(installation: TemporaryInstallation) -> None:
    loaded = installation.load()
    assert loaded.settings.server.port == 8080
    assert loaded.sources["server.port"] == "default"


def test_the_file_wins_over_the_default(installation: TemporaryInstallation) -> None:
    loaded = installation.load(toml="server.port = 1001")
    assert loaded.settings.server.port == 1001
    assert loaded.sources["server.port"] == f"file {installation.data}/gatehouse.toml"


def test_the_environment_wins_over_the_file(installation: TemporaryInstallation) -> None:
    loaded = installation.load(SOUND | {PORT: "1002"}, toml="server.port = 1001")
    assert loaded.settings.server.port == 1002
    assert loaded.sources["server.port"] == "environment"


def test_a_flag_wins_over_the_environment(installation: TemporaryInstallation) -> None:
    loaded = installation.load(SOUND | {PORT: "1002"}, flags={"server.port": "1003"})
    assert loaded.settings.server.port == 1003
    assert loaded.sources["server.port"] == "flag"


def test_a_wrong_flag_is_named_as_it_was_typed(installation: TemporaryInstallation) -> None:
    assert installation.problems(flags={"server.port": "eighty"}) == ("--port: must be a whole number, not 'eighty'",)


def test_a_wrong_value_is_refused_even_when_a_later_source_overrides_it(installation: TemporaryInstallation) -> None:
    [problem] = installation.problems(SOUND | {PORT: "1002"}, toml='server.port = "1001"')
    assert problem == f"{installation.data}/gatehouse.toml: server.port: must be a whole number, not '1001'"


def test_every_kind_of_value_reads_the_same_from_file_and_environment(installation: TemporaryInstallation) -> None:
    from_environment = installation.load(
        SOUND
        | {
            "GATEHOUSE__GAME__CODE_MATCH": "true",
            "GATEHOUSE__KEYS__RSA_BITS": "3072",
            "GATEHOUSE__LOG__LEVEL": "debug",
            "GATEHOUSE__SERVER__TRUSTED_PROXIES": "10.0.0.0/8, fd00::/8",
        }
    )
    from_file = installation.load(
        toml="""
        server.trusted_proxies = ["10.0.0.0/8", "fd00::/8"]
        log.level = "debug"
        keys.rsa_bits = 3072
        game.code_match = true
        """
    )
    for section in ("server", "log", "keys", "game"):
        assert getattr(from_environment.settings, section) == getattr(from_file.settings, section)
    assert from_file.settings.keys.rsa_bits == 3072
    assert [str(network) for network in from_file.settings.server.trusted_proxies] == ["10.0.0.0/8", "fd00::/8"]


def test_an_empty_variable_is_an_empty_list(installation: TemporaryInstallation) -> None:
    loaded = installation.load({"GATEHOUSE__GAME__SESSION_INFO_ALLOW": ""}, dev=True)
    assert loaded.settings.game.session_info_allow == ()


def test_a_misspelt_variable_is_refused_with_the_right_spelling(installation: TemporaryInstallation) -> None:
    assert installation.problems(SOUND | {"GATEHOUSE__SERVER__BASEURL": "https://x.example"}) == (
        "GATEHOUSE__SERVER__BASEURL: unknown setting, did you mean GATEHOUSE__SERVER__BASE_URL?",
    )


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("GATEHOUSE__BASE_URL", "GATEHOUSE__SERVER__BASE_URL"),
        ("GATEHOUSE__SERVER_BASE_URL", "GATEHOUSE__SERVER__BASE_URL"),
        ("GATEHOUSE__SERVER__RSA_BITS", "GATEHOUSE__KEYS__RSA_BITS"),
        ("GATEHOUSE__SECURITY__MASTERKEY__FILE", "GATEHOUSE__SECURITY__MASTER_KEY__FILE"),
        ("GATEHOUSE__SERVER__PORT__FILE", "GATEHOUSE__SERVER__PORT"),
        ("gatehouse__server__port", "GATEHOUSE__SERVER__PORT"),
    ],
)
def test_a_name_in_the_wrong_place_or_shape_is_led_to_the_right_one(
    installation: TemporaryInstallation, variable: str, meant: str
) -> None:
    assert installation.problems(SOUND | {variable: "1"}) == (f"{variable}: unknown setting, did you mean {meant}?",)


def test_a_name_like_no_setting_gets_no_suggestion(installation: TemporaryInstallation) -> None:
    assert installation.problems(SOUND | {"GATEHOUSE__RATES__ZZZ": "1"}) == (
        "GATEHOUSE__RATES__ZZZ: unknown setting",
    )


def test_twins_that_differ_in_case_are_refused(installation: TemporaryInstallation) -> None:
    assert installation.problems(SOUND | {PORT: "1002", "Gatehouse__Server__Port": "1003"}) == (
        "Gatehouse__Server__Port: unknown setting, did you mean GATEHOUSE__SERVER__PORT?",
    )


def test_variables_with_one_underscore_are_not_ours(installation: TemporaryInstallation) -> None:
    assert installation.load(SOUND | {"GATEHOUSE_PORT": "tcp://10.0.0.1:80"}).settings.server.port == 8080


def test_an_unknown_section_and_an_unknown_key_are_refused_with_suggestions(
    installation: TemporaryInstallation,
) -> None:
    file = f"{installation.data}/gatehouse.toml"
    assert installation.problems(toml="[sever]\nport = 1\n[server]\nprot = 1\n[logs]\n[qqq]\n") == (
        f"{file}: [sever]: unknown section, did you mean [server]?",
        f"{file}: server.prot: unknown setting, did you mean server.port?",
        f"{file}: [logs]: unknown section, did you mean [log]?",
        f"{file}: [qqq]: unknown section",
    )


def test_a_section_that_is_a_value_is_refused(installation: TemporaryInstallation) -> None:
    [problem] = installation.problems(toml="server = 1")
    assert problem.endswith("gatehouse.toml: server: is a section and needs keys")


def test_a_name_twice_in_the_file_is_refused(installation: TemporaryInstallation) -> None:
    [problem] = installation.problems(toml="[log]\nlevel = 'info'\nlevel = 'debug'\n")
    assert problem.startswith(f"{installation.data}/gatehouse.toml: is not valid TOML: ")
    assert "line 3" in problem


@pytest.mark.parametrize("text", ["server.port = " + "[" * 5000, "server.port = " + "9" * 5000, "\x00", "= 1"])
def test_a_file_that_is_not_sound_toml_is_refused_in_words(installation: TemporaryInstallation, text: str) -> None:
    [problem] = installation.problems(toml=text)
    assert "gatehouse.toml: is not valid TOML: " in problem


def test_a_named_file_must_exist(installation: TemporaryInstallation) -> None:
    missing = installation.data / "missing.toml"
    assert installation.problems(config=missing) == (f"{missing}: cannot be read: No such file or directory",)


def test_a_named_file_is_read_in_place_of_the_one_in_the_data_directory(installation: TemporaryInstallation) -> None:
    other = installation.write("other.toml", "server.port = 1005")
    loaded = installation.load(toml="server.port = 1001", config=other)
    assert loaded.settings.server.port == 1005


def test_a_secret_may_come_from_a_file_named_in_the_environment(installation: TemporaryInstallation) -> None:
    path = installation.write("master.key", f"{OTHER_MASTER_KEY}\n")
    loaded = installation.load({f"{MASTER}__FILE": str(path)})
    assert loaded.settings.security.master_key.reveal() == OTHER_MASTER_KEY
    assert loaded.sources["security.master_key"] == "environment"


def test_a_secret_may_come_from_a_file_beside_the_toml_file(installation: TemporaryInstallation) -> None:
    installation.write("master.key", f"{OTHER_MASTER_KEY}\r\n")
    loaded = installation.load({}, toml='security.master_key = { file = "master.key" }')
    assert loaded.settings.security.master_key.reveal() == OTHER_MASTER_KEY


@pytest.mark.parametrize("table", ["{}", "{ file = 1 }", '{ file = "master.key", mode = 1 }', '{ path = "x" }'])
def test_a_secret_table_names_a_file_and_nothing_else(installation: TemporaryInstallation, table: str) -> None:
    installation.write("master.key", OTHER_MASTER_KEY)
    [problem] = installation.problems({}, toml=f"security.master_key = {table}")
    assert problem.endswith('security.master_key: must be text or { file = "PATH" }')


def test_a_file_holds_one_secret_of_a_list_a_line(installation: TemporaryInstallation) -> None:
    path = installation.write("old.keys", f"{MASTER_KEY}\n{OTHER_MASTER_KEY}\n")
    loaded = installation.load(SOUND | {"GATEHOUSE__SECURITY__PREVIOUS_MASTER_KEYS__FILE": str(path)})
    previous = loaded.settings.security.previous_master_keys
    assert [key.reveal() for key in previous] == [MASTER_KEY, OTHER_MASTER_KEY]


def test_the_previous_keys_are_written_as_the_page_about_rotation_says(installation: TemporaryInstallation) -> None:
    path = installation.write("previous.keys", f"{OTHER_MASTER_KEY}\n")
    [written] = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/operations/rotate-keys.md").read_text(), re.DOTALL)
    loaded = installation.load(SOUND, toml=dedent(written).replace("/etc/gatehouse/previous.keys", str(path)))
    assert [key.reveal() for key in loaded.settings.security.previous_master_keys] == [OTHER_MASTER_KEY]


def test_a_secret_given_both_directly_and_by_file_is_refused_once(installation: TemporaryInstallation) -> None:
    path = installation.write("master.key", OTHER_MASTER_KEY)
    assert installation.problems(SOUND | {f"{MASTER}__FILE": str(path)}) == (
        "GATEHOUSE__SECURITY__MASTER_KEY__FILE: GATEHOUSE__SECURITY__MASTER_KEY is also set; keep only one",
    )


def test_a_secret_file_that_is_missing_is_refused_without_also_calling_the_secret_missing(
    installation: TemporaryInstallation,
) -> None:
    missing = installation.data / "no.key"
    assert installation.problems({f"{MASTER}__FILE": str(missing)}) == (
        f"{MASTER}__FILE: cannot read {missing}: No such file or directory",
    )


def test_all_problems_are_reported_together(installation: TemporaryInstallation) -> None:
    problems = installation.problems(
        {"GATEHOUSE__LOG__LEVEL": "loud", "GATEHOUSE__LOK__LEVEL": "info"}, toml="server.port = 0"
    )
    assert [problem.rpartition(": ")[0].rpartition("/")[2] for problem in problems] == [
        "gatehouse.toml: server.port",
        "GATEHOUSE__LOG__LEVEL",
        "GATEHOUSE__LOK__LEVEL",
        "security.master_key",
    ]


def test_a_problem_stays_one_line_whatever_the_name(installation: TemporaryInstallation) -> None:
    [problem] = installation.problems(SOUND | {"GATEHOUSE__\nroot: all is well": "1"})
    assert problem == "GATEHOUSE__\\nroot: all is well: unknown setting"


def test_paths_are_absolute_wherever_the_command_was_started(
    installation: TemporaryInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(installation.data)
    loaded = TemporaryInstallation(Path("here")).load()
    assert loaded.data == installation.data / "here"
    assert loaded.settings.database.url.reveal() == f"sqlite:///{installation.data}/here/gatehouse.db"
