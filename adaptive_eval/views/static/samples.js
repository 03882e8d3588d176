// Asks for other answers by the address, since the page's policy lets no form be sent, and goes from one answer
// to the next by n and p, as the arrow keys do, and on to the next page.
const form = document.querySelector("form.filters");

function asked() {
  const chosen = [...new FormData(form)].filter(([, value]) => value);
  location.search = new URLSearchParams(chosen).toString();
}

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  asked();
});
form?.addEventListener("change", (event) => event.target.matches("select") && asked());

document.addEventListener("keydown", (event) => {
  const step = { n: 1, p: -1 }[event.key];
  const typing = event.target.matches("input[type=search], select");
  if (!step || typing || event.ctrlKey || event.altKey || event.metaKey) return;
  const all = [...document.querySelectorAll("input[name=sample]")];
  const next = all[all.findIndex((one) => one.checked) + step];
  if (!next) return document.querySelector(`a[href*="${step > 0 ? "after" : "before"}="]`)?.click();
  next.checked = true;
  next.focus();
  next.closest(".sample").scrollIntoView({ block: "nearest" });
});
