// An answer under its link: shown by the server, and made to work here.

import { get } from "./api.js";
import { card } from "./card.js";

const main = document.getElementById("main");
const record = await get(`answers/${main.dataset.answer}`).catch(() => null);
if (record) document.getElementById("log").replaceChildren(card(record));
