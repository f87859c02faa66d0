"""The console: settings."""

from gatehouse.admin.people import PeopleListStore
from gatehouse.app.console.shared import ConsoleServices
from gatehouse.app.services.core import call_forecast
from gatehouse.app.services.installation import installation_admin, text_messages
from gatehouse.providers.sign_in import callback_path
from gatehouse.settings.entries import STORED_SETTINGS, TABLE_SETTINGS, setting_of_name
from gatehouse.web.console.branding import BrandingScreens
from gatehouse.web.console.branding_preview import BrandingPreviews
from gatehouse.web.console.provider_test import ProviderTestScreen
from gatehouse.web.console.settings import (
    PhoneSettingScreens,
    SettingScreens,
    SettingTabScreens,
    SigningKeyScreens,
)
from gatehouse.web.console.settings_form import SettingForms, SettingRowScreens
from gatehouse.web.console.settings_tables import SETTINGS_TABLES, SettingsTableScreens
from gatehouse.web.console.view import ConsoleRoute


def build(console: ConsoleServices) -> list[ConsoleRoute]:
    services = console.services
    installation, save, view = (
        installation_admin(services, console.readiness),
        services.settings_editor.save,
        console.view,
    )
    in_tables = (f"{table}.one.{key}" for table, rows in TABLE_SETTINGS.items() for key in rows)
    forms = SettingForms(
        installation=installation,
        save=save,
        parse=lambda name, text: setting_of_name(name).parse(text),
        settings=[*STORED_SETTINGS, *in_tables],
    )
    screens = SettingScreens(
        installation=installation,
        forms=forms,
        composer=services.mail.composer,
        outbox_worker=services.mail.outbox,
        view=view,
    )
    rows = SettingRowScreens(
        forms=forms,
        callback=lambda provider_id: f"{services.base_url}{callback_path(provider_id)}",
        applications=PeopleListStore(services.storage.runner).applications,
        forecast=call_forecast(services.settings, more_allowed=services.core.provider_loopback),
        view=view,
    )
    branding = BrandingScreens(forms=forms, save=save, view=view)
    previews = BrandingPreviews(
        pages=console.pages,
        composer=services.mail.composer,
        accent=lambda: services.settings.branding.accent,
        view=view,
    )
    return [
        *previews.routes(),
        *branding.routes(),
        *SigningKeyScreens(key_admin=installation.keys, view=view).routes(),
        *screens.routes(),
        *SettingTabScreens(forms=forms, view=view).routes(),
        *PhoneSettingScreens(
            installation=installation, forms=forms, messages=text_messages(services), view=view
        ).routes(),
        *rows.routes(),
        *ProviderTestScreen(providers=services.sign_in.providers, view=view).routes(),
        *(
            route
            for table in SETTINGS_TABLES
            for route in SettingsTableScreens(table, installation=installation, save=save, view=view).routes()
        ),
    ]
