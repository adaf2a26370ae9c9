// Earlier conversations: this browser knows which they were, the server what was said.

import { call } from "./api.js";
import { button, el, say, visible } from "./dom.js";

const KEY = `almanaq ${document.body.dataset.source}`;
const MOST = 50;

function known() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? [];
  } catch {
    return [];
  }
}

function keep(list) {
  try {
    localStorage.setItem(KEY, JSON.stringify(list.slice(0, MOST)));
  } catch {
    // Without room, or without leave to keep anything, there is no history.
  }
}

export function remember(conversation, title) {
  const list = known();
  if (list.some((each) => each.conversation === conversation)) return;
  keep([{ conversation, title: title.slice(0, 100) }, ...list]);
  draw?.();
}

export function forget(conversation) {
  keep(known().filter((each) => each.conversation !== conversation));
  draw?.();
}

let draw = null;

export function history(details, open) {
  const body = details.querySelector(".body");
  draw = () => {
    const list = known();
    body.replaceChildren(list.length
      ? el("ul", {}, list.map((each) => el("li", {},
        button(visible(each.title), () => open(each.conversation), { class: "plain" }), " ",
        button("delete", () => drop(each.conversation), { class: "plain", "aria-label": `Delete ${visible(each.title)}` }))))
      : el("p", { class: "hint" }, "None yet."));
  };
  draw();
}

async function drop(conversation) {
  await call("DELETE", `conversations/${conversation}`).catch((error) => {
    if (error.body?.status !== 404) throw error;
  });
  forget(conversation);
  say("Conversation deleted.");
}
