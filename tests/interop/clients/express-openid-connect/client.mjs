// The middleware of Auth0 for Express: it keeps the tokens in an encrypted cookie.
import express from "express";
import eoc from "express-openid-connect";
import { CLIENT_ID, CLIENT_SECRET, HOME, ISSUER, PORT, SCOPE, told } from "../relying_party.mjs";

const app = express();
app.use(
  eoc.auth({
    issuerBaseURL: ISSUER,
    baseURL: HOME,
    clientID: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
    secret: "a secret of the cookies of this test",
    authRequired: false,
    idTokenSigningAlg: "RS256",
    authorizationParams: { response_type: "code", scope: SCOPE },
    routes: { login: false },
  }),
);
app.get("/login", (request, response) => response.oidc.login({ returnTo: "/done" }));
app.get("/done", (request, response) => response.json(signedIn(request)));
app.get("/userinfo", async (request, response) => response.json(await request.oidc.fetchUserInfo()));
app.get("/refresh", async (request, response) => {
  await request.oidc.accessToken.refresh();
  response.json(signedIn(request));
});
app.use((error, request, response, next) => response.status(500).json({ ...told(error), error: error.error }));

function signedIn({ oidc }) {
  return { sub: oidc.idTokenClaims.sub, id_token: oidc.idToken };
}

app.listen(PORT, "127.0.0.1", () => console.log("ready"));
