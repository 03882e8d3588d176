// Light or dark: as the system has it, or as the reader chose. Runs before anything is drawn.
"use strict";
(() => {
  const key = "adaptive-eval-theme";
  const system = matchMedia("(prefers-color-scheme: dark)");
  const stored = () => { try { return localStorage.getItem(key); } catch { return null; } };
  const wanted = () => stored() ?? (system.matches ? "dark" : "light");
  const apply = () => {
    document.documentElement.dataset.theme = wanted();
    const button = document.getElementById("theme");
    if (button) button.textContent = wanted() === "dark" ? "Light theme" : "Dark theme";
    document.dispatchEvent(new Event("themechange"));
  };
  document.documentElement.dataset.theme = wanted();
  system.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    button.hidden = false;
    button.addEventListener("click", () => {
      try { localStorage.setItem(key, wanted() === "dark" ? "light" : "dark"); } catch { /* private window */ }
      apply();
    });
    apply();
  });
})();
