// Auth.js does not refresh: per its guide the application calls the token endpoint, as /refresh does here.
import { ExpressAuth, getSession } from "@auth/express";
import express from "express";
import { CLIENT_ID, CLIENT_SECRET, HOME, ISSUER, PORT, SCOPE } from "../relying_party.mjs";

let account, profile, trouble;
const config = {
  secret: "a secret of the cookies of this test",
  trustHost: true,
  providers: [
    {
      id: "gatehouse",
      name: "Gatehouse",
      type: "oidc",
      issuer: ISSUER,
      clientId: CLIENT_ID,
      clientSecret: CLIENT_SECRET,
      checks: ["pkce", "state", "nonce"],
      idToken: false, // email and name come from userinfo
      authorization: { params: { scope: SCOPE } },
    },
  ],
  callbacks: {
    signIn(given) {
      ({ account, profile } = given); // both are verified
      return true;
    },
  },
  pages: { error: "/failed" },
  logger: { error: (error) => (trouble = error), warn() {}, debug() {} },
};

const app = express();
app.use(/^\/auth\/(.*)/, ExpressAuth(config)); // it takes its path from the group

// Auth.js begins a sign-in with a form that contains its CSRF token, submitted here for the person.
app.get("/login", async (request, response) => {
  const begun = await fetch(`${HOME}/auth/csrf`);
  const { csrfToken } = await begun.json();
  const cookies = begun.headers.getSetCookie().map((one) => one.split(";")[0]);
  const sent = await fetch(`${HOME}/auth/signin/gatehouse`, {
    method: "POST",
    redirect: "manual",
    headers: { cookie: cookies.join("; ") },
    body: new URLSearchParams({ csrfToken, callbackUrl: `${HOME}/done` }),
  });
  response.setHeader("set-cookie", [...begun.headers.getSetCookie(), ...sent.headers.getSetCookie()]);
  response.redirect(sent.headers.get("location"));
});

app.get("/done", async (request, response) => {
  const session = await getSession(request, config);
  response.json({ sub: session && profile.sub, id_token: account.id_token, email: session.user.email });
});

app.get("/failed", (request, response) => response.status(500).json({ failed: `${trouble} ${trouble.cause?.err}` }));
app.get("/userinfo", async (request, response) => response.json(await asked("userinfo_endpoint")));
app.get("/refresh", async (request, response) => {
  const basic = Buffer.from(`${CLIENT_ID}:${CLIENT_SECRET}`).toString("base64");
  const body = new URLSearchParams({ grant_type: "refresh_token", refresh_token: account.refresh_token });
  Object.assign(account, await asked("token_endpoint", { method: "POST", headers: { authorization: `Basic ${basic}` }, body }));
  response.json({ sub: profile.sub, id_token: account.id_token });
});

async function asked(endpoint, request = { headers: { authorization: `Bearer ${account.access_token}` } }) {
  const metadata = await (await fetch(`${ISSUER}/.well-known/openid-configuration`)).json();
  const answer = await fetch(metadata[endpoint], request);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

app.listen(PORT, "127.0.0.1", () => console.log("ready"));
