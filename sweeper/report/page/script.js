// Draws the figures, which lie packed in the page, and keeps them in step with theme, switch and
// print. The page needs nothing else: no network, no storage, and no code that is not listed by its
// hash in the page's policy.
"use strict";
(() => {
  const root = document.documentElement;
  const plots = new Map();
  const PRINT_WIDTH_PX = 1010;

  const unpack = async (id) => {
    const text = atob(document.getElementById(id).textContent);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  };

  // What the style sheet makes of the theme, as plotly wants it.
  const colours = () => {
    const page = getComputedStyle(document.body);
    const line = getComputedStyle(document.querySelector(".plot")).borderTopColor;
    return { ink: page.color, paper: page.backgroundColor, line };
  };

  const themed = (layout) => {
    const { ink, paper, line } = colours();
    const axis = { gridcolor: line, linecolor: line, tickcolor: line, zerolinecolor: line };
    const made = { ...layout, paper_bgcolor: paper, plot_bgcolor: paper };
    made.font = { ...layout.font, color: ink, family: getComputedStyle(document.body).fontFamily };
    made.hoverlabel = { ...layout.hoverlabel, bgcolor: paper, bordercolor: ink, font: { color: ink } };
    for (const name of Object.keys(layout)) {
      if (/^[xy]axis\d*$/.test(name)) made[name] = { ...axis, ...layout[name] };
    }
    // Words that lie over lines have the page behind them.
    made.annotations = layout.annotations?.map((one) => (one.bgcolor ? { ...one, bgcolor: paper } : one));
    if (matchMedia("(pointer: coarse)").matches) made.dragmode = false;
    if (innerWidth < 760) {
      made.font.size = 11;
      made.margin = { ...layout.margin, l: 44, r: 8 };
    }
    return made;
  };

  // A view of a figure says only what it changes of the first.
  const viewed = ({ figure, views }, place) => {
    const change = views[place] || { data: [], layout: {} };
    const data = figure.data.map((trace, i) => ({ ...trace, ...change.data[i] }));
    for (const trace of data) {
      if (trace.type === "bar" && trace.error_x) trace.error_x = { ...trace.error_x, color: colours().ink };
    }
    return { data, layout: { ...figure.layout, ...change.layout } };
  };

  const draw = (element, place = plots.get(element).place) => {
    const plot = plots.get(element);
    plot.place = place;
    const { data, layout } = viewed(plot, place);
    const config = {
      responsive: true,
      displaylogo: false,
      displayModeBar: innerWidth >= 760,
      modeBarButtonsToRemove: ["select2d", "lasso2d"],
    };
    return Plotly.react(element, data, themed(structuredClone(layout)), config);
  };

  const drawAll = () => Promise.all([...plots.keys()].map((element) => draw(element)));

  // What is pointed at is gone when the pointer moves; what is clicked stays, to be read and copied.
  const pick = (element, picked) => {
    const text = picked.points[0].hovertext;
    if (!text) return;
    const lines = new DOMParser().parseFromString(text.replaceAll("<br>", "\n"), "text/html");
    const shown = element.closest("figure").querySelector(".picked");
    shown.textContent = lines.body.textContent;
    shown.hidden = false;
  };

  const setTheme = (theme) => {
    root.dataset.theme = theme;
    document.getElementById("theme").textContent = theme === "dark" ? "Light theme" : "Dark theme";
    return drawAll();
  };

  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

  const listen = () => {
    document.getElementById("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
    document.getElementById("theme").textContent = isDark() ? "Light theme" : "Dark theme";
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      if (!root.dataset.theme) drawAll();
    });
    for (const choice of document.querySelectorAll(".switch input")) {
      choice.addEventListener("change", () =>
        draw(document.getElementById(`plot-${choice.name.slice("view-".length)}`), Number(choice.value)));
    }
    // A link to what is folded opens it.
    addEventListener("hashchange", () => {
      const fold = document.querySelector(location.hash || "html")?.closest("details");
      if (fold) fold.open = true;
    });
    listenToPrint();
  };

  const listenToPrint = () => {
    let before = null;
    addEventListener("beforeprint", () => {
      const folded = [...document.querySelectorAll("details:not([open])")];
      before = { folded, theme: root.dataset.theme };
      for (const fold of folded) fold.open = true;
      root.dataset.theme = "light";
      for (const element of plots.keys()) {
        draw(element);
        Plotly.relayout(element, { width: PRINT_WIDTH_PX, autosize: false });
      }
    });
    addEventListener("afterprint", () => {
      if (before === null) return;
      for (const fold of before.folded) fold.open = false;
      if (before.theme) root.dataset.theme = before.theme;
      else delete root.dataset.theme;
      before = null;
      for (const element of plots.keys()) {
        Plotly.relayout(element, { width: null, autosize: true });
        draw(element);
      }
    });
  };

  const load = async () => {
    if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old");
    const [source, packed] = await Promise.all([unpack("plotly-packed"), unpack("figures-packed")]);
    const code = document.createElement("script");
    code.textContent = source;
    document.head.append(code);
    for (const [name, plot] of Object.entries(JSON.parse(packed))) {
      plots.set(document.getElementById(name), { ...plot, place: 0 });
    }
    for (const element of plots.keys()) {
      await draw(element);
      element.on("plotly_click", (picked) => pick(element, picked));
      // One after the other: what is drawn can be used while the next is not.
      await new Promise((next) => setTimeout(next));
    }
  };

  const begin = async () => {
    listen();
    if (document.getElementById("plotly-packed")) await load();
    root.dataset.drawnMs = String(Math.round(performance.now()));
  };

  begin().catch((error) => {
    for (const element of document.querySelectorAll(".plot")) {
      element.textContent = `The figure could not be drawn: ${error.message}. The tables have its numbers.`;
    }
    root.dataset.failed = error.message;
    console.error(error);
  });
})();
