// An answer: its sentence, then the chart or the table; how it was found is folded below.

import { chart } from "./chart.js";
import { button, copy, el, label, money, plural, say, visible } from "./dom.js";
import { editor } from "./editor.js";
import { pin } from "./pin.js";
import { highlighted } from "./suql.js";
import { quoted } from "./quotes.js";
import { reachable } from "./rows.js";
import { table, take } from "./table.js";
import { judging } from "./verdicts.js";
import { whyNot } from "./whynot.js";

const FILTERS = /^(?!.*\b(GROUP\s+BY|UNION|INTERSECT|EXCEPT)\b)\s*SELECT\b.*\bWHERE\b/is;
const FIGURE = /^-?[\d.,]+(?: ([^\n.]{1,60}))?\.(?:\n|$)/; // a reply that begins with its one number
const EDITED = "The edited query";
const STATUS = { no_result: "Nothing found", no_query: "No query was run", clarify: "A question back", failed: "It failed" };

// `choose` asks the next question, where the answer is part of a conversation.
export function card(record, choose = null) {
  const made = el("div", { class: "card", "data-answer": record.id });
  // What a query that follows from this answer tells the server: a conversation that is shown here shows it again.
  const edited = (title) => (record.id ? { of: { answer: record.id, title: title.slice(0, 200) }, conversation: (choose && record.conversation) || "" } : {});
  made.show = (result, words) => {
    if (made.nextElementSibling?.classList.contains("again")) made.nextElementSibling.remove();
    const next = el("div", { class: "again" }, el("h3", { tabindex: -1 }, visible(words)), card({ ...result, conversation: record.conversation }, choose));
    made.after(next);
    return next;
  };
  const again = (result, words) => {
    const next = made.show(result, words);
    next.querySelector("h3").focus();
    next.scrollIntoView({ block: "nearest" });
    say(`${plural(result.rows_total, "row")}.`);
  };
  const rows = record.columns?.length && !figure(record) ? table(record, again, edited) : null;
  const sentence = figure(record) ? record.lead?.replace(FIGURE, "") : record.lead;
  const warnings = record.trace?.warnings;
  const parts = [
    record.truncated && truncation(record),
    record.not_kept && el("p", { class: "note" }, "This answer could not be kept and has no link: ", visible(record.not_kept)),
    STATUS[record.status] && el("p", { class: "hint" }, STATUS[record.status]),
    sentence && el("p", { class: "answer" }, visible(sentence)),
    record.readings?.length ? readings(record, choose, again, edited) : null,
    record.relaxed && el("p", { class: "note" }, "Condition left out: ", visible(record.relaxed)),
    figure(record),
    picture(record),
    rows,
    warnings?.length ? el("ul", { class: "note" }, warnings.map((text) => el("li", {}, visible(text)))) : null,
    record.unknown?.length ? unknown(record) : null,
    record.conditions ? conditions(record) : actions(record, rows, again, edited),
    record.suql && record.trace && found(record, again, edited),
  ];
  made.append(...parts.filter(Boolean));
  return made;
}

// A single number, large, and what the reply says it is of.
function figure(record) {
  const value = record.rows?.[0]?.[0];
  if (record.rows?.length !== 1 || record.columns.length !== 1 || typeof value !== "number") return null;
  return el("p", { class: "figure" }, el("strong", {}, Number(value.toFixed(2)).toLocaleString("en", { useGrouping: "min2" })), " ", visible(record.lead?.match(FIGURE)?.[1] ?? label(record.columns[0])));
}

// Rows that rest on quotes are read first; their chart is folded.
function picture(record) {
  if (!record.chart || record.chart.usermeta?.almanaq.kind === "number" || !record.chart.usermeta) return null;
  if (!record.evidence.some((own) => own.length)) return chart(record);
  const details = el("details", {}, el("summary", {}, "Chart"));
  details.addEventListener("toggle", () => details.children.length > 1 || details.append(chart(record)));
  return details;
}

function found(record, again, edited) {
  const place = el("div", {});
  const details = el("details", {}, el("summary", {}, "How this was found"));
  details.addEventListener("toggle", () => {
    if (!details.open || details.children.length > 1) return;
    details.append(...[
      record.searched && el("p", {}, "Searched: ", visible(record.searched), "."),
      el("p", { class: "hint" }, cost(record.trace)),
      record.answer && record.answer !== record.lead && el("details", {}, el("summary", {}, "The whole reply"), el("p", { class: "answer" }, visible(record.answer))),
      el("h3", {}, "Query"),
      editor(record.suql, (result) => again(result, EDITED), edited(EDITED)),
      el("p", { class: "buttons" }, button("As Python", () => python(record, place))),
      place,
    ].filter(Boolean));
    details.scrollIntoView({ block: "nearest" });
  });
  return details;
}

// A query in an editor, which runs at once unless its price has to be agreed to.
function running(kind, suql, words, again, edited) {
  const place = el(kind, {}, editor(suql, (result) => again(result, words), edited(words)));
  requestAnimationFrame(() => {
    place.querySelector("textarea").focus();
    place.querySelector(".buttons button").click();
  });
  return place;
}

// What the question may mean: a button each, which runs it. Only of the last turn the server knows the numbers.
function readings(record, choose, again, edited) {
  const isLast = () => !list.closest(".turn").nextElementSibling;
  const list = el("ol", { class: "readings" }, record.readings.map((reading, number) => el("li", {},
    button(visible(reading.words), () => (choose && isLast() ? choose(String(number + 1)) : list.append(running("li", reading.suql, reading.words, again, edited))), { title: reading.suql }))));
  return list;
}

// The answers that rows lack, with the reasons.
function unknown(record) {
  const left = record.trace.unknown_answers - record.unknown.length;
  return el("details", {}, el("summary", {}, `Unknown (${record.trace.unknown_answers.toLocaleString("en")})`),
    el("ul", {}, record.unknown.map((each) => el("li", {},
      visible(`${each.relation} ${each.row}, ${each.column}: ${each.question} (${each.reason})`))),
      left > 0 ? el("li", {}, `and ${left.toLocaleString("en")} more`) : null));
}

// What is missing, unless the server keeps it for the table.
function truncation(record) {
  const there = reachable(record);
  const words = [
    record.stopped && "Stopped: not all of the result.",
    there < record.rows_total && `The first ${there.toLocaleString("en")} of ${plural(record.rows_total, "row")}.`,
    record.trace?.partial && `The first ${plural(record.rows_total, "row")}: there may be more.`,
    record.cells_cut && `${plural(record.cells_cut, "long cell")} cut.`,
  ].filter(Boolean);
  return words.length > 0 && el("p", { class: "note" }, words.join(" "));
}

function cost(trace) {
  const calls = trace.text_calls + trace.cached_calls;
  const cached = trace.cached_calls ? `, ${trace.cached_calls} more from the cache` : "";
  const spent = calls ? `${plural(trace.text_calls, "text call")}${cached}, ${money(trace.money)}` : "no text was read";
  const sent = trace.columns_sent.map((each) => `${each.column} (${each.cells})`).join(", ");
  return `${trace.seconds.toFixed(2)} s, ${spent}${sent ? `; left this machine: ${sent}` : ""}.`;
}

function conditions(record) {
  const words = { true: "true", false: "false", null: "no information" };
  const said = (each) => each.truth === null && each.reason ? `unknown (${visible(each.reason)})` : words[each.truth];
  const quotes = record.conditions.flatMap((each) => each.evidence);
  return el("ul", {}, record.conditions.map((each) => el("li", {},
    el("code", {}, ...highlighted(each.text)), `: ${said(each)}`,
    el("ul", {}, each.evidence.map((quote) => quoted(quotes, quotes.indexOf(quote), record.id))))));
}

// The query without the LIMIT that ended it; null where none did, or an order says which rows are wanted.
function whole(record) {
  const [end, most] = record.suql?.match(/\s+LIMIT\s+(\d+)\s*;?\s*$/i) ?? [];
  return Number(most) === record.rows_total && !/\bORDER\s+BY\b/i.test(record.suql) ? record.suql.slice(0, -end.length) : null;
}

function actions(record, rows, again, edited) {
  const place = el("div", {});
  const answered = record.question !== undefined && record.id && record.status !== "clarify";
  return el("div", {},
    el("p", { class: "buttons" },
      answered && judging(record, "right", "Right"),
      answered && judging(record, "wrong", "Wrong…"),
      whole(record) && button("Show all", () => place.replaceChildren(running("div", whole(record), "All rows", again, edited))),
      FILTERS.test(record.suql) && button("Why isn’t … here?", () => whyNot(record, place)),
      record.id && record.suql && pin(record),
      record.link && button("Copy link", () => copy(linkOf(record), "Link copied.")),
      rows && (rows.text || rows.isKept) && take(rows, () => record)),
    place);
}

// An answer's address, with the chart that was chosen.
function linkOf(record) {
  const link = new URL(record.link, location.href);
  if (record.chosen) link.search = new URLSearchParams(record.chosen);
  return link.href;
}

function python(record, place) {
  const { source, model } = document.body.dataset;
  const text = `import almanaq\n\ncon = almanaq.connect(${JSON.stringify(source)}, model=${JSON.stringify(model)})\nresult = con.sql(${JSON.stringify(record.suql)})\nprint(result.df())\n`;
  place.replaceChildren(el("h3", {}, "As Python"), el("pre", { class: "suql", tabindex: 0 }, text),
    button("Copy", () => copy(text, "Code copied.")));
}
