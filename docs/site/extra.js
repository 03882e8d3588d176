// Names and keyboard access that the theme leaves out.
document.querySelector("[data-md-component=search]")?.setAttribute("aria-label", "Search");
new MutationObserver(() => {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) table.tabIndex = 0;
  // The button that copies a block is no navigation.
  for (const bar of document.querySelectorAll(".md-code__nav:not([role])")) bar.setAttribute("role", "presentation");
}).observe(document.body, { childList: true, subtree: true });
