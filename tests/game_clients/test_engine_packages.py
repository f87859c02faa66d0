"""What the packages for Unity and Godot 4 do beyond a sign-in: sessions, permissions, bans, keys."""

import json
import re
from pathlib import Path
from typing import Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.game_clients.conftest import GameStudio, turn_guests_on
from tests.game_clients.support.desktop import Desktop
from tests.game_clients.support.games import BUILT, CLIENTS, GAMES, Game, output_of
from tests.game_clients.support.player import NICK, Player
from tests.game_clients.support.responder import ScriptedReply, scripted_responder
from tests.support.guides import programs_for

EXAMPLES: Final = {
    "godot": ("gdscript", "example.gd"),
    "unity": ("csharp", "Samples~/SignIn/SignInExample.cs"),
}
RULE: Final = "match.kick"
# Tests 1 and 3 of RFC 8032, section 7.1, and a message whose padding just fits into its block.
SEEDS: Final = (
    "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
    "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
    "ff" * 32,
)
PUBLIC_KEYS: Final = (
    "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
    "",
)
MESSAGES: Final = ("", "af82", "00" * 111)
WITHOUT_THREADS: Final = re.compile(
    r"System\.Net\b|new Thread|Task\.(?:Run|Delay)|Timer\(|HttpClient|\.Wait\(\)|\.Result\b(?!\.)"
)


@pytest.fixture(scope="module", params=["godot", "unity"])
def engine(request: pytest.FixtureRequest) -> Game:
    language: str = request.param
    return GAMES[language](BUILT / language)


@pytest.fixture
def device(tmp_path: Path) -> dict[str, str]:
    """A device without stored values."""
    return {"PREFERENCES": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}


@pytest.fixture
def rule(studio: GameStudio, tmp_path: Path) -> str:
    """A permission that the player has."""
    schema = {"private_data": {"match": {"kick": {"value": False}, "end": {"value": False}}}}
    assigned = {studio.user_id: {"private_data": {"match": {"kick": {"value": True}}}}}
    application = {"application_id": studio.application_id, "schema": schema, "users": assigned}
    described = tmp_path / "rule.json"
    described.write_text(json.dumps({"applications": [application]}))
    studio.commands("apply", described)
    return RULE


def sign_in(engine: Game, studio: GameStudio, device: dict[str, str]) -> dict[str, str]:
    words = (f"app_id={studio.application_id}", "factor=device")
    with engine.start(studio.base_url, *words, environment=device) as playing, Player() as player:
        player.confirm(playing.wait_for_line("^link (.+)$", playing.stdout)[1])
        return output_of(playing)


def play(engine: Game, studio: GameStudio, device: dict[str, str], *words: str) -> dict[str, str]:
    return engine.play(studio.base_url, f"app_id={studio.application_id}", *words, environment=device)


def stored_values(device: dict[str, str]) -> str:
    """What the package stored; Godot also writes what the driver prints to a log."""
    files = [path for path in Path(device["PREFERENCES"]).rglob("*") if path.is_file() and path.suffix != ".log"]
    return "".join(path.read_text() for path in files)


def test_session_is_resumed_and_asks_for_permissions_after_a_restart(
    engine: Game, studio: GameStudio, device: dict[str, str], rule: str
) -> None:
    first = sign_in(engine, studio, device)
    resumed = play(engine, studio, device, "do=resume,check,is_allowed", f"rules={rule}")
    assert (resumed["outcome"], resumed["nick"], resumed["user_id"]) == ("ok ok", NICK, studio.user_id)
    assert resumed["jwt"] == first["jwt"] != ""
    assert (resumed["allowed"], resumed["is_allowed"]) == ("true", "true")
    assert "link" not in resumed
    several = play(engine, studio, device, "do=check", f"rules={rule},match.end,match.unknown")
    assert several["allowed"] == "true,false,false"
    assert play(engine, studio, device, "do=is_allowed", "rules=match.end")["is_allowed"] == "false"


def test_ban_is_shown_and_ends_and_revoked_session_is_forgotten(
    engine: Game, studio: GameStudio, device: dict[str, str], rule: str
) -> None:
    jwt = sign_in(engine, studio, device)["jwt"]
    studio.commands("user", "ban", studio.user_id, "--text", "Cheating", "--until", "2030-01-01")
    banned = play(engine, studio, device, "do=resume,check,is_allowed", f"rules={rule}")
    studio.commands("user", "lift-ban", studio.user_id)
    assert (banned["outcome"], banned["ban"]) == ("refused refused", "banned Cheating 1893456000")
    assert (banned["allowed"], banned["is_allowed"]) == ("", "false")
    assert play(engine, studio, device, "do=resume")["outcome"] == "ok"
    assert jwt in stored_values(device)

    studio.commands("user", "revoke-all", studio.user_id)
    revoked = play(engine, studio, device, "do=resume,resume,check", f"rules={rule}")
    assert revoked["outcome"] == "signed_out signed_out signed_out"
    assert jwt not in stored_values(device)


def test_guest_whose_session_ended_is_signed_in_again(
    engine: Game, studio: GameStudio, device: dict[str, str]
) -> None:
    turn_guests_on(studio)
    first = play(engine, studio, device, "do=guest", "factor=device")
    studio.commands("user", "revoke-all", first["user_id"])
    again = play(engine, studio, device, "do=resume,resume")
    assert (again["outcome"], again["user_id"]) == ("ok ok", first["user_id"])
    assert again["jwt"] != first["jwt"]


def test_upgrade_without_a_guest_is_refused_and_stores_nothing(engine: Game, device: dict[str, str]) -> None:
    with scripted_responder(ScriptedReply(body={"status": "CHALLENGE", "challenge": "guest.1.first.aa"})) as service:
        output = engine.play(service.address, "do=upgrade,has_guest", environment=device)
    assert (output["outcome"], output["ban"], output["has_guest"]) == ("refused", "login_error  0", "false")
    assert service.calls == []
    assert stored_values(device) == ""


def test_session_is_sent_to_the_service_that_issued_it_only(
    engine: Game, studio: GameStudio, device: dict[str, str]
) -> None:
    sign_in(engine, studio, device)
    elsewhere = studio.base_url.replace("localhost", "127.0.0.1")
    assert elsewhere != studio.base_url
    assert engine.play(elsewhere, "do=resume", environment=device)["outcome"] == "signed_out"
    assert play(engine, studio, device, "do=sign_out,resume")["outcome"] == "signed_out"
    assert engine.play("http://sso.studio.example", "do=resume", environment=device)["outcome"] == "invalid"


def test_ed25519_signs_like_rfc_8032(engine: Game, device: dict[str, str]) -> None:
    for seed, public, message in zip(SEEDS, PUBLIC_KEYS, MESSAGES, strict=True):
        key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(seed))
        words = ("do=sign", f"seed={seed}", f"message={message}")
        output = engine.play("http://localhost", *words, environment=device)
        assert output["public"] == key.public_key().public_bytes_raw().hex()
        assert output["public"] == public or not public
        assert output["signature"] == key.sign(bytes.fromhex(message)).hex()


def test_the_example_of_the_guide_is_the_example_and_signs_a_player_in(
    engine: Game, studio: GameStudio, device: dict[str, str], desktop: Desktop
) -> None:
    language, file = EXAMPLES[engine.language]
    (code,) = programs_for(__file__, engine.language, language)
    assert code == (CLIENTS / engine.language / file).read_text()
    words = (studio.base_url, str(studio.application_id))
    for seen_before in (False, True):  # the second run resumes
        environment = {**desktop.environment, **device}
        with engine.start_example(*words, environment=environment) as playing, Player() as player:
            if not seen_before:
                (link,) = desktop.wait_for_open()
                player.confirm(link)
            playing.wait_for_line(f"^Hello, {NICK}", playing.stdout)
    assert desktop.nothing_was_opened()


def test_unity_package_has_the_layout_of_the_package_manager() -> None:
    package = CLIENTS / "unity"
    manifest = json.loads((package / "package.json").read_text())
    assert (package / manifest["samples"][0]["path"]).is_dir()
    assert {"README.md", "CHANGELOG.md", "LICENSE.md"} <= {path.name for path in package.iterdir()}
    (assembly,) = package.glob("Runtime/*.asmdef")
    assert json.loads(assembly.read_text())["name"] == assembly.stem
    # Unity ignores a file of an installed package that has no .meta file with an ID of its own.
    assets = [path for path in package.rglob("*") if path.suffix != ".meta" and "Samples~" not in path.parts]
    metas = [Path(f"{path}.meta").read_text() for path in assets]
    identifiers = [re.findall(r"^guid: ([0-9a-f]{32})$", meta, re.MULTILINE) for meta in metas]
    assert all(len(found) == 1 for found in identifiers)
    assert len({found[0] for found in identifiers}) == len(assets) > 8


def test_unity_package_uses_nothing_that_webgl_lacks() -> None:
    for source in (CLIENTS / "unity").rglob("*.cs"):
        code = re.sub(r"//.*", "", source.read_text())
        assert not WITHOUT_THREADS.search(code), source.name


def test_godot_addon_has_the_layout_of_the_asset_library() -> None:
    addon = CLIENTS / "godot" / "addons" / "gatehouse"
    script = re.search(r'^script="(.+)"$', (addon / "plugin.cfg").read_text(), re.MULTILINE)
    assert script is not None
    plugin = (addon / script[1]).read_text()
    loaded = re.findall(r'res://([\w./]+\.gd)"', plugin)
    assert loaded
    assert all((CLIENTS / "godot" / path).is_file() for path in loaded)
    assert (addon / "LICENSE").is_file()
