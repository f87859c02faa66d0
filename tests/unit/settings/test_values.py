import msgspec
import pytest

from gatehouse.fields.model import Kind
from gatehouse.settings.entries import ALL_SETTINGS, Setting
from gatehouse.settings.model import Settings
from gatehouse.settings.secret import DatabaseUrl, Secret
from tests.unit.settings.installation import SOUND, TemporaryInstallation


@pytest.mark.parametrize("text", ["1_0", " 5", "+5", "05", "5.0", "\uff11", "", "0x10", "-0", "9" * 5000])
def test_only_plain_digits_are_a_number(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be a whole number|must be between"):
        ALL_SETTINGS["server.port"].from_text(text)


def test_a_complaint_repeats_no_more_than_a_glance_of_the_value() -> None:
    with pytest.raises(ValueError, match="must be a whole number") as error:
        ALL_SETTINGS["server.port"].from_text("9" * 5000)
    assert len(str(error.value)) < 120


@pytest.mark.parametrize("given", [True, 1.0, "80", None, [80], {}])
def test_a_number_in_toml_is_an_integer_and_nothing_like_it(given: object) -> None:
    with pytest.raises(ValueError, match="must be a whole number"):
        ALL_SETTINGS["server.port"].convert(given)


@pytest.mark.parametrize("given", [1, 0, "true", None])
def test_a_truth_value_in_toml_is_a_boolean_and_nothing_like_it(given: object) -> None:
    with pytest.raises(ValueError, match="must be true or false"):
        ALL_SETTINGS["rates.enabled"].convert(given)


@pytest.mark.parametrize("text", ["yes", "1", "True", "on", ""])
def test_a_truth_value_in_the_environment_is_true_or_false(text: str) -> None:
    with pytest.raises(ValueError, match="must be true or false"):
        ALL_SETTINGS["rates.enabled"].from_text(text)


@pytest.mark.parametrize("given", ["2048", True, 4096, 2048.0])
def test_a_choice_is_one_of_those_offered_and_of_their_type(given: object) -> None:
    with pytest.raises(ValueError, match="must be one of 2048, 3072"):
        ALL_SETTINGS["keys.rsa_bits"].convert(given)


@pytest.mark.parametrize("name", [name for name, entry in ALL_SETTINGS.items() if entry.kind is Kind.NUMBER])
def test_numbers_are_accepted_to_the_bounds_and_not_beyond(name: str) -> None:
    entry = ALL_SETTINGS[name]
    low, high = entry.field.minimum, entry.field.maximum
    assert (entry.convert(low), entry.convert(high)) == (low, high)
    for beyond in (low - 1, high + 1):
        with pytest.raises(ValueError, match=f"must be between {low} and {high}"):
            entry.convert(beyond)


def test_password_digests_can_never_be_cheaper_than_sound() -> None:
    assert ALL_SETTINGS["passwords.memory_kib"].field.minimum == 19 * 1024
    assert ALL_SETTINGS["passwords.time_cost"].field.minimum == 2


@pytest.mark.parametrize("entry", ALL_SETTINGS.values(), ids=lambda entry: entry.path)
def test_every_default_is_valid_for_its_setting(entry: Setting) -> None:
    if entry.is_secret or entry.is_list:
        assert not entry.default
    else:
        assert entry.convert(entry.default) == entry.default


@pytest.mark.parametrize(
    "network",
    ["10.0.0.1/8", "10.0.0.0/08", "10.0.0.0/255.0.0.0", "::ffff:a00:0/104", "fe80::%eth0/64", "localhost"],
)
def test_a_network_has_one_spelling(installation: TemporaryInstallation, network: str) -> None:
    [problem] = installation.problems(toml=f"outbound.allow = ['{network}']")
    assert "gatehouse.toml: outbound.allow: " in problem


@pytest.mark.parametrize("given", ["10.0.0.0/8", 1, {"a": 1}])
def test_a_list_in_toml_is_a_list(given: object) -> None:
    with pytest.raises(ValueError, match="must be a list"):
        ALL_SETTINGS["outbound.allow"].convert(given)


@pytest.mark.parametrize("name", ["outbound.allow", "security.previous_master_keys"])
@pytest.mark.parametrize("text", [",", "10.0.0.0/8,", " "])
def test_a_list_has_no_empty_members(name: str, text: str) -> None:
    with pytest.raises(ValueError, match="contains an empty entry"):
        ALL_SETTINGS[name].from_text(text)


def test_a_list_holds_only_text() -> None:
    with pytest.raises(ValueError, match="must be text"):
        ALL_SETTINGS["outbound.allow"].convert([1])


@pytest.mark.parametrize("character", ["\r", "\n", "\t", "\x00", "\x7f", "\u2028", "\u202e", "\u200b"])
@pytest.mark.parametrize("name", ["server.host", "security.password_pepper", "applications.keys_dir"])
def test_text_with_an_invisible_character_is_refused(name: str, character: str) -> None:
    with pytest.raises(ValueError, match="line break or another invisible character"):
        ALL_SETTINGS[name].convert(f"/{character}x")


@pytest.mark.parametrize("name", ["user_id", "status", "token"])
def test_the_vendor_nickname_cannot_replace_another_field_of_the_login_data(name: str) -> None:
    with pytest.raises(ValueError, match="already has that field"):
        ALL_SETTINGS["accounts.vendor_nick_field"].convert(name)


@pytest.mark.parametrize("name", ["", "1nick", "nick-name", "n" * 33, "N\u0456ck"])
def test_the_vendor_nickname_is_a_plain_name(name: str) -> None:
    with pytest.raises(ValueError, match="must be a letter"):
        ALL_SETTINGS["accounts.vendor_nick_field"].convert(name)


def test_settings_cannot_be_changed_once_read(installation: TemporaryInstallation) -> None:
    loaded = installation.load()
    with pytest.raises(AttributeError, match="immutable"):
        loaded.settings.server.port = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        loaded.sources["server.port"] = "no_one"  # type: ignore[index]


def test_a_secret_shows_in_no_representation() -> None:
    secret = Secret("swordfish")
    for text in (repr(secret), str(secret), f"{secret}", repr(Settings()), secret.masked):
        assert "swordfish" not in text
    assert secret.reveal() == "swordfish"


def test_a_secret_cannot_be_encoded() -> None:
    with pytest.raises(TypeError):
        msgspec.json.encode(Secret("swordfish"))


def test_no_secret_appears_in_the_repr_of_loaded_settings(installation: TemporaryInstallation) -> None:
    loaded = installation.load(SOUND | {"GATEHOUSE__DATABASE__URL": "postgresql://gate:swordfish@db/gate"})
    assert "swordfish" not in repr(loaded)
    assert SOUND["GATEHOUSE__SECURITY__MASTER_KEY"] not in repr(loaded)


def test_a_secret_is_false_when_there_is_none() -> None:
    assert not Secret()
    assert Secret("x")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://gate:pw@db/gate", "postgresql://gate:********@db/gate"),
        ("postgresql://gate:p@/w:x@db/gate", "postgresql://gate:********@db/gate"),
        ("postgresql://gate@db,db2:5433/gate", "postgresql://gate@db,db2:5433/gate"),
        ("postgresql://db/gate?user=a&password=pw&x=1", "postgresql://db/gate?user=a&password=********&x=1"),
        ("postgresql://db/gate?sslpassword=pw", "postgresql://db/gate?sslpassword=********"),
        ("sqlite:////var/lib/gatehouse/gatehouse.db", "sqlite:////var/lib/gatehouse/gatehouse.db"),
        ("", ""),
    ],
)
def test_only_the_password_of_a_database_url_is_masked(url: str, shown: str) -> None:
    assert DatabaseUrl(url).masked == shown
    assert DatabaseUrl(url).is_masked == (url != shown)


@pytest.mark.parametrize("url", ["mysql://db/x", "sqlite://x.db", "sqlite:///", "postgresql:///", "postgres://a/b"])
def test_a_wrong_database_address_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ValueError, match="must be sqlite:///PATH or postgresql://") as error:
        ALL_SETTINGS["database.url"].convert(url)
    assert url not in str(error.value).replace("sqlite:///PATH", "")
