// The editor for SUQL, there from the first visit on; this browser remembers the queries that ran.

import { card } from "./card.js";
import { button, el, visible } from "./dom.js";
import { editor } from "./editor.js";
import { remembered } from "./remembered.js";

const known = remembered("queries ");
const log = document.getElementById("log");
const place = document.getElementById("query");

function remember(suql) {
  known.keep([suql, ...known.all().filter((each) => each !== suql)]);
  list();
}

function list() {
  const found = known.all();
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
open(first || known.all()[0] || "");
list();
