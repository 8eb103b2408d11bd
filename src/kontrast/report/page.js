"use strict";
// What the page does by itself: the theme's button, the charts, the widgets, folds that open for the printer.
// Nothing here asks the network for anything.

const kontrast = (() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const name = () => { button.textContent = dark() ? "☀ Light" : "☾ Dark"; };
  try { root.dataset.theme = localStorage.getItem("kontrast-theme") || ""; } catch { /* files may have no storage */ }
  button.hidden = false;
  name();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("kontrast-theme", root.dataset.theme); } catch { /* as above */ }
    name();
  });

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((fold) => { fold.open = true; });
  });
  addEventListener("afterprint", () => { opened.forEach((fold) => { fold.open = false; }); });

  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        links.forEach((link) => link.removeAttribute("aria-current"));
        const here = links.get(entry.target.id);
        if (here) here.setAttribute("aria-current", "true");
      }
    }
  }, { rootMargin: "-10% 0px -80% 0px" });
  document.querySelectorAll("main section").forEach((section) => seen.observe(section));

  // Paths below pictures break behind folders and words first. Done here and not in the markup, which must be the same
  // whatever a file is called; <wbr> is no part of what is copied.
  for (const label of document.querySelectorAll(".picture small")) {
    const parts = label.textContent.split(/(?<=[/_-])(?=\w)/);
    if (parts.length > 1) label.replaceChildren(...parts.flatMap((part) => [part, document.createElement("wbr")]));
  }

  const escaped = (value) => String(value).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const options = {
    mode: "vega-lite",
    renderer: "svg",
    ast: true, // expressions are interpreted: the page needs no eval
    defaultStyle: false,
    actions: { export: true, source: false, compiled: false, editor: false },
    tooltip: { disableDefaultStyle: true, sanitize: escaped },
    i18n: { PNG_ACTION: "PNG", SVG_ACTION: "SVG" },
  };

  async function draw(figure) {
    const place = figure.querySelector(".vega");
    const spec = JSON.parse(figure.querySelector("script").textContent);
    try {
      figure.view = (await vegaEmbed(place, spec, { ...options, downloadFileName: figure.dataset.name })).view;
    } catch (error) {
      place.textContent = `This chart could not be drawn: ${error.message}`;
      console.error(error);
    }
  }

  const widgets = [];
  async function all() {
    for (const [id, script] of widgets) {
      const figure = document.getElementById(id);
      script(figure.querySelector(".root"), JSON.parse(figure.querySelector("script").textContent));
    }
    for (const figure of document.querySelectorAll("figure.chart")) {
      // A chart as wide as its place has none while its fold is closed.
      const fold = figure.closest("details:not([open])");
      if (fold) fold.addEventListener("toggle", () => { if (!figure.view) draw(figure); }, { once: true });
      else await draw(figure);
    }
    root.dataset.ready = "true";
  }
  addEventListener("load", all);
  return { widget: (id, script) => { widgets.push([id, script]); } };
})();
