// What each figure draws and tabulates. Names come inert and short from the server; `plain` also keeps the
// plotting library from reading its own markup in them.

// Okabe and Ito's colours, told apart with any colour vision; beyond eight models the dashes differ too.
const COLOURS = {
  light: ["#0072b2", "#d55e00", "#00795a", "#a6468d", "#8a6d00", "#2b8cc4", "#7a3e00", "#444444"],
  dark: ["#56b4e9", "#ff8c42", "#2fc79a", "#e39ac9", "#f0e442", "#9ecbff", "#d9a066", "#c8c8c8"],
};
const CALLED = "a winner is called", AHEAD = "forecast, 80 % interval";
const BANDS = 8; // intervals of more models hide each other
const DASHES = ["solid", "dash", "dot", "dashdot"];

export const FIGURES = {
  scores: {
    draw(data, width) {
      if (!started(data)) return null;
      const names = labels(data, width);
      const traces = names.flatMap((name, i) => funnel(data, name, i));
      return { traces, layout: layout(width, { x: "trials of the run", y: "score", entries: names }) };
    },
    url: (point) => point.data.meta,
    table(data) {
      return {
        head: ["Trials", ...data.models.map(({ name }) => `${name}: score [interval]`)],
        rows: data.trials.map((trials, k) => [
          trials,
          ...data.models.map((_, i) => span(data.scores, i, k)),
        ]),
      };
    },
  },

  ranks: {
    draw(data, width) {
      if (!started(data)) return null;
      const names = labels(data, width);
      const traces = names.map((name, i) => ({
        ...line(name, i), x: data.trials, y: data.ranks[i], meta: data.models[i].url,
        line: { ...line(name, i).line, shape: "hv" },
      }));
      const shape = layout(width, { x: "trials of the run", y: "position by score", entries: names });
      shape.yaxis = { ...shape.yaxis, range: [data.models.length + 0.5, 0.5], dtick: data.models.length > 12 ? 5 : 1 };
      return { traces, layout: shape };
    },
    url: (point) => point.data.meta,
    table(data) {
      return {
        head: ["Trials", ...data.models.map(({ name }) => name)],
        rows: data.trials.map((trials, k) => [trials, ...data.ranks.map((ranks) => ranks[k])]),
      };
    },
  },

  evidence: {
    draw(data, width) {
      const { pairs, threshold } = data.evidence;
      if (!started(data) || !pairs.length || !threshold.some((value) => value !== null)) return null;
      const traces = pairs.map((pair, i) => ({
        ...line(pair.name, i), x: data.trials, y: pair.values, meta: pair.url,
      }));
      traces.push({
        type: "scatter", mode: "lines", name: CALLED, x: data.trials, y: threshold,
        line: { color: theme().text, width: 2, dash: "longdash", shape: "hv" }, hoverinfo: "y+name",
      });
      const shape = layout(width, { x: "trials of the run", y: "log e-value", entries: [...pairs.map(({ name }) => name), CALLED] });
      const highest = Math.max(...threshold.filter((value) => value !== null));
      shape.yaxis = { ...shape.yaxis, range: [0, 1.6 * highest] };
      return { traces, layout: shape };
    },
    url: (point) => point.data.meta,
    table(data) {
      const { pairs, threshold } = data.evidence;
      return {
        head: ["Trials", "Calls a winner", ...pairs.map(({ name }) => name)],
        rows: data.trials.map((trials, k) => [trials, threshold[k], ...pairs.map(({ values }) => values[k])]),
      };
    },
  },

  matrix: {
    draw(data, width) {
      if (!data.matrix) return null;
      const { kind, progress, words, urls } = data.matrix;
      const { bad, open, tie, good } = theme();
      const places = { worse: 0, open: 1, tie: 2, better: 3 };
      const signs = { worse: "<", tie: "=", better: ">" };
      const names = labels(data, width);
      const few = names.length <= (width < 500 ? 8 : 14);
      const trace = {
        type: "heatmap", zmin: -0.5, zmax: 3.5, showscale: false, xgap: 1, ygap: 1, customdata: urls,
        z: kind.map((row) => row.map((one) => (one === null ? null : places[one]))),
        x: names.map((_, j) => j), y: names.map((_, i) => i),
        text: kind.map((row, i) =>
          row.map((one, j) => (!few || one === null ? "" : signs[one] ?? `${Math.floor(100 * progress[i][j])}%`)),
        ),
        texttemplate: "%{text}", textfont: { color: theme().cellText },
        hovertext: words.map((row) => row.map(plain)), hoverinfo: "text",
        colorscale: steps([bad, open, tie, good]),
      };
      const shape = square(names, width);
      if (names.length > 6) { // too many for names below the columns
        const numbers = names.map((_, i) => i + 1), every = few || width >= 500 ? 1 : 5;
        Object.assign(shape.xaxis, { ticktext: numbers.map((n) => (n % every ? "" : n)), side: "top" });
        shape.xaxis.tickfont.size = few ? 11 : 9;
        shape.yaxis.ticktext = numbers.map((n, i) => `${n} ${shape.yaxis.ticktext[i]}`);
      }
      return { traces: [trace], layout: shape };
    },
    url: (point) => point.customdata,
    table(data) {
      if (!data.matrix) return { head: ["Model"], rows: [] };
      const { kind, progress } = data.matrix;
      const shown = { worse: "behind", tie: "tied", better: "ahead" };
      return {
        head: ["Model", ...data.models.map(({ name }) => `against ${name}`)],
        rows: data.models.map(({ name }, i) => [
          name,
          ...kind[i].map((one, j) =>
            one === null ? "" : shown[one] ?? `open, ${Math.floor(100 * progress[i][j])} %`),
        ]),
      };
    },
  },

  cells: {
    draw(data, width) {
      const { counts, questions } = data.cells;
      if (!questions.length || !data.models.length) return null;
      const names = labels(data, width);
      const trace = {
        type: "heatmap", z: counts, x: questions.map((_, j) => j), y: names.map((_, i) => i), xgap: 0, ygap: 1,
        colorscale: theme().ramp, zmin: 0, zmax: Math.max(1, ...counts.map((row) => Math.max(...row))), colorbar: { thickness: 10, outlinewidth: 0, len: 0.9 },
        hovertext: counts.map((row, i) =>
          row.map((n, j) => `${plain(data.models[i].name)}<br>${plain(questions[j])}<br>${n} trials`)),
        hoverinfo: "text",
        customdata: counts.map((row) => row.map((_, j) => data.cells.urls[j])),
      };
      const shape = square(names, width);
      shape.xaxis = { ...axis("question, as first asked"), showticklabels: false, ticks: "", fixedrange: width < 500 };
      return { traces: [trace], layout: shape };
    },
    url: (point) => point.customdata,
    table(data) {
      return {
        head: ["Question", ...data.models.map(({ name }) => name)],
        rows: data.cells.questions.map((question, j) => [question, ...data.cells.counts.map((row) => row[j])]),
      };
    },
  },

  cost: {
    draw(data, width) {
      const { unit, elapsed, spent, limit, ahead } = data.cost;
      if (!elapsed.length) return null;
      const scale = timeScale(elapsed[elapsed.length - 1] + (ahead ? ahead.seconds[1] : 0));
      const hours = elapsed.map((seconds) => seconds / scale.seconds);
      const traces = [{ ...line("spent", 0), x: hours, y: spent }];
      const shape = layout(width, { x: `running time, ${scale.unit}`, y: unit === "usd" ? "USD" : unit, entries: ahead ? ["spent", AHEAD] : [] });
      if (ahead) {
        const [now, paid] = [elapsed[elapsed.length - 1], spent[spent.length - 1]];
        const at = (k) => (now + ahead.seconds[k]) / scale.seconds;
        traces.push({
          type: "scatter", mode: "lines+markers", name: AHEAD, x: [now / scale.seconds, at(1)],
          y: [paid, paid + ahead.amount[1]], line: { color: theme().accent, dash: "dot" },
          error_x: bars([0, at(2) - at(1)], [0, at(1) - at(0)]),
          error_y: bars([0, ahead.amount[2] - ahead.amount[1]], [0, ahead.amount[1] - ahead.amount[0]]),
        });
        shape.xaxis.range = [0, Math.min(at(2), 4 * at(1)) * 1.05];
      }
      const most = (ahead ? spent[spent.length - 1] + ahead.amount[2] : spent[spent.length - 1]) * 1.1;
      if (limit !== null && limit <= 2 * most) {
        shape.shapes = [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: limit, y1: limit, line: { color: theme().bad, dash: "dash" } }];
      }
      shape.yaxis.rangemode = "tozero";
      return { traces, layout: shape };
    },
    table(data) {
      const { unit, elapsed, spent } = data.cost;
      return { head: ["Running time, seconds", `Spent, ${unit}`], rows: elapsed.map((at, k) => [at, spent[k]]) };
    },
  },

  calibration: {
    draw(data, width) {
      const { trials, total, issued, finished, held } = data.calibration;
      if (!trials.length) return null;
      const [low, median, high] = [0, 1, 2].map((k) => total.map((range) => range[k]));
      const colour = theme().accent;
      const traces = [
        { ...edge(trials, high), showlegend: false },
        { ...edge(trials, low), fill: "tonexty", fillcolor: faint(colour), name: "80 % interval" },
        { type: "scatter", mode: "lines+markers", name: "forecast of the total", x: trials, y: median, line: { color: colour } },
        {
          type: "scatter", mode: "lines", name: finished ? "what it took" : "issued so far",
          x: [trials[0], Math.max(trials[trials.length - 1], finished ? trials[0] : issued)], y: [issued, issued],
          line: { color: theme().text, dash: "longdash" },
        },
      ];
      const shape = layout(width, { x: "trials when it was forecast", y: "trials of the whole run", entries: ["80 % interval", "forecast of the total", "issued so far"] });
      const top = Math.max(issued, ...median) * 2.5;
      shape.yaxis = { ...shape.yaxis, range: [0, Math.min(top, Math.max(issued, ...high) * 1.05)] };
      if (held[1]) {
        shape.annotations = [{
          xref: "paper", yref: "paper", x: 1, y: 1, xanchor: "right", yanchor: "top", showarrow: false,
          text: `single pairs: ${held[0]} of ${held[1]} intervals held`, bgcolor: theme().card,
        }];
      }
      return { traces, layout: shape };
    },
    table(data) {
      const { trials, total, pairs, issued, finished } = data.calibration;
      const runs = trials.map((at, k) => [`the run, at ${at} trials`, ...total[k], finished ? issued : null]);
      const single = pairs.map(({ name, said, happened, open }) => [`further trials of ${name}`, ...said, open ? `more than ${happened}` : happened]);
      return { head: ["Forecast of", "Low", "Median", "High", "What happened"], rows: [...runs, ...single] };
    },
  },
};

function theme() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(`--${name}`).trim();
  const dark = document.documentElement.dataset.theme === "dark";
  return {
    text: get("text"), muted: get("muted"), grid: get("line"), card: get("card"), accent: get("accent"), bad: dark ? "#7d3b36" : "#f3b8b3",
    open: dark ? "#3a4049" : "#e6e9ee", tie: dark ? "#5b3f85" : "#d9c2f2", good: dark ? "#1f6b49" : "#aadfc4",
    cellText: get("text"), colours: COLOURS[dark ? "dark" : "light"],
    ramp: dark ? [[0, "#232b38"], [0.5, "#2f5f9e"], [1, "#b9d6ff"]] : [[0, "#eef3fa"], [0.5, "#7fb0e6"], [1, "#0b3c7d"]],
  };
}

function axis(title) {
  const { muted, grid } = theme();
  return { title: { text: title, font: { size: 12, color: muted } }, gridcolor: grid, zerolinecolor: grid, linecolor: grid, tickfont: { color: muted, size: 11 }, automargin: true };
}

/** The layout of a figure; its legend is below the axes and makes the figure taller, never the axes lower. */
function layout(width, { x, y, entries = [] }) {
  const { text, card } = theme();
  const narrow = width < 500;
  const room = Math.min(width - 100, 12 + 7 * Math.max(0, ...entries.map((name) => name.length)));
  const rows = Math.ceil(entries.length / Math.max(1, Math.floor((width - 48) / (room + 40))));
  return {
    height: (narrow ? 260 : 310) + 20 * rows + (rows ? 10 : 0),
    font: { family: "system-ui, sans-serif", color: text, size: 12 }, paper_bgcolor: card, plot_bgcolor: card,
    margin: { l: 48, r: 8, t: 8, b: 46 + 20 * rows }, hovermode: "closest", dragmode: narrow ? false : "zoom",
    xaxis: { ...axis(x), fixedrange: narrow, rangemode: "tozero" }, yaxis: { ...axis(y), fixedrange: narrow },
    legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0, font: { size: 11 }, maxheight: 1, entrywidth: room, tracegroupgap: 0 },
    hoverlabel: { align: "left", namelength: 40 }, showlegend: rows > 0,
  };
}

function square(names, width) {
  const shape = layout(width, { x: "", y: "" });
  const ticks = { tickmode: "array", tickvals: names.map((_, i) => i), ticktext: names.map(plain), showgrid: false, zeroline: false };
  return {
    ...shape,
    height: Math.max(shape.height, 120 + 18 * names.length),
    xaxis: { ...axis(""), ...ticks, side: "bottom", tickangle: 0, rangemode: "normal" },
    yaxis: { ...axis(""), ...ticks, autorange: "reversed" },
  };
}

/** Whether any model has a score. */
function started({ scores }) {
  return scores.score.some((row) => row.some((value) => value !== null));
}

/** The names of the models, shorter ones on a phone; no two are alike. */
function labels({ models }, width) {
  return models.map(({ name, short }) => (width < 500 ? short : name));
}

function line(name, i) {
  const { colours } = theme();
  const style = { color: colours[i % colours.length], dash: DASHES[Math.floor(i / colours.length) % DASHES.length], width: 2 };
  return { type: "scatter", mode: "lines", name: plain(name), line: style };
}

function funnel({ models, scores, trials }, name, i) {
  const colour = line("", i).line.color;
  const shared = { legendgroup: `m${i}`, meta: models[i].url };
  const course = { ...line(name, i), ...shared, x: trials, y: scores.score[i] };
  if (models.length > BANDS) return [course];
  return [
    { ...edge(trials, scores.high[i]), ...shared, showlegend: false },
    { ...edge(trials, scores.low[i]), ...shared, fill: "tonexty", fillcolor: faint(colour, Math.min(0.14, 0.45 / models.length)), showlegend: false },
    course,
  ];
}

function edge(x, y) {
  return { type: "scatter", mode: "lines", x, y, line: { width: 0 }, hoverinfo: "skip", connectgaps: false };
}

function bars(array, arrayminus) {
  return { type: "data", symmetric: false, array, arrayminus, color: theme().accent, thickness: 1.5, width: 4 };
}

function steps(colours) {
  return colours.flatMap((colour, k) => [[k / colours.length, colour], [(k + 1) / colours.length, colour]]);
}

function faint(colour, opacity = 0.14) {
  const [r, g, b] = [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16));
  return `rgba(${r},${g},${b},${opacity})`;
}

function span({ score, low, high }, i, k) {
  const show = (value) => (value === null ? "–" : value.toFixed(3));
  return score[i][k] === null ? "–" : `${show(score[i][k])} [${show(low[i][k])}, ${show(high[i][k])}]`;
}

function timeScale(seconds) {
  if (seconds >= 2 * 86400) return { seconds: 86400, unit: "days" };
  if (seconds >= 2 * 3600) return { seconds: 3600, unit: "hours" };
  return seconds >= 120 ? { seconds: 60, unit: "minutes" } : { seconds: 1, unit: "seconds" };
}

/** Keep the plotting library from reading markup in a text. */
function plain(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
