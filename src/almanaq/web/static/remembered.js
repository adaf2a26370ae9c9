// A list that this browser remembers of a source, the last first.

const MOST = 50;

export function remembered(name) {
  const key = `almanaq ${name}${document.body.dataset.source}`;
  const all = () => {
    try {
      return JSON.parse(localStorage.getItem(key)) ?? [];
    } catch {
      return [];
    }
  };
  const keep = (list) => {
    try {
      localStorage.setItem(key, JSON.stringify(list.slice(0, MOST)));
    } catch {
      // Without room, or without leave to keep anything, there is no history.
    }
  };
  return { all, keep };
}
