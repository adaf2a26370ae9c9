// Words of a question that the source knows: underlined while it is typed, each with a menu of its meanings.

import { call } from "./api.js";
import { completing } from "./complete.js";
import { button, el, popup, say, visible } from "./dom.js";

const MOST = 2000;

// `picture` lies behind `area` and carries the underlines; `list` holds a button for each word. Gives the key handler.
export function recognizing(area, picture, list) {
  let spans = [];
  const draw = () => {
    const text = area.value;
    let end = 0;
    const nodes = spans.flatMap((span) => {
      const parts = [text.slice(end, span.start), el("u", {}, text.slice(span.start, span.end))];
      end = span.end;
      return parts;
    });
    picture.replaceChildren(...nodes, text.slice(end), "\n");
    picture.scrollTop = area.scrollTop;
    list.replaceChildren(...spans.map((span) => {
      const opener = button(visible(span.words), () => open(opener, span), { "aria-haspopup": "true", title: "What it may mean" });
      return el("li", {}, opener);
    }));
    list.hidden = !spans.length;
  };
  const open = (opener, span) => {
    const menu = popup(opener, `Meanings of ${span.words}`);
    menu.append(...span.meanings.map((each) => {
      const item = button(`${visible(each.name)} `, () => (menu.hidePopover(), write(span, each)));
      item.append(el("span", { class: "hint" }, visible([each.kind, each.detail].filter(Boolean).join(" · "))));
      return item;
    }));
    menu.open();
  };
  const write = (span, meaning) => {
    area.focus();
    area.setRangeText(meaning.write, span.start, span.end, "end");
    area.dispatchEvent(new Event("input"));
    say(`Written as ${meaning.write}.`);
  };
  const find = async (question, at) => {
    if (!question.trim() || question.length > MOST) return null;
    const body = await call("POST", "links", { question, at });
    if (area.value !== question) return null;
    spans = body.spans.map((span) => ({ ...span, words: question.slice(span.start, span.end) }));
    draw();
    return body;
  };
  area.addEventListener("input", () => {
    spans = spans.filter((span) => area.value.slice(span.start, span.end) === span.words);
    draw();
  });
  area.addEventListener("scroll", () => { picture.scrollTop = area.scrollTop; });
  return completing(area, picture, find, true);
}
