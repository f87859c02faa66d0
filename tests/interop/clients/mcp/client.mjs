// An MCP client that is known by its client ID metadata document; it signs a person in and calls a tool.

import { createServer } from "node:http";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { SERVER, CLIENT_ID, PORT } = process.env;
const redirect = `http://127.0.0.1:${PORT}/callback`;

let arrive;
const arrived = new Promise((resolve) => { arrive = resolve; });
const listener = createServer((request, response) => {
  arrive(new URL(request.url, redirect).searchParams);
  response.end("done");
});
await new Promise((resolve) => listener.listen(Number(PORT), "127.0.0.1", resolve));

const saved = {};
const provider = {
  clientMetadataUrl: CLIENT_ID,
  redirectUrl: redirect,
  clientMetadata: { client_name: "Notes", redirect_uris: [redirect], token_endpoint_auth_method: "none" },
  clientInformation: () => saved.client,
  saveClientInformation: (client) => { saved.client = client; },
  tokens: () => saved.tokens,
  saveTokens: (tokens) => { saved.tokens = tokens; },
  codeVerifier: () => saved.verifier,
  saveCodeVerifier: (verifier) => { saved.verifier = verifier; },
  redirectToAuthorization: (address) => { console.log(`open ${address}`); },
};

async function connect() {
  const client = new Client({ name: "notes", version: "1.0.0" });
  const transport = new StreamableHTTPClientTransport(new URL(SERVER), { authProvider: provider });
  try {
    await client.connect(transport);
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    const answer = await arrived;
    await transport.finishAuth(answer.get("code"));
    return connect();
  }
  return client;
}

const client = await connect();
const result = await client.callTool({ name: "whoami", arguments: {} });
console.log(`result ${JSON.stringify({ text: result.content[0].text, token: saved.tokens.access_token })}`);
await client.close();
listener.close();
listener.closeAllConnections();
