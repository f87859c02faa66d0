import * as oidc from "openid-client";
import { CALLBACK, CLIENT_ID, CLIENT_SECRET, ISSUER, SCOPE, serve } from "../relying_party.mjs";

const config = await oidc.discovery(new URL(ISSUER), CLIENT_ID, CLIENT_SECRET, undefined, {
  execute: [oidc.allowInsecureRequests, oidc.enableNonRepudiationChecks], // http, and the signature is verified too
});
let checks, tokens;

serve({
  async "/login"() {
    checks = {
      pkceCodeVerifier: oidc.randomPKCECodeVerifier(),
      expectedNonce: oidc.randomNonce(),
      expectedState: oidc.randomState(),
    };
    return oidc.buildAuthorizationUrl(config, {
      redirect_uri: CALLBACK,
      scope: SCOPE,
      nonce: checks.expectedNonce,
      state: checks.expectedState,
      code_challenge: await oidc.calculatePKCECodeChallenge(checks.pkceCodeVerifier),
      code_challenge_method: "S256",
    });
  },
  async "/callback"(address) {
    tokens = await oidc.authorizationCodeGrant(config, address, checks);
    return { sub: tokens.claims().sub, id_token: tokens.id_token };
  },
  async "/userinfo"() {
    return oidc.fetchUserInfo(config, tokens.access_token, tokens.claims().sub);
  },
  async "/refresh"() {
    tokens = await oidc.refreshTokenGrant(config, tokens.refresh_token);
    return { sub: tokens.claims().sub, id_token: tokens.id_token };
  },
});
