"""`gatehouse config`: settings kept in the database."""

from pathlib import Path

import pytest

from tests.support.command_line import CommandLine
from tests.support.images import SVG, png

PASSWORD = "s3cret-of-the-mail-server"


def test_settings_are_stored_shown_and_removed_on_the_command_line(gatehouse: CommandLine, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("s3cret-of-the-mail-server\n")
    gatehouse("config", "set", "branding.name=Sky Studio", "accounts.allowed_domains=sky.example, studio.example")
    gatehouse("config", "set", "mail.username=mailer", "mail.password", "--password-file", password)
    shown = gatehouse.json("config", "show", "--stored")
    assert shown["branding.name"] == {"value": "Sky Studio", "source": "database"}
    assert shown["accounts.allowed_domains"]["value"] == ["sky.example", "studio.example"]
    assert shown["mail.password"] == {"value": "********", "source": "database"}
    assert gatehouse.json("config", "show")["branding.name"]["value"] == "Gatehouse"
    gatehouse("config", "unset", "branding.name")
    assert gatehouse.json("config", "show", "--stored")["branding.name"]["source"] == "default"
    assert "did you mean branding.name?" in gatehouse.expect_failure("config", "set", "branding.nam=Sky")
    assert "must be between" in gatehouse.expect_failure("config", "set", "sessions.idle_hours=0")
    assert "is a secret" in gatehouse.expect_failure("config", "set", "mail.password=typed", code=2)


def test_config_set_warns_of_addresses_that_are_not_called(gatehouse: CommandLine) -> None:
    def warnings(url: str, **environment: str) -> list[str]:
        corp = ("providers.corp.enabled=false", f"providers.corp.keys_url={url}")
        result = gatehouse.run("config", "set", *corp, environment=environment)
        assert (result.code, result.out) == (0, "Stored.\n")
        return result.err.splitlines()

    refused = "warning: providers.corp.keys_url: 10.1.2.3 will not be called:"
    permit = "list 10.1.2.3 in outbound.allow to permit it"
    assert warnings("https://10.1.2.3/keys") == [f"{refused} 10.1.2.3 is not a public address; {permit}"]
    assert warnings("http://10.1.2.3/keys") == [f"{refused} http is not encrypted; {permit}"]
    assert warnings("http://10.1.2.3/keys", GATEHOUSE__OUTBOUND__ALLOW="10.0.0.0/8") == []
    assert warnings("http://127.0.0.1:8081/keys") == []  # with --dev
    assert warnings("https://93.184.215.14/keys") == []


def test_stored_settings_are_exported_and_applied(gatehouse: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(
        "settings:\n"
        "  - name: branding.name\n"
        "    value: Sky Studio\n"
        "  - name: mail.username\n"
        "    value: mailer\n"
        "  - name: mail.password\n"
        "    secret: s3cret-of-the-mail-server\n"
    )
    gatehouse("apply", file)
    assert gatehouse.json("config", "show", "--stored")["mail.password"]["source"] == "database"
    assert gatehouse.json("apply", file)["changes"] == []
    exported = tmp_path / "exported.yaml"
    exported.write_text(gatehouse("export"))
    assert "s3cret" not in exported.read_text()
    assert gatehouse.json("apply", exported)["changes"] == []
    file.write_text("settings:\n  - name: branding.name\n    value: ''\n  - name: server.port\n    value: 80\n")
    problems = gatehouse.expect_failure("apply", file)
    assert "settings[0] (branding.name)" in problems
    assert "settings[1] (server.port): cannot be changed while the service runs" in problems
    file.write_text("settings: []\n")
    gatehouse("apply", file, "--prune")
    assert gatehouse.json("config", "show", "--stored")["branding.name"]["source"] == "default"


@pytest.mark.both_databases
def test_op_87_commands_and_files_send_no_stored_password_to_another_server(
    gatehouse: CommandLine, tmp_path: Path
) -> None:
    password, file = tmp_path / "password", tmp_path / "settings.yaml"
    password.write_text(f"{PASSWORD}\n")
    sender = ("mail.host=127.0.0.1", "mail.security=none", "mail.from_address=id@sky.example")
    gatehouse("config", "set", *sender, "mail.username=mailer", "mail.password", "--password-file", password)
    (sealed,) = [line.strip() for line in gatehouse("export").splitlines() if "sealed:" in line]

    def stored() -> tuple[str, str]:
        shown = gatehouse.json("config", "show", "--stored")
        return shown["mail.host"]["value"], shown["mail.port"]["value"]

    elsewhere = "settings:\n  - name: mail.host\n    value: 127.0.0.2\n"
    secret = f"{elsewhere}  - name: mail.password\n    secret: "
    for refused in (elsewhere, f"{secret}{{{sealed}}}\n"):
        file.write_text(refused)
        assert "mail.password: must be entered again" in gatehouse.expect_failure("apply", file)
    assert "must be entered again" in gatehouse.expect_failure("config", "set", "mail.port=25")
    assert stored() == ("127.0.0.1", 587)
    file.write_text(f"{secret}{{file: {password}}}\n")
    gatehouse("apply", file)
    gatehouse("config", "set", "mail.port=25", "mail.password", "--password-file", password)
    assert stored() == ("127.0.0.2", 25)


def test_op_88_command_gives_a_webhook_with_another_url_a_new_secret(gatehouse: CommandLine) -> None:
    made = gatehouse.json("webhook", "add", "https://hook.example/in", "--event", "account")
    change = ("webhook", "change", made["webhook_id"], "--url", "https://other.example/in")
    assert "another URL needs a new secret" in gatehouse.expect_failure(*change)
    assert gatehouse.json("webhook", "list")[0]["url"] == "https://hook.example/in"
    assert gatehouse.json(*change, "--new-secret")["secret"] not in ("", made["secret"])


def test_a_logo_is_stored_from_a_file_and_encoded_anew(gatehouse: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "logo.png").write_bytes(png("navy") + SVG)
    (tmp_path / "logo.svg").write_bytes(SVG)
    gatehouse("config", "set", f"branding.logo={tmp_path / 'logo.png'}")
    shown = gatehouse.json("config", "show", "--stored")["branding.logo"]
    assert "/images/" in shown["value"]
    assert shown["source"] == "database"
    for name, code, problem in (("logo.svg", 1, "PNG, JPEG or WebP"), ("missing.png", 2, "cannot read")):
        assert problem in gatehouse.expect_failure("config", "set", f"branding.logo={tmp_path / name}", code=code)


def test_administrator_is_created_and_a_value_removed_with_a_wrong_mail_server(
    gatehouse: CommandLine, tmp_path: Path
) -> None:
    password = tmp_path / "password"
    password.write_text("correct horse battery staple\n")
    wrong = ("mail.host=127.0.0.1", "mail.port=9", "mail.security=none", "mail.from_address=id@sky.example")
    gatehouse("config", "set", *wrong, "accounts.email_sign_in=true", "accounts.password_optional=true")
    account = ("--login", "ada@sky.example", "--nick", "Ada", "--password-file", password)
    assert gatehouse.json("admin", "create", *account)["login"] == "ada@sky.example"
    gatehouse("admin", "reset-2fa", "ada@sky.example")
    gatehouse("config", "unset", "mail.host")
    assert gatehouse.json("config", "show", "--stored")["mail.host"]["source"] == "default"
