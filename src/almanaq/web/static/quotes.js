// A quote as every view draws it: its words, which open the text that it stands in, and where that is.

import { button, el, visible } from "./dom.js";
import { passageName, read } from "./reader.js";

// `quotes` are all of an answer, in order; `index` says which is drawn; `more` stands behind it.
export function quoted(quotes, index, answer, ...more) {
  const quote = quotes[index];
  const several = quotes.some((each) => each.question !== quote.question); // one question is the answer's own
  return el("li", {},
    button(`“${visible(quote.quote)}”`, (event) => read(quotes, index, answer, event.currentTarget), { class: "plain" }),
    el("cite", {}, ` ${passageName(quote)}${several ? ` · ${visible(quote.question)}` : ""} `),
    ...more);
}
