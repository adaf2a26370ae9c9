// An answer: what was found, what it rests on, and what can be done with it.

import { button, el, money, plural, say, shown, visible } from "./dom.js";
import { editor } from "./editor.js";
import { pin } from "./pin.js";
import { highlighted } from "./suql.js";
import { quoted } from "./quotes.js";
import { judge, wrong } from "./verdicts.js";
import { whyNot } from "./whynot.js";

const STATUS = {
  answered: "Answered", no_result: "Nothing found", no_query: "No query was run", clarify: "A question back",
  failed: "It failed",
};

// `choose` asks the next question, where the answer stands in a conversation.
export function card(record, choose = null) {
  const made = el("div", { class: "card" });
  const parts = [
    record.truncated && el("p", { class: "note" }, truncation(record)),
    record.not_kept && el("p", { class: "note" }, "This answer could not be kept and has no link: ", visible(record.not_kept)),
    record.status && el("p", { class: "hint" }, STATUS[record.status] ?? record.status),
    record.answer && el("p", { class: "answer" }, visible(record.answer)),
    record.readings?.length ? readings(record, choose, made) : null,
    record.relaxed && el("p", { class: "note" }, "Condition left out: ", visible(record.relaxed)),
    record.columns?.length ? rows(record) : null,
    record.trace?.warnings?.length ? el("ul", { class: "note" }, record.trace.warnings.map((text) => el("li", {}, visible(text)))) : null,
    record.unknown?.length ? unknown(record) : null,
    record.suql && el("p", { class: "hint" }, cost(record.trace)),
    record.suql && query(record, made),
    record.conditions ? conditions(record) : actions(record),
  ];
  made.append(...parts.filter(Boolean));
  return made;
}

// What the question may mean: a button each, which runs it.
function readings(record, choose, made) {
  const run = (number, reading) => {
    if (choose) return choose(String(number + 1));
    made.after(el("div", { class: "again" }, el("h3", {}, visible(reading.words)), editor(reading.suql, (result) => made.after(card(result)))));
  };
  return el("p", { class: "buttons" }, record.readings.map((reading, number) =>
    button(visible(reading.words), () => run(number, reading), { title: reading.suql })));
}

// The answers that rows lack, with the reasons.
function unknown(record) {
  const left = record.trace.unknown_answers - record.unknown.length;
  return el("details", {}, el("summary", {}, `Unknown (${record.trace.unknown_answers.toLocaleString("en")})`),
    el("ul", {}, record.unknown.map((each) => el("li", {},
      visible(`${each.relation} ${each.row}, ${each.column}: ${each.question} (${each.reason})`))),
      left > 0 ? el("li", {}, `and ${left.toLocaleString("en")} more`) : null));
}

function truncation(record) {
  const cut = record.cells_cut ? ` ${plural(record.cells_cut, "long cell")} cut.` : "";
  const missing = record.rows.length < record.rows_total;
  return missing
    ? `The first ${record.rows.length.toLocaleString("en")} of ${plural(record.rows_total, "row")}.${cut}`
    : `Some of it is not shown.${cut}`;
}

function cost(trace) {
  const calls = trace.text_calls + trace.cached_calls;
  const cached = trace.cached_calls ? `, ${trace.cached_calls} more from the cache` : "";
  const spent = calls ? `${plural(trace.text_calls, "text call")}${cached}, ${money(trace.money)}` : "no text was read";
  const sent = trace.columns_sent.map((each) => `${each.column} (${each.cells})`).join(", ");
  return `${trace.seconds.toFixed(2)} s, ${spent}${sent ? `; left this machine: ${sent}` : ""}.`;
}

// One body of the table for each row: its cells, and below them its quotes.
export function rows(record) {
  const quotes = record.evidence.flat();
  let at = 0;
  const bodies = record.rows.map((row, number) => {
    const own = record.evidence[number] ?? [];
    const first = at;
    at += own.length;
    return el("tbody", {},
      el("tr", {}, row.map((cell) => el("td", { class: typeof cell === "number" && "number" }, shown(cell))),
        el("td", {}, rowButton(record, number))),
      own.length ? el("tr", { class: "quote" },
        el("td", { colspan: record.columns.length + 1 },
          el("ul", {}, own.map((quote, i) => quoted(quotes, first + i, record.id, wrongQuote(record, quote)))))) : null);
  });
  return el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Rows" },
    el("table", {},
      el("caption", {}, `${plural(record.rows.length, "row")}${quotes.length ? `, ${plural(quotes.length, "quote")}` : ""}`),
      el("thead", {}, el("tr", {},
        record.columns.map((column) => el("th", { scope: "col", title: `${column.type}, ${column.kind}` }, visible(column.name))),
        el("td", {}, el("span", { class: "quiet" }, "Verdict")))),
      bodies));
}

function wrongQuote(record, quote) {
  return record.id && button("wrong", (event) => judge(record, "wrong", { kind: "quote", evidence: quote }, event.currentTarget),
    { class: "plain", "aria-label": "This quote is wrong" });
}

function rowButton(record, number) {
  const key = record.keys?.[number];
  if (!key || !record.id) return null;
  return button("wrong", (event) => judge(record, "wrong", { kind: "row", key }, event.currentTarget),
    { class: "plain", "aria-label": `Row ${number + 1} is wrong` });
}

function query(record, made) {
  const details = el("details", {}, el("summary", {}, "Query"));
  details.addEventListener("toggle", () => {
    if (!details.open || details.children.length > 1) return;
    details.append(editor(record.suql, (result) => {
      made.nextElementSibling?.classList.contains("again") && made.nextElementSibling.remove();
      const again = el("div", { class: "again" }, el("h3", {}, "The edited query"), card(result));
      made.after(again);
      again.querySelector(".scroll")?.focus();
    }));
  });
  return details;
}

function conditions(record) {
  const words = { true: "true", false: "false", null: "no information" };
  const said = (each) => each.truth === null && each.reason ? `unknown (${visible(each.reason)})` : words[each.truth];
  const quotes = record.conditions.flatMap((each) => each.evidence);
  return el("ul", {}, record.conditions.map((each) => el("li", {},
    el("code", {}, ...highlighted(each.text)), `: ${said(each)}`,
    el("ul", {}, each.evidence.map((quote) => quoted(quotes, quotes.indexOf(quote), record.id))))));
}

function actions(record) {
  const place = el("div", {});
  const asked = record.question !== undefined && record.id;
  return el("div", {},
    el("p", { class: "buttons" },
      asked && button("Right", (event) => judge(record, "right", { kind: "answer" }, event.currentTarget)),
      asked && button("Wrong…", () => wrong(record)),
      record.suql && button("Why isn’t … here?", () => whyNot(record, place)),
      record.id && record.suql && pin(record),
      record.link && button("Copy link", () => copy(new URL(record.link, location.href).href, "Link copied.")),
      record.id && record.columns?.length ? download(record) : null,
      record.suql && button("As Python", () => python(record, place))),
    place);
}

function download(record) {
  const choice = el("select", { "aria-label": "Download rows as" },
    el("option", { value: "" }, "Download …"), ["csv", "json", "parquet"].map((name) => el("option", { value: name }, name)));
  choice.addEventListener("change", () => {
    if (!choice.value) return;
    el("a", { href: `/api/v1/answers/${record.id}/rows?format=${choice.value}`, download: true }).click();
    say(`Rows downloaded as ${choice.value}.`);
    choice.value = "";
  });
  return choice;
}

function python(record, place) {
  const { source, model } = document.body.dataset;
  const text = `import almanaq\n\ncon = almanaq.connect(${JSON.stringify(source)}, model=${JSON.stringify(model)})\nresult = con.sql(${JSON.stringify(record.suql)})\nprint(result.df())\n`;
  place.replaceChildren(el("h3", {}, "As Python"), el("pre", { class: "suql", tabindex: 0 }, text),
    button("Copy", () => copy(text, "Code copied.")));
}

async function copy(text, told) {
  try {
    await navigator.clipboard.writeText(text);
    say(told);
  } catch {
    prompt("Copy this:", text);
  }
}

