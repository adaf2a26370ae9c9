// The editor for SUQL, there from the first visit on; this browser remembers the queries that ran.

import { card } from "./card.js";
import { button, el, visible } from "./dom.js";
import { editor } from "./editor.js";

const KEY = `almanaq queries ${document.body.dataset.source}`;
const MOST = 50;
const log = document.getElementById("log");
const place = document.getElementById("query");

function known() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? [];
  } catch {
    return [];
  }
}

function remember(suql) {
  try {
    localStorage.setItem(KEY, JSON.stringify([suql, ...known().filter((each) => each !== suql)].slice(0, MOST)));
  } catch {
    // Without room, or without leave to keep anything, there is no history.
  }
  list();
}

function list() {
  const found = known();
  document.querySelector("#earlier .body").replaceChildren(found.length
    ? el("ul", {}, found.map((suql) => el("li", {}, button(visible(suql), () => open(suql), { class: "plain" }))))
    : el("p", { class: "hint" }, "None yet."));
}

function open(suql) {
  place.replaceChildren(editor(suql, (record) => {
    remember(record.suql);
    log.replaceChildren(el("section", {}, el("h2", { class: "quiet" }, "Result"), card(record)));
    log.scrollIntoView({ block: "nearest" });
  }));
  place.querySelector("textarea").focus();
}

let first = "";
try {
  first = decodeURIComponent(location.hash.slice(1));
} catch {
  // A link that holds no query opens an empty editor.
}
open(first || known()[0] || "");
list();
