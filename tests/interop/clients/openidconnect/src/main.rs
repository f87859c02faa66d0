// A web server for one person, configured as tests/interop/programs.py says.
use openidconnect::core::*;
use openidconnect::{reqwest::blocking as http, url::Url, *};
use serde_json::{json, Value};
use std::{collections::HashMap, env, error::Error};
use tiny_http::{Header, Request, Response, Server};

type Outcome = Result<Answer, Box<dyn Error>>;
type FoundClient = CoreClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointMaybeSet, EndpointMaybeSet>;

enum Answer {
    Redirect(Url),
    Json(Value),
}

struct Checks {
    state: CsrfToken,
    nonce: Nonce,
    verifier: PkceCodeVerifier,
}

struct RelyingParty {
    home: String,
    http: http::Client,
    checks: Option<Checks>,
    nonce: Option<Nonce>,
    tokens: Option<CoreTokenResponse>,
}

fn setting(name: &str) -> String {
    env::var(name).expect(name)
}

impl RelyingParty {
    // The library reads the keys here and never again, so each request starts with the discovery.
    fn discover(&self) -> Result<(FoundClient, Option<EndSessionUrl>), Box<dyn Error>> {
        let metadata = ProviderMetadataWithLogout::discover(&IssuerUrl::new(setting("ISSUER"))?, &self.http)?;
        let end_session = metadata.additional_metadata().end_session_endpoint.clone();
        let (id, secret) = (ClientId::new(setting("CLIENT_ID")), ClientSecret::new(setting("CLIENT_SECRET")));
        let callback = RedirectUrl::new(format!("{}/callback", self.home))?;
        Ok((CoreClient::from_provider_metadata(metadata, id, Some(secret)).set_redirect_uri(callback), end_session))
    }

    fn login(&mut self) -> Outcome {
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let flow = AuthenticationFlow::<CoreResponseType>::AuthorizationCode;
        let (client, _) = self.discover()?;
        let (url, state, nonce) = client
            .authorize_url(flow, CsrfToken::new_random, Nonce::new_random)
            .add_scopes(["email", "profile", "offline_access"].map(|scope| Scope::new(scope.into())))
            .set_pkce_challenge(challenge)
            .url();
        self.checks = Some(Checks { state, nonce, verifier });
        Ok(Answer::Redirect(url))
    }

    fn callback(&mut self, query: HashMap<String, String>) -> Outcome {
        let checks = self.checks.take().ok_or("no sign-in was started")?;
        if query.get("state") != Some(checks.state.secret()) {
            return Err("another state".into());
        }
        let code = AuthorizationCode::new(query.get("code").ok_or(format!("no code: {query:?}"))?.clone());
        let (client, _) = self.discover()?;
        let tokens = client.exchange_code(code)?.set_pkce_verifier(checks.verifier).request(&self.http);
        self.nonce = Some(checks.nonce);
        self.accept(client, tokens.map_err(message_of)?)
    }

    fn refresh(&mut self) -> Outcome {
        let token = self.tokens()?.refresh_token().ok_or("no refresh token")?.clone();
        let (client, _) = self.discover()?;
        let tokens = client.exchange_refresh_token(&token)?.request(&self.http);
        self.accept(client, tokens.map_err(message_of)?)
    }

    fn accept(&mut self, client: FoundClient, tokens: CoreTokenResponse) -> Outcome {
        let verifier = client.id_token_verifier();
        let id_token = tokens.id_token().ok_or("no id_token")?;
        let claims = id_token.claims(&verifier, self.nonce.as_ref().ok_or("no nonce")?)?;
        let expected = claims.access_token_hash().ok_or("no at_hash")?;
        let key = id_token.signing_key(&verifier)?;
        if AccessTokenHash::from_token(tokens.access_token(), id_token.signing_alg()?, key)? != *expected {
            return Err("another at_hash".into());
        }
        let answer = json!({"sub": claims.subject().as_str(), "id_token": id_token.to_string()});
        self.tokens = Some(tokens);
        Ok(Answer::Json(answer))
    }

    fn userinfo(&self) -> Outcome {
        let (client, _) = self.discover()?;
        let claims: CoreUserInfoClaims = client.user_info(self.tokens()?.access_token().clone(), None)?.request(&self.http)?;
        Ok(Answer::Json(serde_json::to_value(claims)?))
    }

    fn logout(&mut self) -> Outcome {
        let (_, end_session) = self.discover()?;
        let after = PostLogoutRedirectUrl::new(format!("{}/logged-out", self.home))?;
        let url = LogoutRequest::from(end_session.ok_or("no end_session_endpoint")?)
            .set_id_token_hint(self.tokens()?.id_token().ok_or("no id_token")?)
            .set_post_logout_redirect_uri(after)
            .http_get_url();
        self.tokens = None;
        Ok(Answer::Redirect(url))
    }

    fn tokens(&self) -> Result<&CoreTokenResponse, Box<dyn Error>> {
        self.tokens.as_ref().ok_or("not signed in".into())
    }

    fn answer(&mut self, request: &Request) -> Outcome {
        let url = Url::parse(&format!("{}{}", self.home, request.url()))?;
        match url.path() {
            "/login" => self.login(),
            "/callback" => self.callback(url.query_pairs().into_owned().collect()),
            "/userinfo" => self.userinfo(),
            "/refresh" => self.refresh(),
            "/logout" => self.logout(),
            "/logged-out" => Ok(Answer::Json(json!({"signed_in": self.tokens.is_some()}))),
            path => Err(format!("no such page: {path}").into()),
        }
    }
}

// The message of the server is in the details of the error, not in its text.
fn message_of<E: std::fmt::Debug>(error: E) -> String {
    format!("{error:?}")
}

fn main() -> Result<(), Box<dyn Error>> {
    let address = format!("127.0.0.1:{}", setting("PORT"));
    let http = http::ClientBuilder::new().redirect(reqwest::redirect::Policy::none()).build()?;
    let home = format!("http://{address}");
    let mut party = RelyingParty { home, http, checks: None, nonce: None, tokens: None };
    let server = Server::http(&address).map_err(|error| error.to_string())?;
    println!("ready");
    for request in server.incoming_requests() {
        let (status, name, value, body) = match party.answer(&request) {
            Ok(Answer::Redirect(url)) => (302, "Location", url.to_string(), String::new()),
            Ok(Answer::Json(json)) => (200, "Content-Type", "application/json".into(), json.to_string()),
            Err(error) => (500, "Content-Type", "application/json".into(), json!({"failed": error.to_string()}).to_string()),
        };
        let header = Header::from_bytes(name, value).expect("a header");
        request.respond(Response::from_string(body).with_status_code(status).with_header(header))?;
    }
    Ok(())
}
