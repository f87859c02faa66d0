// Arctic implements OAuth and reads the id_token that it gets from the token endpoint, without its signature.
import { CodeChallengeMethod, decodeIdToken, generateCodeVerifier, generateState, OAuth2Client } from "arctic";
import { CALLBACK, CLIENT_ID, CLIENT_SECRET, ISSUER, SCOPE, serve } from "../relying_party.mjs";

const metadata = await (await fetch(`${ISSUER}/.well-known/openid-configuration`)).json();
const client = new OAuth2Client(CLIENT_ID, CLIENT_SECRET, CALLBACK);
const scopes = SCOPE.split(" ");
let state, verifier, tokens;

serve({
  "/login": () => {
    [state, verifier] = [generateState(), generateCodeVerifier()];
    return client.createAuthorizationURLWithPKCE(
      metadata.authorization_endpoint,
      state,
      CodeChallengeMethod.S256,
      verifier,
      scopes,
    );
  },
  "/callback": async ({ searchParams }) => {
    if (searchParams.get("state") !== state) throw new Error("another state");
    tokens = await client.validateAuthorizationCode(metadata.token_endpoint, searchParams.get("code"), verifier);
    return signedIn();
  },
  "/userinfo": async () => {
    const headers = { authorization: `Bearer ${tokens.accessToken()}` };
    return (await fetch(metadata.userinfo_endpoint, { headers })).json();
  },
  "/refresh": async () => {
    tokens = await client.refreshAccessToken(metadata.token_endpoint, tokens.refreshToken(), []);
    return signedIn();
  },
});

function signedIn() {
  return { sub: decodeIdToken(tokens.idToken()).sub, id_token: tokens.idToken() };
}
