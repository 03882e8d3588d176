// Listens to the server while the page can be seen, and changes the parts that have changed.
import { morph } from "./morph.js";

/** Keep the page up to date; `morePlots` is called when there is something new to plot. */
export function follow({ morePlots = () => {} } = {}) {
  const live = document.getElementById("live");
  const say = (state, words) => {
    live.dataset.state = state;
    live.textContent = words;
  };
  let source = null;

  const open = () => {
    if (source) return;
    source = new EventSource("stream");
    source.addEventListener("open", () => say("live", "connected"));
    source.addEventListener("error", () => say("lost", "connection lost, trying again"));
    source.addEventListener("part", (event) => {
      const { name, html } = JSON.parse(event.data);
      const element = document.getElementById(`part-${name}`);
      if (element) morph(element, html);
      ages();
    });
    source.addEventListener("plots", () => morePlots());
    source.addEventListener("said", (event) => {
      const said = document.getElementById("said");
      if (said) said.textContent = JSON.parse(event.data);
    });
    source.addEventListener("trouble", (event) => say("lost", JSON.parse(event.data)));
  };
  const close = () => {
    source?.close();
    source = null;
  };

  // A hidden page asks for nothing.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", () => document.hidden || open());
  setInterval(ages, 1000);
  ages();
  if (!document.hidden) open();
}

/** Say how long ago each moment was; the exact time stays in the title. */
function ages() {
  for (const time of document.querySelectorAll("time[data-at]")) {
    const exact = new Date(1000 * Number(time.dataset.at));
    const words = ago((Date.now() - exact) / 1000);
    if (time.textContent !== words) time.textContent = words;
    time.title = exact.toLocaleString();
  }
}

function ago(seconds) {
  if (seconds < 5) return "now";
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const [size, unit] = units.find(([size]) => seconds >= size);
  return `${Math.floor(seconds / size)} ${unit} ago`;
}
