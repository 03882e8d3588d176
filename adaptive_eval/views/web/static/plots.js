// Draws the figures that can be seen, with the library loaded when the first one comes into view, and tabulates
// the same numbers for those who read them otherwise.
import { FIGURES } from "./figures.js";
import { fill } from "./tables.js";

const CONFIG = { displayModeBar: false, responsive: true, scrollZoom: false };

export class Plots {
  constructor(section) {
    this.library = section.dataset.library;
    this.figures = [...section.querySelectorAll("figure")];
    this.visible = new Set();
    this.drawn = new Map(); // figure -> data it shows
    this.data = null;
    this.watcher = new IntersectionObserver((entries) => this.seen(entries), { rootMargin: "200px" });
    for (const figure of this.figures) {
      this.watcher.observe(figure);
      figure.querySelector("details.data").addEventListener("toggle", () => this.tabulate(figure));
    }
    document.addEventListener("themechange", () => {
      this.drawn.clear();
      this.draw();
    });
  }

  async refresh() {
    const answer = await fetch("plots.json").catch(() => null);
    if (!answer?.ok) return; // the next event asks again
    this.data = await answer.json();
    this.draw();
    for (const figure of this.figures) this.tabulate(figure);
  }

  seen(entries) {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) this.visible.add(target);
      else this.visible.delete(target);
    }
    this.draw();
  }

  async draw() {
    if (!this.data || !this.visible.size) return;
    await this.load();
    for (const figure of this.visible) {
      if (this.drawn.get(figure) === this.data) continue;
      this.drawn.set(figure, this.data);
      drawInto(figure, this.data);
    }
  }

  tabulate(figure) {
    const details = figure.querySelector("details.data");
    if (!details.open || !this.data) return;
    fill(details.querySelector(".scroll"), describe(figure).table(this.data));
  }

  load() {
    this.loading ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = this.library;
      script.addEventListener("load", resolve);
      script.addEventListener("error", reject);
      document.head.append(script);
    });
    return this.loading;
  }
}

function describe(figure) {
  return FIGURES[figure.id.replace("figure-", "")];
}

function drawInto(figure, data) {
  const element = figure.querySelector(".plot");
  const drawing = describe(figure).draw(data, element.clientWidth);
  element.classList.toggle("empty", !drawing);
  if (!drawing) {
    globalThis.Plotly.purge(element);
    element.textContent = "Nothing to show yet.";
    return;
  }
  if (!element.classList.contains("js-plotly-plot")) element.textContent = "";
  globalThis.Plotly.react(element, drawing.traces, drawing.layout, CONFIG);
  if (!element.dataset.clickable) {
    element.dataset.clickable = "yes";
    element.on("plotly_click", ({ points }) => {
      const url = describe(figure).url?.(points[0]);
      if (url) location.href = url;
    });
  }
}
