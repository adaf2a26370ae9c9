// The conversation: questions go out, events come in, and the answer takes its place.

import { Problem, Run, get } from "./api.js";
import { card } from "./card.js";
import { button, el, money, plural, say, visible } from "./dom.js";
import { askAbove, problem, progress, refusedPrice, stopped, timeLeft } from "./editor.js";
import { history, remember } from "./history.js";
import { highlighted } from "./suql.js";
import { recognizing } from "./words.js";

const at = (id) => document.getElementById(id);
const log = at("log");
const question = at("question");
let conversation = null;
let under = null;
const complete = recognizing(question, at("underlines"), at("words"));

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = question.value.trim();
  if (!text || under) return;
  write("");
  ask(text);
});
question.addEventListener("keydown", (event) => {
  if (complete(event)) return;
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    at("ask").requestSubmit();
  } else if ((event.key === "ArrowUp" || event.key === "ArrowDown") && (question.value === "" || question.value === recalled.text)) {
    recall(event);
  }
});
document.addEventListener("keydown", (event) => event.key === "Escape" && !at("dialog").open && stop());
at("stop").addEventListener("click", stop);
for (const each of document.querySelectorAll(".sample")) each.addEventListener("click", () => under || ask(each.textContent));
at("fresh").addEventListener("click", begin);
history(at("history"), open);

// Questions of this conversation, the last first: ArrowUp writes them into the field again.
const recalled = { back: 0, text: null };
function recall(event) {
  const asked = [...log.querySelectorAll(".turn > h2")].map((each) => each.textContent);
  const back = (question.value === "" ? 0 : recalled.back) + (event.key === "ArrowUp" ? 1 : -1);
  if (back < 0 || back > asked.length) return;
  event.preventDefault();
  recalled.back = back;
  write((recalled.text = back ? asked.at(-back) : ""));
}

function write(text) {
  question.value = text;
  question.dispatchEvent(new Event("input"));
}

// The address names the conversation, so that a reload shows it again.
function settle(id) {
  conversation = id;
  window.history.replaceState(null, "", id ? `#${id}` : location.pathname);
}

function stop() {
  under?.stop();
  if (under?.stopping) log.lastElementChild.querySelector("[data-line=progress]")?.replaceChildren("Stopping …");
}

function begin() {
  under?.drop();
  if (location.hash) window.history.pushState(null, "", location.pathname);
  settle(null);
  log.replaceChildren();
  at("start").hidden = false;
  question.focus();
  say("A new conversation.");
}

async function open(id) {
  under?.drop();
  try {
    const found = await get(`conversations/${id}`);
    settle(id);
    at("start").hidden = true;
    const shown = found.turns.map((turn) => el("section", { class: "turn" }, el("h2", { tabindex: -1 }, heading(turn)), card(turn, choose)));
    log.replaceChildren(...shown);
    for (const each of found.edits) log.querySelector(`[data-answer="${each.of.id}"]`)?.show(each, each.of.title);
    shown.at(-1).querySelector("h2").focus();
    shown.at(-1).scrollIntoView();
    say(`${plural(found.turns.length, "turn")} shown.`);
  } catch (error) {
    settle(null);
    log.replaceChildren(problem(error));
  }
}

async function ask(text, options = askAbove === null ? {} : { max_calls: askAbove }) {
  const place = el("div", { class: "card" }, el("p", { class: "working", "data-line": "progress" }, "Reading the question …"));
  const turn = el("section", { class: "turn" }, el("h2", { tabindex: -1 }, visible(text)), place);
  const seen = { id: null, estimate: null };
  log.append(turn);
  at("start").hidden = true;
  working(true);
  turn.scrollIntoView();
  say("Asked.");
  under = new Run();
  try {
    const body = { question: text, options, ...(conversation && { conversation }) };
    finished(turn, await under.stream("ask", body, (name, data) => told(place, seen, name, data)));
  } catch (error) {
    await failed(turn, place, text, seen, error);
  }
  under = null;
  working(false);
  question.focus({ preventScroll: true });
}

const choose = (text) => under || ask(text);

function working(on) {
  at("stop").hidden = !on;
  at("send").hidden = on;
}

// The number of a reading stands for the question that it is a reading of.
const heading = ({ asked, question }) => visible(asked && /^\d$/.test(question) ? asked : question);

function finished(turn, record) {
  settle(record.conversation);
  if (conversation) remember(conversation, record.question);
  turn.firstElementChild.textContent = heading(record);
  turn.lastElementChild.replaceWith(card(record, choose));
  turn.scrollIntoView();
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
  else if (name === "query") {
    line("progress", "Running the query …").className = "working";
    line("query", el("code", {}, ...highlighted(data.suql)));
  }
  else if (name === "estimate") {
    seen.estimate = data.predicted;
    line("estimate", `About ${plural(data.predicted.calls, "call")}, ${money(data.predicted.money)}.`).className = "hint";
  } else if (name === "progress" && !under.stopping) {
    line("progress", ...progressBar(data, seen)).className = "working";
  } else if (name === "rows") {
    line("rows", `${plural(data.rows_total, "row")} found.`).className = "hint";
  } else if (name === "text") {
    const found = line("text", ...(place.querySelector("[data-line=text]")?.childNodes ?? []), visible(data.text));
    found.className = "answer";
  }
}

// Rows read of how many, what was spent, and about how long the rest takes.
function progressBar(data, seen) {
  const spent = data.tokens ? ` ${plural(data.requests, "request")}, ${plural(data.tokens, "token")}, ${money(data.money)};` : "";
  const nodes = [progress(data), spent];
  if (!data.total || data.done === undefined) return nodes;
  seen.left ??= timeLeft();
  return [...nodes, seen.left(data, performance.now()), el("progress", { value: data.done, max: data.total, "aria-label": "Texts read" })];
}

async function failed(turn, place, text, seen, error) {
  const again = (words, options) => button(words, () => (turn.remove(), ask(text, options)), { class: "main" });
  if (under.ended(error)) {
    place.replaceChildren(stopped(error), place.querySelector("[data-line=query]") ?? "", el("p", { class: "buttons" }, again("Ask again")));
    return;
  }
  if (error instanceof Problem) {
    if (error.body.conversation) settle(error.body.conversation);
    const calls = seen.estimate?.calls ?? 0;
    if (refusedPrice(error, calls)) {
      const price = `About ${plural(calls, "call")}, ${money(seen.estimate.money)}.`;
      place.replaceChildren(el("p", { class: "note" }, price), el("p", { class: "buttons" }, again("Run it", {})));
      say(`${price} It has not been run.`);
      return;
    }
    const gone = error.body.status === 404 && conversation !== null;
    if (gone) settle(null);
    const sure = error.body.partial;
    place.replaceChildren(problem(error), el("p", { class: "buttons" }, again(gone ? "Ask in a new conversation" : "Ask again")));
    if (sure) place.append(el("p", {}, "Rows that are certain:"), card(sure));
    return;
  }
  // The answer may have been finished while nobody listened.
  const kept = seen.id && (await get(`answers/${seen.id}`).catch(() => null));
  if (kept) finished(turn, kept);
  else place.replaceChildren(problem(error), el("p", { class: "buttons" }, again("Ask again")));
}

addEventListener("popstate", () => {
  const id = location.hash.slice(1);
  if (id && !at(id)) open(id);
  else if (!id) begin();
});
question.focus({ preventScroll: true });
if (location.hash.length > 1) open(location.hash.slice(1));
