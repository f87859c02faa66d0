"""What holds after each step: the service has what the model has, and opens its doors to whom the model says."""

from collections import Counter
from typing import Final

from hypothesis.stateful import invariant

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.model import GUEST_PROVIDER
from gatehouse.admin.paging import PageRequest
from gatehouse.admin.people import PeopleListStore
from gatehouse.admin.people_list import EnabledMethods, PeopleFilter, PeopleListQuery
from tests.fuzz.account_life.installation import NAMES, OTHER, SHOP, STEAM, VENDOR
from tests.fuzz.account_life.machine import MachineBase, id_of, signed_in_people
from tests.fuzz.account_life.model.records import GUEST, IN_PROJECT, INSTALLATION, Account, Identity, Token
from tests.fuzz.account_life.outcomes import IN
from tests.support.studio import PROJECT

OK: Final = 200
WIDE_SCOPES: Final = {INSTALLATION: (0, ""), IN_PROJECT: (0, PROJECT)}
METHODS: Final = EnabledMethods(by_email=True, providers=(GUEST_PROVIDER, STEAM, VENDOR))
MANY: Final = 100
DOORS: Final = tuple((person, application) for application in (SHOP, OTHER, "") for person in NAMES)


class Checks(MachineBase):
    def __init__(self) -> None:
        super().__init__()
        self.checked_steps = 0
        self.expected_records: Counter[tuple[str, str]] = Counter()

    def check_step(self) -> None:
        """All checks of a step, for those whom Hypothesis does not run."""
        self.accounts_are_those_of_the_model()
        self.everything_has_its_audit_record()
        self.every_account_can_be_entered_or_is_lost()
        self.no_one_but_its_owners_has_a_way_into_an_account()
        self.bans_follow_what_banned_people_had()
        self.doors_are_open_to_whom_the_model_says()

    def check_everything(self) -> None:
        self.check_step()
        for person, application in DOORS:
            self.check_doors(person, application)
        for account in self.model.live_accounts:
            self.check_account(account)

    # -- what is stored -------------------------------------------------------------------------------

    @invariant()
    def accounts_are_those_of_the_model(self) -> None:
        for account in self.model.accounts:
            if account.user_id:
                assert self.do(self.stored_state(account)) == self.expected_state(account), account

    async def stored_state(self, account: Account) -> dict[str, object]:
        now = self.model.now
        try:
            user = await self.storage.accounts.user(account.user_id)
        except UserNotFound:
            return {"gone": True}
        details = await self.storage.profile.account_details(account.user_id, now)
        return {
            "login": user.login,
            "verified": user.email_verified,
            "password": user.password_hash is not None,
            "totp": user.sealed_totp is not None,
            "identities": {(one.issuer, one.subject) for one in details.identities},
            "labels": user.tags | user.provided_tags | user.all_purchases,
            "blocked": user.blocked,
            "bans": sorted((ban.application_id, ban.project_id) for ban in user.bans if ban.is_active(now)),
        }

    def expected_state(self, account: Account) -> dict[str, object]:
        if account.gone:
            return {"gone": True}
        return {
            "login": account.login,
            "verified": account.verified,
            "password": bool(account.password),
            "totp": bool(account.totp),
            "identities": {self.names_of(one) for one in account.identities},
            "labels": account.all_labels,
            "blocked": account.blocked,
            "bans": sorted(self.scope_of(ban.scope) for ban in self.model.bans_on(account)),
        }

    def scope_of(self, scope: str) -> tuple[int, str]:
        """Return application and project of a ban."""
        return WIDE_SCOPES.get(scope) or (self.installation.application_id(scope), "")

    @invariant()
    def everything_has_its_audit_record(self) -> None:
        new = [(account.user_id, event.value) for event, account in self.model.records if account.user_id]
        self.model.records.clear()
        self.expected_records.update(new)
        for user_id, event in set(new):
            found = self.do(self.storage.audit.newest_records(MANY, user_id, event))
            assert len(found) >= self.expected_records[user_id, event], (event, user_id)

    # -- ways in --------------------------------------------------------------------------------------

    @invariant()
    def every_account_can_be_entered_or_is_lost(self) -> None:
        for account in self.model.live_accounts:
            assert account.lost or account.entrants or account.login, account

    @invariant()
    def no_one_but_its_owners_has_a_way_into_an_account(self) -> None:
        """Once its address was proved (R10)."""
        for account in self.model.live_accounts:
            if account.owners is not None:
                assert account.entrants | self.people_inside(account) <= account.owners, account

    @invariant()
    def bans_follow_what_banned_people_had(self) -> None:
        """An identity or address that a banned account had brings the ban to any account that gets it."""
        for ban in self.model.active_bans():
            for account in self.model.live_accounts:
                if ban.is_on(account):
                    ban.seen |= account.keys
        for ban in self.model.active_bans():
            for account in self.model.live_accounts:
                is_exempt = ban.copies.get(account) is False or not ban.could_be_on(account)
                if ban.seen & account.keys and not is_exempt:
                    assert any(one.scope == ban.scope for one in self.model.bans_on(account)), (ban, account)

    def people_inside(self, account: Account) -> set[str]:
        """Return who has a session, a JWT or a grant that counts."""
        tokens = [*self.model.jwts.items(), *((name, grant) for (name, _), grant in self.model.grants.items())]
        with_token = {name for name, token in tokens if token.account is account and token.is_live}
        return with_token | {name for name in signed_in_people(self) if self.model.sessions[name].account is account}

    @invariant()
    def doors_are_open_to_whom_the_model_says(self) -> None:
        """A few after each step: those of one person to one application, and one of an account, in turn."""
        self.checked_steps += 1
        self.check_doors(*DOORS[self.checked_steps % len(DOORS)])
        if self.model.live_accounts:
            turn, number = divmod(self.checked_steps, len(self.model.live_accounts))
            checks = (self.check_role, self.check_list_of_lost_accounts, self.check_management)
            checks[turn % len(checks)](self.choose_account(number))

    def check_doors(self, person: str, application: str) -> None:
        self.check_grant(person, application)
        self.check_session(person, application)
        self.check_jwt(person, application)
        self.check_password(person, application)
        self.check_device_key(person, application)

    def check_session(self, person: str, application: str) -> None:
        player, session = self.players[person], self.model.session_of(person)
        assert self.do(player.signed_in_as()) == id_of(session and session.account)
        if application:
            is_open = session is not None and self.model.may_use(session.account, application) == IN
            assert self.do(player.sign_in_to(application)) == is_open
            if session is not None and is_open:
                session.account.was_used = True
                self.model.grants[person, application] = Token(account=session.account, rev=session.account.rev)

    def check_grant(self, person: str, application: str) -> None:
        grant = self.model.grants.get((person, application))
        if grant is not None:
            is_open = grant.is_live and self.model.may_use(grant.account, application) == IN
            assert self.do(self.players[person].refresh(application)) == is_open

    def check_jwt(self, person: str, application: str) -> None:
        player, jwt = self.players[person], self.model.jwts.get(person)
        if jwt is None:
            return
        if application:
            is_open = jwt.is_live and not self.model.is_banned(jwt.account, application, person)
            assert (self.do(player.use_jwt(application)) == OK) == is_open
        may_exchange = jwt.is_live and self.model.may_use(jwt.account, "") == IN
        assert (self.do(player.exchange_jwt()) == OK) == may_exchange

    def check_password(self, person: str, application: str) -> None:
        for account in self.model.live_accounts:
            if account.password == person and account.login and not account.totp:
                ended = self.do(self.players[person].log_in(account.login, application))
                assert ended == self.model.log_in(person, account.login, application), account

    def check_device_key(self, person: str, application: str) -> None:
        """A device key and, from there, a short token."""
        player, identity = self.players[person], Identity(GUEST, person)
        guest = self.model.account_of(identity)
        if guest is None and not self.model.has_retired_key(person):
            return
        ended = self.do(player.sign_in_as_guest(application, id_of(guest)))
        assert ended == self.model.log_in_with(identity, application, "")
        if ended == IN and guest is not None:
            is_open = {name for name in (SHOP, OTHER) if self.model.may_use(guest, name) == IN}
            assert self.do(player.authorize_with_short_token()) == is_open

    # -- accounts, as administrators see them ----------------------------------------------------------

    def check_account(self, account: Account) -> None:
        self.check_role(account)
        self.check_management(account)
        self.check_list_of_lost_accounts(account)

    def check_role(self, account: Account) -> None:
        """No step raises rights."""
        may = account.has_role and not account.is_denied and not self.model.is_banned(account, SHOP)
        assert self.do(self.administration.has_role_rule(account.user_id)) == may, account

    def check_management(self, account: Account) -> None:
        manages = account.is_manager and not self.model.is_banned(account, IN_PROJECT)
        assert self.do(self.administration.manages_project(account.user_id)) == manages, account

    def check_list_of_lost_accounts(self, account: Account) -> None:
        """The console lists who cannot sign in."""
        query = PeopleListQuery(among=PeopleFilter.NO_SIGN_IN, methods=METHODS)
        people = PeopleListStore(self.storage.runner).people(
            query, PageRequest(search=account.user_id), self.model.now
        )
        assert [one.user_id for one in self.do(people).rows] == [account.user_id] * account.lost, account
