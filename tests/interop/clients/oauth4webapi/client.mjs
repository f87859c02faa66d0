import * as oauth from "oauth4webapi";
import { CALLBACK, CLIENT_ID, CLIENT_SECRET, ISSUER, SCOPE, serve } from "../relying_party.mjs";

const http = { [oauth.allowInsecureRequests]: true };
const issuer = new URL(ISSUER);
const server = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, http));
const client = { client_id: CLIENT_ID };
const authentication = oauth.ClientSecretPost(CLIENT_SECRET); // openid-client has the header form
const keys = {}; // the library's own cache of the key set
let verifier, nonce, state, tokens, subject;

serve({
  async "/login"() {
    [verifier, nonce, state] = [oauth.generateRandomCodeVerifier(), oauth.generateRandomNonce(), oauth.generateRandomState()];
    const address = new URL(server.authorization_endpoint);
    address.search = new URLSearchParams({
      client_id: CLIENT_ID,
      response_type: "code",
      redirect_uri: CALLBACK,
      scope: SCOPE,
      nonce,
      state,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    });
    return address;
  },
  async "/callback"(address) {
    const parameters = oauth.validateAuthResponse(server, client, address, state);
    const answer = await oauth.authorizationCodeGrantRequest(
      server, client, authentication, parameters, CALLBACK, verifier, http,
    );
    tokens = await oauth.processAuthorizationCodeResponse(server, client, answer, {
      expectedNonce: nonce,
      requireIdToken: true,
    });
    await oauth.validateApplicationLevelSignature(server, answer, { ...http, [oauth.jwksCache]: keys });
    subject = oauth.getValidatedIdTokenClaims(tokens).sub;
    return { sub: subject, id_token: tokens.id_token };
  },
  async "/userinfo"() {
    const answer = await oauth.userInfoRequest(server, client, tokens.access_token, http);
    return oauth.processUserInfoResponse(server, client, subject, answer);
  },
  async "/refresh"() {
    const answer = await oauth.refreshTokenGrantRequest(server, client, authentication, tokens.refresh_token, http);
    tokens = await oauth.processRefreshTokenResponse(server, client, answer);
    await oauth.validateApplicationLevelSignature(server, answer, { ...http, [oauth.jwksCache]: keys });
    return { sub: oauth.getValidatedIdTokenClaims(tokens).sub, id_token: tokens.id_token };
  },
});
