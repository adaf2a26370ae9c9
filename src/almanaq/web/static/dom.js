// Elements from text nodes only: nothing that a row, a model or a person says is ever read as markup.

const SHOWN = 4000; // milliseconds
let leaving = null;

export function el(name, given = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "class") made.className = value;
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export const button = (text, onclick, given = {}) => el("button", { type: "button", ...given, onclick }, text);

// A menu beside what opened it; `open()` shows it when it has its items.
export function popup(opener, label) {
  const list = el("div", { popover: "auto", class: "popup", role: "group", "aria-label": label });
  list.addEventListener("toggle", (event) => event.newState === "closed" && list.remove());
  list.addEventListener("keydown", (event) => {
    const items = [...list.querySelectorAll("button, input")];
    const at = items.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at < 0 ? -1 : at - 1, Home: 0, End: -1 }[event.key];
    if (to === undefined || (document.activeElement.matches("input") && /Home|End/.test(event.key))) return;
    event.preventDefault();
    items.at(to % items.length).focus();
  });
  list.open = () => {
    (opener.closest(".rows") ?? opener.parentElement).append(list); // the styles of a header cell are not its own
    list.showPopover({ source: opener });
    const place = opener.getBoundingClientRect();
    list.style.left = `${Math.max(4, Math.min(place.left, innerWidth - list.offsetWidth - 4))}px`;
    list.style.top = `${Math.max(4, Math.min(place.bottom, innerHeight - list.offsetHeight - 4))}px`;
    list.querySelector("button").focus();
  };
  return list;
}

// Spoken at boundaries only.
export function say(text) {
  const status = document.getElementById("status");
  status.textContent = text;
  status.classList.add("quiet");
  return status;
}

// Also shown for a moment: what the page itself does not show.
export function toast(text) {
  const status = say(text);
  status.classList.remove("quiet");
  clearTimeout(leaving);
  leaving = setTimeout(() => status.classList.add("quiet"), SHOWN);
}

export async function copy(text, told) {
  try {
    await navigator.clipboard.writeText(text);
    toast(told);
  } catch {
    prompt("Copy this:", text);
  }
}

// Control characters and those that turn the direction of what follows would show another text than is there.
export function visible(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, "\ufffd");
}

export function shown(value) {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map(shown).join(", ");
  if (typeof value === "object") return visible(JSON.stringify(value));
  return visible(value);
}

// The types of numbers, and of lists of them.
export const NUMBER = /^(smallint|integer|bigint|numeric|decimal|real|double)/;

// A column as people read it.
export const label = (column) => column.label ?? column.name;

export const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

export function money(value) {
  if (value === null || value === undefined) return "at a price that is not known";
  return value === 0 ? "free" : `$${value < 0.01 ? value.toPrecision(1) : value.toFixed(2)}`;
}
