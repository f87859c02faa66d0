// Shared code of the Node clients: a web server for one person, configured as tests/interop/programs.py says.
import { createServer } from "node:http";

export const { ISSUER, CLIENT_ID, CLIENT_SECRET, PORT } = process.env;
export const HOME = `http://127.0.0.1:${PORT}`;
export const CALLBACK = `${HOME}/callback`;
export const SCOPE = "openid email profile offline_access";

// Handlers by path: a returned URL becomes a redirect, anything else the JSON response; an error becomes status 500.
export function serve(handlers) {
  const server = createServer(async (request, response) => {
    const address = new URL(request.url, HOME);
    try {
      const answer = await handlers[address.pathname](address);
      if (answer instanceof URL) response.writeHead(302, { location: answer.href }).end();
      else response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
    } catch (error) {
      response.writeHead(500, { "content-type": "application/json" }).end(JSON.stringify(told(error)));
    }
  });
  server.listen(PORT, "127.0.0.1", () => console.log("ready"));
}

export function told(error) {
  return { failed: `${error}`, code: error.code, because: error.cause };
}
