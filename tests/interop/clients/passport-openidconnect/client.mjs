// The strategy checks every claim of the id_token, but by design not its signature (it came straight from the server).
import express from "express";
import session from "express-session";
import passport from "passport";
import OpenIDConnectStrategy from "passport-openidconnect";
import { CALLBACK, CLIENT_ID, CLIENT_SECRET, ISSUER, PORT, SCOPE, told } from "../relying_party.mjs";

const metadata = await (await fetch(`${ISSUER}/.well-known/openid-configuration`)).json();
const strategy = new OpenIDConnectStrategy(
  {
    issuer: ISSUER,
    authorizationURL: metadata.authorization_endpoint,
    tokenURL: metadata.token_endpoint,
    userInfoURL: metadata.userinfo_endpoint,
    clientID: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
    callbackURL: CALLBACK,
    scope: SCOPE.split(" ").slice(1), // it adds openid itself
    nonce: true,
  },
  (issuer, userinfo, profile, context, idToken, accessToken, refreshToken, answer, done) =>
    done(null, { sub: profile.id, userinfo: userinfo._json, id_token: idToken, refresh_token: refreshToken }),
);
passport.use(strategy);
passport.serializeUser((user, done) => done(null, user));
passport.deserializeUser((user, done) => done(null, user));

const app = express();
app.use(session({ secret: "a secret of the cookies of this test", resave: false, saveUninitialized: false }));
app.use(passport.session());
app.get("/login", passport.authenticate("openidconnect"));
app.get("/callback", passport.authenticate("openidconnect"), (request, response) => response.json(request.user));
app.get("/userinfo", (request, response) => response.json(request.user.userinfo));
app.get("/refresh", (request, response, next) => {
  const given = { grant_type: "refresh_token" };
  // `_oauth2` is how Passport's own refresh add-on does it.
  strategy._oauth2.getOAuthAccessToken(request.user.refresh_token, given, (error, access, refresh, answer) => {
    if (error) return next(new Error(error.data));
    request.session.passport.user.refresh_token = refresh;
    return response.json({ sub: request.user.sub, id_token: answer.id_token });
  });
});
app.use((error, request, response, next) => response.status(500).json(told(error)));
app.listen(PORT, "127.0.0.1", () => console.log("ready"));
