-- Revision 0001: the first schema, written out. Never changed again.

CREATE TABLE access_keys (
    key_id TEXT NOT NULL,
    application_id BIGINT NOT NULL,
    slot BIGINT NOT NULL,
    digest BLOB NOT NULL,
    sealed BLOB NOT NULL,
    comment TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    modified_at BIGINT NOT NULL,
    last_used BIGINT NOT NULL,
    CONSTRAINT pk_access_keys PRIMARY KEY (key_id),
    CONSTRAINT uq_access_keys_application_id_slot UNIQUE (application_id, slot),
    CONSTRAINT uq_access_keys_digest UNIQUE (digest)
);

CREATE TABLE application_ids (
    application_id BIGINT NOT NULL,
    CONSTRAINT pk_application_ids PRIMARY KEY (application_id)
);

CREATE TABLE application_keys (
    kid TEXT NOT NULL,
    application_id BIGINT NOT NULL,
    source TEXT NOT NULL,
    pem TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_application_keys PRIMARY KEY (kid)
);

CREATE INDEX ix_application_keys_application_id ON application_keys (application_id);

CREATE TABLE application_schemas (
    application_id BIGINT NOT NULL,
    login TEXT NOT NULL,
    private_data TEXT NOT NULL,
    public_data TEXT NOT NULL,
    secret_data TEXT NOT NULL,
    version BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    CONSTRAINT pk_application_schemas PRIMARY KEY (application_id)
);

CREATE TABLE applications (
    application_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    project_id TEXT,
    removed BOOLEAN NOT NULL,
    settings TEXT NOT NULL,
    service_meta TEXT NOT NULL,
    sealed_private_key BLOB,
    created_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    CONSTRAINT pk_applications PRIMARY KEY (application_id)
);

CREATE INDEX ix_applications_project_id ON applications (project_id);

CREATE UNIQUE INDEX uq_applications_name_in_project ON applications (project_id, name) WHERE NOT removed;

CREATE TABLE attempts (
    subject TEXT NOT NULL,
    failures BIGINT NOT NULL,
    first_at BIGINT NOT NULL,
    blocked_until BIGINT NOT NULL,
    CONSTRAINT pk_attempts PRIMARY KEY (subject)
);

CREATE INDEX ix_attempts_blocked_until ON attempts (blocked_until);

CREATE TABLE audit_events (
    record_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    event TEXT NOT NULL,
    actor TEXT NOT NULL,
    subject TEXT NOT NULL,
    request_id TEXT NOT NULL,
    details TEXT NOT NULL,
    personal TEXT,
    salt BLOB,
    commitment BLOB NOT NULL,
    mac BLOB NOT NULL,
    place BIGINT,
    CONSTRAINT pk_audit_events PRIMARY KEY (record_id),
    CONSTRAINT uq_audit_events_place UNIQUE (place)
);

CREATE INDEX ix_audit_events_at ON audit_events (at);

CREATE INDEX ix_audit_events_by_others ON audit_events (actor, at) WHERE actor <> subject;

CREATE INDEX ix_audit_events_rare ON audit_events (event, at) WHERE event NOT IN ('game.confirmed', 'grant.made', 'login.done', 'session.ended', 'session.opened');

CREATE INDEX ix_audit_events_subject_at ON audit_events (subject, at);

CREATE INDEX ix_audit_events_unsealed ON audit_events (at) WHERE place IS NULL;

CREATE TABLE audit_refusals (
    position INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    record_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    event TEXT NOT NULL,
    reason TEXT NOT NULL,
    subject TEXT NOT NULL,
    request_id TEXT NOT NULL,
    details TEXT NOT NULL,
    personal TEXT NOT NULL,
    CONSTRAINT uq_audit_refusals_record_id UNIQUE (record_id)
);

CREATE INDEX ix_audit_refusals_subject ON audit_refusals (subject);

CREATE TABLE audit_seals (
    place BIGINT NOT NULL,
    at BIGINT NOT NULL,
    link BLOB NOT NULL,
    kid TEXT NOT NULL,
    signature BLOB NOT NULL,
    CONSTRAINT pk_audit_seals PRIMARY KEY (place)
);

CREATE TABLE client_secrets (
    client_id TEXT NOT NULL,
    slot BIGINT NOT NULL,
    kind TEXT NOT NULL,
    secret BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    CONSTRAINT pk_client_secrets PRIMARY KEY (client_id, slot)
);

CREATE TABLE clients (
    client_id TEXT NOT NULL,
    application_id BIGINT,
    name TEXT NOT NULL,
    profile TEXT NOT NULL,
    redirect_hosts TEXT NOT NULL,
    redirect_uris TEXT NOT NULL,
    post_logout_uris TEXT NOT NULL,
    scopes TEXT NOT NULL,
    origins TEXT NOT NULL,
    backchannel_logout_uri TEXT NOT NULL,
    jwks TEXT NOT NULL,
    claims TEXT NOT NULL,
    token_settings TEXT NOT NULL,
    device_grant BOOLEAN NOT NULL,
    explain_errors BOOLEAN NOT NULL,
    first_party BOOLEAN NOT NULL,
    may_exchange BOOLEAN NOT NULL,
    require_pkce BOOLEAN NOT NULL,
    public BOOLEAN NOT NULL,
    removed BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    CONSTRAINT pk_clients PRIMARY KEY (client_id)
);

CREATE TABLE consents (
    user_id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    scopes TEXT NOT NULL,
    given_at BIGINT NOT NULL,
    CONSTRAINT pk_consents PRIMARY KEY (user_id, client_id)
);

CREATE INDEX ix_consents_client_id ON consents (client_id);

CREATE TABLE device_requests (
    digest BLOB NOT NULL,
    user_code TEXT NOT NULL,
    client_id TEXT NOT NULL,
    scopes TEXT NOT NULL,
    address TEXT NOT NULL,
    state TEXT NOT NULL,
    grant_id TEXT NOT NULL,
    interval BIGINT NOT NULL,
    polled_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    CONSTRAINT pk_device_requests PRIMARY KEY (digest),
    CONSTRAINT uq_device_requests_user_code UNIQUE (user_code)
);

CREATE INDEX ix_device_requests_ends_at ON device_requests (ends_at);

CREATE TABLE email_secrets (
    application_id BIGINT NOT NULL,
    digest BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_email_secrets PRIMARY KEY (application_id, digest)
);

CREATE TABLE game_sessions (
    gsid TEXT NOT NULL,
    location BLOB NOT NULL,
    address TEXT NOT NULL,
    address_proven BOOLEAN NOT NULL,
    public_key TEXT NOT NULL,
    code TEXT NOT NULL,
    code_shown BOOLEAN NOT NULL,
    distr TEXT NOT NULL,
    app_id BIGINT NOT NULL,
    gapp_id BIGINT NOT NULL,
    options BLOB NOT NULL,
    state TEXT NOT NULL,
    failure TEXT NOT NULL,
    closed TEXT NOT NULL,
    user_id TEXT NOT NULL,
    rev BIGINT NOT NULL,
    auth TEXT NOT NULL,
    polls BIGINT NOT NULL,
    holder TEXT NOT NULL,
    cancels BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    polled_at BIGINT NOT NULL,
    last_seen BIGINT NOT NULL,
    opened_at BIGINT NOT NULL,
    signing_in_at BIGINT NOT NULL,
    confirmed_at BIGINT NOT NULL,
    delivered_at BIGINT NOT NULL,
    closed_at BIGINT NOT NULL,
    CONSTRAINT pk_game_sessions PRIMARY KEY (gsid)
);

CREATE INDEX ix_game_sessions_ends_at ON game_sessions (ends_at);

CREATE TABLE game_watchers (
    gsid TEXT NOT NULL,
    node TEXT NOT NULL,
    seen_at BIGINT NOT NULL,
    CONSTRAINT pk_game_watchers PRIMARY KEY (gsid, node)
);

CREATE INDEX ix_game_watchers_seen_at ON game_watchers (seen_at);

CREATE TABLE gdpr_calls (
    request_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    application_id BIGINT NOT NULL,
    url TEXT NOT NULL,
    state TEXT NOT NULL,
    tries BIGINT NOT NULL,
    next_try_at BIGINT NOT NULL,
    trouble TEXT NOT NULL,
    done_at BIGINT NOT NULL,
    sealed BLOB,
    CONSTRAINT pk_gdpr_calls PRIMARY KEY (request_id, position)
);

CREATE INDEX ix_gdpr_calls_state_next_try_at ON gdpr_calls (state, next_try_at);

CREATE TABLE gdpr_leases (
    url TEXT NOT NULL,
    request_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    CONSTRAINT pk_gdpr_leases PRIMARY KEY (url)
);

CREATE TABLE gdpr_requests (
    request_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    user_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    CONSTRAINT pk_gdpr_requests PRIMARY KEY (request_id)
);

CREATE INDEX ix_gdpr_requests_ends_at ON gdpr_requests (ends_at);

CREATE INDEX ix_gdpr_requests_user_id ON gdpr_requests (user_id);

CREATE TABLE grants (
    grant_id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    rev BIGINT NOT NULL,
    session_id TEXT NOT NULL,
    scopes TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    nonce TEXT,
    code_challenge TEXT NOT NULL,
    wanted_claims TEXT NOT NULL,
    auth TEXT NOT NULL,
    auth_time BIGINT NOT NULL,
    code BLOB,
    code_ends_at BIGINT NOT NULL,
    code_taken_at BIGINT NOT NULL,
    code_failures BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    refreshed_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    revoked_at BIGINT NOT NULL,
    CONSTRAINT pk_grants PRIMARY KEY (grant_id),
    CONSTRAINT uq_grants_code UNIQUE (code)
);

CREATE INDEX ix_grants_client_id ON grants (client_id);

CREATE INDEX ix_grants_created_at ON grants (created_at);

CREATE INDEX ix_grants_ends_at ON grants (ends_at);

CREATE INDEX ix_grants_revoked ON grants (revoked_at) WHERE revoked_at > 0;

CREATE INDEX ix_grants_session_id ON grants (session_id);

CREATE INDEX ix_grants_user_id_client_id ON grants (user_id, client_id);

CREATE TABLE group_members (
    group_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    CONSTRAINT pk_group_members PRIMARY KEY (group_id, user_id)
);

CREATE INDEX ix_group_members_user_id ON group_members (user_id);

CREATE TABLE groups (
    group_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    title TEXT NOT NULL,
    title_key TEXT NOT NULL,
    description TEXT NOT NULL,
    tags TEXT NOT NULL,
    conditions TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    CONSTRAINT pk_groups PRIMARY KEY (group_id),
    CONSTRAINT uq_groups_project_id_title_key UNIQUE (project_id, title_key)
);

CREATE TABLE installation (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    CONSTRAINT pk_installation PRIMARY KEY (name)
);

CREATE TABLE interactions (
    digest BLOB NOT NULL,
    kind TEXT NOT NULL,
    step TEXT NOT NULL,
    ask TEXT NOT NULL,
    user_id TEXT,
    auth TEXT NOT NULL,
    failures BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    CONSTRAINT pk_interactions PRIMARY KEY (digest)
);

CREATE INDEX ix_interactions_ends_at ON interactions (ends_at);

CREATE TABLE login_tokens (
    digest BLOB NOT NULL,
    user_id TEXT NOT NULL,
    rev BIGINT NOT NULL,
    application_id BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    CONSTRAINT pk_login_tokens PRIMARY KEY (digest)
);

CREATE INDEX ix_login_tokens_ends_at ON login_tokens (ends_at);

CREATE INDEX ix_login_tokens_user_id ON login_tokens (user_id);

CREATE TABLE logout_calls (
    call_id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    uri TEXT NOT NULL,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    next_try_at BIGINT NOT NULL,
    trouble TEXT NOT NULL,
    CONSTRAINT pk_logout_calls PRIMARY KEY (call_id)
);

CREATE INDEX ix_logout_calls_next_try_at ON logout_calls (next_try_at);

CREATE TABLE once (
    kind TEXT NOT NULL,
    digest BLOB NOT NULL,
    subject TEXT NOT NULL,
    details TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    taken_at BIGINT NOT NULL,
    CONSTRAINT pk_once PRIMARY KEY (kind, digest)
);

CREATE INDEX ix_once_expires_at ON once (expires_at);

CREATE INDEX ix_once_kind_subject ON once (kind, subject);

CREATE TABLE outbox (
    mail_id TEXT NOT NULL,
    sealed BLOB NOT NULL,
    user_id TEXT NOT NULL,
    template TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    next_try_at BIGINT NOT NULL,
    trouble TEXT NOT NULL,
    CONSTRAINT pk_outbox PRIMARY KEY (mail_id)
);

CREATE INDEX ix_outbox_next_try_at ON outbox (next_try_at);

CREATE TABLE passkeys (
    credential_id BLOB NOT NULL,
    user_id TEXT NOT NULL,
    public_key BLOB NOT NULL,
    sign_count BIGINT NOT NULL,
    name TEXT NOT NULL,
    transports TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL,
    CONSTRAINT pk_passkeys PRIMARY KEY (credential_id)
);

CREATE INDEX ix_passkeys_user_id ON passkeys (user_id);

CREATE TABLE permission_clock (
    only INTEGER NOT NULL,
    structure BIGINT NOT NULL,
    CONSTRAINT pk_permission_clock PRIMARY KEY (only)
);

CREATE TABLE project_names (
    name TEXT NOT NULL,
    project_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    CONSTRAINT pk_project_names PRIMARY KEY (name)
);

CREATE INDEX ix_project_names_project_id ON project_names (project_id);

CREATE TABLE project_services (
    project_id TEXT NOT NULL,
    application_id BIGINT NOT NULL,
    position BIGINT NOT NULL,
    group_id TEXT NOT NULL,
    roles TEXT NOT NULL,
    action TEXT NOT NULL,
    CONSTRAINT pk_project_services PRIMARY KEY (project_id, application_id, position)
);

CREATE INDEX ix_project_services_application_id ON project_services (application_id);

CREATE TABLE projects (
    project_id TEXT NOT NULL,
    title TEXT NOT NULL,
    title_key TEXT NOT NULL,
    description TEXT NOT NULL,
    tags TEXT NOT NULL,
    allowed_domains TEXT NOT NULL,
    allow TEXT NOT NULL,
    disallow TEXT NOT NULL,
    removed BOOLEAN NOT NULL,
    author TEXT NOT NULL,
    application_id BIGINT,
    created_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    CONSTRAINT pk_projects PRIMARY KEY (project_id),
    CONSTRAINT uq_projects_title_key UNIQUE (title_key)
);

CREATE INDEX ix_projects_author ON projects (author);

CREATE TABLE recovery_codes (
    user_id TEXT NOT NULL,
    digest BLOB NOT NULL,
    used_at BIGINT NOT NULL,
    CONSTRAINT pk_recovery_codes PRIMARY KEY (user_id, digest)
);

CREATE TABLE role_assignments (
    application_id BIGINT NOT NULL,
    user_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    resource_kind TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    role_key TEXT NOT NULL,
    position BIGINT NOT NULL,
    expired BIGINT NOT NULL,
    ttl BIGINT NOT NULL,
    CONSTRAINT pk_role_assignments PRIMARY KEY (application_id, user_id, project_id, resource_kind, resource_id, role_key),
    CONSTRAINT uq_role_assignments_application_id_user_id_project_id_resource_kind_resource_id_position UNIQUE (application_id, user_id, project_id, resource_kind, resource_id, position)
);

CREATE INDEX ix_role_assignments_application_id_role_key_user_id ON role_assignments (application_id, role_key, user_id);

CREATE INDEX ix_role_assignments_ending ON role_assignments (expired) WHERE expired > 0;

CREATE INDEX ix_role_assignments_project_id_application_id ON role_assignments (project_id, application_id);

CREATE INDEX ix_role_assignments_user_id ON role_assignments (user_id);

CREATE TABLE schema_versions (
    application_id BIGINT NOT NULL,
    version BIGINT NOT NULL,
    saved_at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    changes TEXT NOT NULL,
    login TEXT NOT NULL,
    private_data TEXT NOT NULL,
    public_data TEXT NOT NULL,
    secret_data TEXT NOT NULL,
    roles TEXT NOT NULL,
    CONSTRAINT pk_schema_versions PRIMARY KEY (application_id, version)
);

CREATE TABLE scope_records (
    application_id BIGINT NOT NULL,
    user_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    resource_kind TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    private_data TEXT NOT NULL,
    public_data TEXT NOT NULL,
    CONSTRAINT pk_scope_records PRIMARY KEY (application_id, user_id, project_id, resource_kind, resource_id)
);

CREATE INDEX ix_scope_records_project_id ON scope_records (project_id);

CREATE INDEX ix_scope_records_user_id ON scope_records (user_id);

CREATE TABLE service_accounts (
    user_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    name TEXT NOT NULL,
    comment TEXT NOT NULL,
    ip_ranges TEXT NOT NULL,
    public_key TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    jti TEXT NOT NULL,
    revoked BOOLEAN NOT NULL,
    version BIGINT NOT NULL,
    CONSTRAINT pk_service_accounts PRIMARY KEY (user_id),
    CONSTRAINT uq_service_accounts_project_id_name UNIQUE (project_id, name)
);

CREATE TABLE service_tokens (
    jti TEXT NOT NULL,
    application_id BIGINT NOT NULL,
    comment TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    revoked BOOLEAN NOT NULL,
    CONSTRAINT pk_service_tokens PRIMARY KEY (jti)
);

CREATE INDEX ix_service_tokens_application_id ON service_tokens (application_id);

CREATE INDEX ix_service_tokens_ends_at ON service_tokens (ends_at);

CREATE TABLE sessions (
    digest BLOB NOT NULL,
    session_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    rev BIGINT NOT NULL,
    auth TEXT NOT NULL,
    strength TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    proved_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    idle_ends_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    address TEXT NOT NULL,
    agent TEXT NOT NULL,
    CONSTRAINT pk_sessions PRIMARY KEY (digest),
    CONSTRAINT uq_sessions_session_id UNIQUE (session_id)
);

CREATE INDEX ix_sessions_ends_at ON sessions (ends_at);

CREATE INDEX ix_sessions_idle_ends_at ON sessions (idle_ends_at);

CREATE INDEX ix_sessions_user_id ON sessions (user_id);

CREATE TABLE signing_keys (
    kid TEXT NOT NULL,
    purpose TEXT NOT NULL,
    alg TEXT NOT NULL,
    public BLOB NOT NULL,
    sealed_private BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    signs_from BIGINT NOT NULL,
    signs_until BIGINT NOT NULL,
    verifies_until BIGINT NOT NULL,
    CONSTRAINT pk_signing_keys PRIMARY KEY (kid)
);

CREATE UNIQUE INDEX uq_signing_keys_open_end ON signing_keys (purpose, alg) WHERE signs_until = 0;

CREATE TABLE tallies (
    hour BIGINT NOT NULL,
    what TEXT NOT NULL,
    times BIGINT NOT NULL,
    CONSTRAINT pk_tallies PRIMARY KEY (hour, what)
);

CREATE TABLE totp_factors (
    user_id TEXT NOT NULL,
    sealed_secret BLOB NOT NULL,
    confirmed_at BIGINT NOT NULL,
    last_step BIGINT NOT NULL,
    CONSTRAINT pk_totp_factors PRIMARY KEY (user_id)
);

CREATE TABLE user_ids (
    user_id TEXT NOT NULL,
    CONSTRAINT pk_user_ids PRIMARY KEY (user_id)
);

CREATE TABLE user_purchases (
    user_id TEXT NOT NULL,
    purchase TEXT NOT NULL,
    CONSTRAINT pk_user_purchases PRIMARY KEY (user_id, purchase)
);

CREATE INDEX ix_user_purchases_purchase ON user_purchases (purchase);

CREATE TABLE user_records (
    application_id BIGINT NOT NULL,
    user_id TEXT NOT NULL,
    login TEXT NOT NULL,
    private_data TEXT NOT NULL,
    public_data TEXT NOT NULL,
    secret_data TEXT NOT NULL,
    version BIGINT NOT NULL,
    CONSTRAINT pk_user_records PRIMARY KEY (application_id, user_id)
);

CREATE INDEX ix_user_records_user_id ON user_records (user_id);

CREATE TABLE user_tags (
    user_id TEXT NOT NULL,
    tag TEXT NOT NULL,
    CONSTRAINT pk_user_tags PRIMARY KEY (user_id, tag)
);

CREATE INDEX ix_user_tags_tag_user_id ON user_tags (tag, user_id);

CREATE TABLE users (
    user_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    login TEXT,
    login_key TEXT,
    nick TEXT NOT NULL,
    password_hash TEXT,
    lang TEXT NOT NULL,
    country TEXT NOT NULL,
    level TEXT NOT NULL,
    reg_time BIGINT NOT NULL,
    email_verified BOOLEAN NOT NULL,
    phone_verified BOOLEAN NOT NULL,
    email_code BOOLEAN NOT NULL,
    blocked BOOLEAN NOT NULL,
    rev BIGINT NOT NULL,
    meta TEXT NOT NULL,
    version BIGINT NOT NULL,
    CONSTRAINT pk_users PRIMARY KEY (user_id),
    CONSTRAINT uq_users_login_key UNIQUE (login_key)
);

CREATE INDEX ix_users_blocked ON users (reg_time, user_id) WHERE blocked IS 1;

CREATE INDEX ix_users_id_begins ON users (user_id);

CREATE INDEX ix_users_login_begins ON users (login_key);

CREATE INDEX ix_users_nick_begins ON users (lower(nick));

CREATE INDEX ix_users_reg_time ON users (reg_time, user_id);

CREATE INDEX ix_users_service ON users (reg_time, user_id) WHERE kind = 'service';

CREATE TABLE webhook_deliveries (
    delivery_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    event TEXT NOT NULL,
    place BIGINT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    tries BIGINT NOT NULL,
    next_try_at BIGINT NOT NULL,
    held_until BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    status BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    trouble TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    done_at BIGINT NOT NULL,
    CONSTRAINT pk_webhook_deliveries PRIMARY KEY (delivery_id)
);

CREATE INDEX ix_webhook_deliveries_created_at ON webhook_deliveries (created_at);

CREATE INDEX ix_webhook_deliveries_webhook_id_created_at ON webhook_deliveries (webhook_id, created_at);

CREATE INDEX ix_webhook_deliveries_webhook_id_state_next_try_at ON webhook_deliveries (webhook_id, state, next_try_at);

CREATE TABLE webhooks (
    webhook_id TEXT NOT NULL,
    slot INTEGER NOT NULL,
    url TEXT NOT NULL,
    description TEXT NOT NULL,
    topics TEXT NOT NULL,
    enabled BOOLEAN NOT NULL,
    place BIGINT NOT NULL,
    given_up BIGINT NOT NULL,
    stopped_at BIGINT NOT NULL,
    sealed_secret BLOB NOT NULL,
    sealed_old_secret BLOB,
    old_secret_ends_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    CONSTRAINT pk_webhooks PRIMARY KEY (webhook_id),
    CONSTRAINT uq_webhooks_slot UNIQUE (slot)
);

CREATE TABLE roles (
    application_id BIGINT NOT NULL,
    role_key TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    protected BOOLEAN NOT NULL,
    is_default BOOLEAN NOT NULL,
    condition TEXT,
    condition_mode TEXT NOT NULL,
    user_limit BIGINT NOT NULL,
    params TEXT NOT NULL,
    meta TEXT NOT NULL,
    version BIGINT NOT NULL,
    CONSTRAINT pk_roles PRIMARY KEY (application_id, role_key),
    CONSTRAINT fk_roles_application_id FOREIGN KEY(application_id) REFERENCES applications (application_id)
);
