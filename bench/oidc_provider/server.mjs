// oidc-provider, unmodified, with one client, one person who is signed in without a form, and a storage by argument.
//
//   node server.mjs PORT memory|sqlite:PATH|postgresql://... RS256|ES256 CLIENT_ID CLIENT_SECRET REDIRECT_URI
import { generateKeyPairSync } from "node:crypto";
import Provider from "oidc-provider";
import { memory } from "./memory.mjs";
import { postgres } from "./postgres.mjs";

const [port, storage, alg, clientId, clientSecret, redirectUri] = process.argv.slice(2);
const issuer = `http://localhost:${port}`;

async function adapter() {
  if (storage === "memory") return memory();
  if (!storage.startsWith("sqlite:")) return postgres(storage);
  return (await import("./sqlite.mjs")).sqlite(storage.slice("sqlite:".length)); // older Nodes have no SQLite
}

function newKey() {
  const [type, options] = alg === "RS256" ? ["rsa", { modulusLength: 2048 }] : ["ec", { namedCurve: "P-256" }];
  return { ...generateKeyPairSync(type, options).privateKey.export({ format: "jwk" }), use: "sig", alg, kid: "bench" };
}

const provider = new Provider(issuer, {
  adapter: await adapter(),
  jwks: { keys: [newKey()] },
  clients: [
    {
      client_id: clientId,
      client_secret: clientSecret,
      redirect_uris: [redirectUri],
      grant_types: ["authorization_code", "refresh_token"],
      id_token_signed_response_alg: alg,
    },
  ],
  cookies: { keys: ["a secret of the cookies of this measurement"] },
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["nickname"] },
  conformIdTokenClaims: false, // as Gatehouse: email and nickname are in the id_token too
  findAccount: (context, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: "anna@studio.example", email_verified: true, nickname: "Anna" }),
  }),
  // As Gatehouse for a first-party client: no consent, and every sign-in has a refresh token that rotates.
  async loadExistingGrant(context) {
    const { Grant } = context.oidc.provider;
    const known = context.oidc.session.grantIdFor(clientId);
    if (known) return Grant.find(known);
    const grant = new Grant({ clientId, accountId: context.oidc.session.accountId });
    grant.addOIDCScope("openid email profile offline_access");
    await grant.save();
    return grant;
  },
  issueRefreshToken: () => true,
  rotateRefreshToken: true,
  pkce: { required: () => false },
  features: { devInteractions: { enabled: false }, introspection: { enabled: true } },
  interactions: { url: (context, interaction) => `/interaction/${interaction.uid}` },
});

provider.use(async (context, next) => {
  if (!context.path.startsWith("/interaction/")) return next();
  return provider.interactionFinished(context.req, context.res, { login: { accountId: "1001" } });
});
provider.listen(Number(port), "127.0.0.1", () => console.log(`ready ${issuer}`));
