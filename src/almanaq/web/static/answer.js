// An answer under its link: shown by the server, and made to work here.

import { get } from "./api.js";
import { card } from "./card.js";

const main = document.getElementById("main");
const path = `answers/${main.dataset.answer}`;
const [record, drawn] = await Promise.all([path, location.search && `${path}/chart${location.search}`].map((each) => each && get(each).catch(() => null)));
if (drawn) Object.assign(record, { chart: drawn.chart, chosen: Object.fromEntries(new URLSearchParams(location.search)) });
if (record) document.getElementById("log").replaceChildren(card(record));
