// SUQL as it is read: words, texts and calls told apart, and the place of an error underlined.

import { el } from "./dom.js";

const WORDS = new Set(
  ("select from where group by having order limit offset fetch first rows only with recursive as on using join left " +
    "right full inner cross natural lateral and or not in is null like ilike between exists any all some case when " +
    "then else end distinct union intersect except asc desc nulls last cast values true false over partition filter " +
    "interval array").split(" "),
);
const TOKEN = /(--[^\n]*|\/\*[\s\S]*?\*\/)|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|([A-Za-z_][A-Za-z0-9_]*)|([\s\S])/g;

// Gives the nodes of a highlighted query; `fault` is {start, end}.
export function highlighted(text, fault = null) {
  const nodes = [];
  for (const found of text.matchAll(TOKEN)) {
    const [all, note, literal, name, word] = found;
    let kind = null;
    if (note) kind = "t-note";
    else if (literal) kind = "t-text";
    else if (word && /^(answer|classify|summary)$/i.test(word) && /^\s*\(/.test(text.slice(found.index + all.length))) kind = "t-call";
    else if (word && !name && WORDS.has(word.toLowerCase())) kind = "t-word";
    const faulty = fault && found.index < fault.end && found.index + all.length > fault.start;
    const classes = [kind, faulty && "fault"].filter(Boolean).join(" ");
    if (classes) nodes.push(el("span", { class: classes }, all));
    else if (typeof nodes.at(-1) === "string") nodes.push(nodes.pop() + all);
    else nodes.push(all);
  }
  return nodes;
}
