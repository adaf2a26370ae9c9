// The server's API: JSON, and the events of a request that streams. A problem (RFC 9457) is thrown as it came.

export class Problem extends Error {
  constructor(body) {
    super(body.detail ?? "It failed.");
    this.body = body;
  }
}

export class Lost extends Error {}

const BASE = "/api/v1/";
export const MOST_ROWS = 100_000; // of a query's result
const PATIENCE = 3000; // from stopping to giving up, in milliseconds

async function send(path, given = {}) {
  try {
    return await fetch(BASE + path, given);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Lost("The connection to the server was lost.");
  }
}

async function checked(response) {
  if (response.ok) return response;
  let body = { detail: `The server answered ${response.status}.`, status: response.status };
  try {
    body = await response.json();
  } catch {
    // What is no JSON says no more than the status.
  }
  throw new Problem(body);
}

export async function get(path) {
  return (await checked(await send(path))).json();
}

export async function call(method, path, body) {
  const given = { method, headers: { "content-type": "application/json" } };
  if (body !== undefined) given.body = JSON.stringify(body);
  const response = await checked(await send(path, given));
  return response.status === 204 ? null : response.json();
}

// Gives each event to `told`, and the response at the end.
export async function stream(path, body, signal, told) {
  const headers = { "content-type": "application/json", accept: "text/event-stream" };
  const response = await checked(await send(path, { method: "POST", headers, body: JSON.stringify(body), signal }));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let last = null;
  try {
    while (true) {
      const { value, done } = await reader.read();
      if (done && last) return last;
      if (done) throw new Lost("The connection to the server was lost.");
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const name = part.match(/^event: (.*)$/m)?.[1];
        const data = part.match(/^data: (.*)$/m)?.[1];
        if (name === undefined) continue;
        const read = JSON.parse(data);
        if (name === "error") throw new Problem(read);
        if (name === "response") last = read;
        else told(name, read);
      }
    }
  } catch (error) {
    if (error.name === "AbortError" || error instanceof Problem || error instanceof Lost) throw error;
    throw new Lost("The connection to the server was lost.");
  }
}

// A question or a query under way. Stopped, it ends with the rows that are sure; a second stop, or a server that gives
// none in time, drops it.
export class Run {
  #dropping = new AbortController();
  #id = null;
  stopping = false;

  stream(path, body, told) {
    return stream(path, body, this.#dropping.signal, (name, data) => {
      if (name === "start") this.#id = data.id;
      told(name, data);
    });
  }

  stop() {
    if (this.stopping || this.#id === null) return this.drop();
    this.stopping = true;
    call("POST", `answers/${this.#id}/stop`).catch(() => this.drop());
    setTimeout(() => this.drop(), PATIENCE);
  }

  drop() {
    this.#dropping.abort();
  }

  // Whether an error only says that there are no sure rows.
  ended(error) {
    return error.name === "AbortError" || (this.stopping && error.body?.status === 409);
  }
}
