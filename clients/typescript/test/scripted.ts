/** A server that answers from a script. */
import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";

export async function scripted(listener: RequestListener, use: (url: string) => Promise<void>): Promise<void> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  assert.ok(address && typeof address === "object");
  try {
    await use(`http://127.0.0.1:${address.port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

export const event = (id: number, name: string, data: object) => `id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
