// An MCP server with one tool, protected by Gatehouse: its access tokens are verified offline.

import express from "express";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { InvalidTokenError } from "@modelcontextprotocol/sdk/server/auth/errors.js";
import { requireBearerAuth } from "@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js";
import { getOAuthProtectedResourceMetadataUrl, mcpAuthMetadataRouter } from "@modelcontextprotocol/sdk/server/auth/router.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

const { ISSUER, RESOURCE, PORT } = process.env;
const SCOPE = "notes.read";
const resource = new URL(RESOURCE);
const metadata = await (await fetch(`${ISSUER}/.well-known/oauth-authorization-server`)).json();
const keys = createRemoteJWKSet(new URL(metadata.jwks_uri));

const verifier = {
  async verifyAccessToken(token) {
    try {
      const { payload } = await jwtVerify(token, keys, {
        algorithms: ["RS256"], audience: RESOURCE, issuer: ISSUER, typ: "at+jwt", // RFC 9068: no other token of the issuer
      });
      return {
        token, clientId: payload.client_id, scopes: payload.scope.split(" "), expiresAt: payload.exp, resource,
        extra: { sub: payload.sub },
      };
    } catch (error) {
      throw new InvalidTokenError(error.message);
    }
  },
};

function notes() {
  const server = new McpServer({ name: "notes", version: "1.0.0" });
  server.registerTool("whoami", { description: "Return the user ID of the person who calls." }, (extra) => ({
    content: [{ type: "text", text: extra.authInfo.extra.sub }],
  }));
  return server;
}

const app = express();
app.use(mcpAuthMetadataRouter({ oauthMetadata: metadata, resourceServerUrl: resource, scopesSupported: [SCOPE] }));
const protect = requireBearerAuth({
  verifier, requiredScopes: [SCOPE], resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resource),
  expectedResource: resource,
});
app.post("/mcp", protect, express.json(), async (request, response) => {
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on("close", () => transport.close());
  await notes().connect(transport);
  await transport.handleRequest(request, response, request.body);
});
app.all("/mcp", (_, response) => response.status(405).end());
app.listen(Number(PORT), "127.0.0.1", () => console.log("ready"));
