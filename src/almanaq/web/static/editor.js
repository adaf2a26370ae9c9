// A query: edit with completions, see what it will take while typing, run.

import { MOST_ROWS, Run, stream } from "./api.js";
import { completing } from "./complete.js";
import { button, el, money, plural, say, visible } from "./dom.js";
import { highlighted } from "./suql.js";

// Calls above which nothing is run before somebody has said so; null: it never matters.
export const askAbove = document.body.dataset.askAbove === "" ? null : Number(document.body.dataset.askAbove);

// Whether a refusal only means that the price has to be agreed to.
export const refusedPrice = (error, calls) =>
  error.body?.type?.endsWith(":BudgetExceeded") && askAbove !== null && calls > askAbove;

const PAUSE = 500;
const [KNOWN_SECONDS, KNOWN_ROWS] = [4, 10]; // from which on a pace is known

// How far the reading of texts is, and what the query takes in all, by the replies so far.
export function progress(data) {
  const of = data.total ? ` of ${data.total.toLocaleString("en")}` : "";
  const found = data.passed === undefined ? "" : `, ${data.passed} found`;
  const done = data.done === undefined ? "" : `: ${data.done.toLocaleString("en")}${of}${found}`;
  return `${data.message}${done}${data.forecast ? `; in all ${forecast(data.forecast)}` : ""} …`;
}

const forecast = (found) =>
  `about ${plural(found.texts, "text")} in ${plural(found.requests, "request")}, ${plural(found.tokens, "token")}, ${money(found.money)}`;

// Gives what to say of the time left, for each state and its moment in milliseconds: nothing before the pace is known,
// and no longer time than was said before unless it takes half as long again.
export function timeLeft() {
  let began = null;
  let said = Infinity;
  return ({ done, total }, now) => {
    began ??= { now, done };
    const [seconds, rows] = [(now - began.now) / 1000, done - began.done];
    if (seconds < KNOWN_SECONDS || rows < KNOWN_ROWS) return "";
    const left = ((total - done) * seconds) / rows;
    if (left < said || left > 1.5 * said) said = left;
    return ` about ${said < 55 ? `${Math.max(5, 5 * Math.round(said / 5))} s` : `${Math.round(said / 60)} min`} left`;
  };
}

// `ran` is given the record of a run; `given` goes to the server with the query, where it is another than `suql`.
export function editor(suql, ran, given = {}) {
  const area = el("textarea", { spellcheck: "false", "aria-label": "SUQL query", maxlength: 100000 });
  area.value = suql;
  const picture = el("pre", { "aria-hidden": "true" });
  const live = el("div", { class: "live hint" });
  const told = el("div", { class: "told" });
  let fault = null;
  let under = null;
  const draw = () => picture.replaceChildren(...highlighted(area.value, fault), "\n");
  let typing = null;
  area.addEventListener("input", () => {
    fault = null;
    run.disabled = false;
    told.querySelector(".problem")?.remove();
    draw();
    clearTimeout(typing);
    typing = setTimeout(estimate, PAUSE);
  });
  // What the query would take, or where it is wrong, without taking the focus.
  const estimate = async () => {
    const suql = area.value;
    let said = [""];
    if (suql.trim()) {
      try {
        const found = await stream("explain", { suql }, undefined, () => {});
        said = [el("span", {}, expectation(found)), steps(found.stages)];
      } catch (error) {
        if (area.value !== suql) return;
        fault = error.body?.position ?? null;
        said = [visible(error.message)];
        draw();
      }
    }
    if (area.value === suql && !told.querySelector(".problem")) live.replaceChildren(...said);
  };
  const failed = (error) => {
    fault = error.body?.position ?? null;
    draw();
    live.replaceChildren();
    told.replaceChildren(problem(error));
    if (fault) {
      area.focus();
      area.setSelectionRange(fault.start, fault.end);
    }
    told.scrollIntoView({ block: "nearest" });
  };
  const working = (on) => {
    run.disabled = on;
    stop.hidden = !on;
  };
  const go = async (options) => {
    const line = el("p", { class: "working" }, "Running …");
    let expected = null;
    told.replaceChildren(line);
    under = new Run();
    working(true);
    try {
      const body = { suql: area.value, max_rows: MOST_ROWS, options, ...given };
      const record = await under.stream("sql", body, (name, data) => {
        if (name === "estimate") expected = data.predicted;
        if (name === "progress" && !under.stopping) line.textContent = progress(data);
      });
      told.replaceChildren();
      say(`${plural(record.rows_total, "row")}.`);
      ran(record);
    } catch (error) {
      if (under.ended(error)) {
        told.replaceChildren(stopped(error));
        area.focus();
      } else if (expected && refusedPrice(error, expected.calls)) {
        const price = `About ${plural(expected.calls, "call")}, ${money(expected.money)}.`;
        told.replaceChildren(el("p", { class: "note" }, price), el("p", { class: "buttons" }, button("Run it", () => go({}), { class: "main" })));
        say(`${price} It has not been run.`);
      } else failed(error);
    }
    under = null;
    working(false);
  };
  const run = button("Run", () => go(askAbove === null ? {} : { max_calls: askAbove }));
  const halt = () => {
    under?.stop();
    told.querySelector(".working")?.replaceChildren("Stopping …");
  };
  const stop = button("Stop", halt);
  stop.hidden = true;
  draw();
  estimate();
  const whole = el("div", {},
    el("div", { class: "editor" }, picture, area),
    live,
    el("p", { class: "buttons" }, run, stop),
    told);
  const complete = completing(area, picture);
  whole.addEventListener("keydown", (event) => {
    if (event.target === area && complete(event)) return;
    if (event.key === "Escape") halt();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !under) {
      event.preventDefault();
      run.click();
    }
  });
  return whole;
}

function expectation({ predicted, columns_sent }) {
  if (!predicted.calls) return "Reads no text.";
  const { calls, requests, tokens, money: price } = predicted;
  const sent = columns_sent.length ? `; leaves this machine: ${columns_sent.join(", ")}` : "";
  return visible(`Would read about ${plural(calls, "text")} in ${plural(requests, "request")}, ${plural(tokens, "token")}, ${money(price)}${sent}.`);
}

function steps(stages) {
  return el("details", {}, el("summary", {}, "Plan"),
    el("ol", {}, stages.map((stage) => el("li", {}, `${stage.stage} ${stage.name}`, el("pre", { class: "suql" }, stage.what)))));
}

// What is known of a query that was stopped before any row was sure.
export function stopped(error) {
  const words = error.body ? `${error.message[0].toUpperCase()}${error.message.slice(1)}.` : "Stopped: nothing is kept.";
  say(words);
  return el("p", { class: "note" }, visible(words));
}

export function problem(error) {
  return el("div", { role: "alert", class: "problem" },
    el("strong", {}, error.body?.title ?? "It failed", ". "),
    visible(error.message));
}
