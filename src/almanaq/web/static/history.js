// Earlier conversations: this browser knows which they were, the server what was said.

import { call } from "./api.js";
import { button, el, toast, visible } from "./dom.js";
import { remembered } from "./remembered.js";

const known = remembered("");

export function remember(conversation, title) {
  const list = known.all();
  if (list.some((each) => each.conversation === conversation)) return;
  known.keep([{ conversation, title: title.slice(0, 100) }, ...list]);
  draw?.();
}

export function forget(conversation) {
  known.keep(known.all().filter((each) => each.conversation !== conversation));
  draw?.();
}

let draw = null;

export function history(details, open) {
  const body = details.querySelector(".body");
  draw = () => {
    const list = known.all();
    body.replaceChildren(list.length
      ? el("ul", {}, list.map((each) => el("li", {},
        button(visible(each.title), () => open(each.conversation), { class: "plain" }), " ",
        button("delete", () => drop(each.conversation), { class: "plain", "aria-label": `Delete ${visible(each.title)}` }))))
      : el("p", { class: "hint" }, "None yet."));
  };
  draw();
}

async function drop(conversation) {
  if (!confirm("Delete this conversation and its answers?")) return;
  await call("DELETE", `conversations/${conversation}`).catch((error) => {
    if (error.body?.status !== 404) throw error;
  });
  forget(conversation);
  toast("Conversation deleted.");
}
