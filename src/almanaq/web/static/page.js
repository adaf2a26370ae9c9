// The conversation: questions go out, events come in, and the answer takes its place.

import { Problem, get, stream } from "./api.js";
import { card } from "./card.js";
import { button, el, money, plural, say, visible } from "./dom.js";
import { askAbove, problem, progress, refusedPrice } from "./editor.js";
import { history, remember } from "./history.js";
import { schema } from "./schema.js";
import { highlighted } from "./suql.js";

const at = (id) => document.getElementById(id);
const log = at("log");
const question = at("question");
let conversation = null;
let under = null;

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = question.value.trim();
  if (!text || under) return;
  question.value = "";
  ask(text);
});
question.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    at("ask").requestSubmit();
  }
});
document.addEventListener("keydown", (event) => event.key === "Escape" && !at("dialog").open && under?.abort());
at("stop").addEventListener("click", () => under?.abort());
for (const each of document.querySelectorAll(".sample")) each.addEventListener("click", () => under || ask(each.textContent));
at("fresh").addEventListener("click", begin);
schema(at("schema"));
history(at("history"), open);

function begin() {
  under?.abort();
  conversation = null;
  log.replaceChildren();
  at("start").hidden = false;
  question.focus();
  say("A new conversation.");
}

async function open(id) {
  under?.abort();
  try {
    const found = await get(`conversations/${id}`);
    conversation = id;
    at("start").hidden = true;
    log.replaceChildren(...found.turns.map((turn) => el("section", { class: "turn" }, el("h2", { tabindex: -1 }, visible(turn.question)), card(turn))));
    log.lastElementChild.querySelector("h2").focus();
    say(`${plural(found.turns.length, "turn")} shown.`);
  } catch (error) {
    log.append(problem(error));
  }
}

async function ask(text, options = askAbove === null ? {} : { max_calls: askAbove }) {
  const place = el("div", { class: "card" });
  const turn = el("section", { class: "turn" }, el("h2", { tabindex: -1 }, visible(text)), place);
  const seen = { id: null, estimate: null };
  log.append(turn);
  at("start").hidden = true;
  working(true);
  turn.scrollIntoView({ block: "start" });
  say("Asked.");
  under = new AbortController();
  try {
    const body = { question: text, options, ...(conversation && { conversation }) };
    finished(turn, await stream("ask", body, under.signal, (name, data) => told(place, seen, name, data)));
  } catch (error) {
    await failed(turn, place, text, seen, error);
  }
  under = null;
  working(false);
  question.focus();
}

function working(on) {
  at("stop").hidden = !on;
  at("send").hidden = on;
}

function finished(turn, record) {
  conversation = record.conversation;
  if (conversation) remember(conversation, record.question);
  turn.lastElementChild.replaceWith(card(record, (text) => under || ask(text)));
  say(record.rows_total ? `${plural(record.rows_total, "row")}. Answer ready.` : "Answer ready.");
}

// What goes on, as far as it is known: replaced by the answer.
function told(place, seen, name, data) {
  const line = (key, ...nodes) => {
    let found = place.querySelector(`[data-line=${key}]`);
    if (!found) place.append((found = el("p", { "data-line": key })));
    found.replaceChildren(...nodes);
    return found;
  };
  if (name === "start") seen.id = data.id;
  else if (name === "query") line("query", el("code", {}, ...highlighted(data.suql)));
  else if (name === "estimate") {
    seen.estimate = data.predicted;
    line("estimate", `About ${plural(data.predicted.calls, "call")}, ${money(data.predicted.money)}.`).className = "hint";
  } else if (name === "progress") {
    line("progress", progress(data)).className = "working";
  } else if (name === "text") {
    const found = line("text", ...(place.querySelector("[data-line=text]")?.childNodes ?? []), visible(data.text));
    found.className = "answer";
  }
}

async function failed(turn, place, text, seen, error) {
  const again = (words, options) => button(words, () => (turn.remove(), ask(text, options)), { class: "main" });
  if (error.name === "AbortError") {
    place.replaceChildren(el("p", { class: "note" }, "Stopped. "), el("p", { class: "buttons" }, again("Ask again")));
    say("Stopped.");
    return;
  }
  if (error instanceof Problem) {
    if (error.body.conversation) conversation = error.body.conversation;
    const calls = seen.estimate?.calls ?? 0;
    if (refusedPrice(error, calls)) {
      const price = `About ${plural(calls, "call")}, ${money(seen.estimate.money)}.`;
      place.replaceChildren(el("p", { class: "note" }, price), el("p", { class: "buttons" }, again("Run it", {})));
      say(`${price} It has not been run.`);
      return;
    }
    const gone = error.body.status === 404 && conversation !== null;
    if (gone) conversation = null;
    place.replaceChildren(problem(error), el("p", { class: "buttons" }, again(gone ? "Ask in a new conversation" : "Ask again")));
    return;
  }
  // The answer may have been finished while nobody listened.
  const kept = seen.id && (await get(`answers/${seen.id}`).catch(() => null));
  if (kept) finished(turn, kept);
  else place.replaceChildren(problem(error), el("p", { class: "buttons" }, again("Ask again")));
}

question.focus();
