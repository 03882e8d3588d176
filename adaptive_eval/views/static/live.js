// Fetches this page again while it can be seen and lets Idiomorph change what has changed, so that focus,
// scroll positions and opened sections survive. The HTML comes escaped from our own server, and is parsed in
// a document that runs no scripts.
const EVERY = 2000; // milliseconds; a page that has not changed costs the server next to nothing
const live = document.getElementById("live");
let tag = "";
let timer = 0;

function say(state, words) {
  live.dataset.state = state;
  if (live.textContent !== words) live.textContent = words;
}

async function refresh() {
  const answer = await fetch(location.href, { headers: { "If-None-Match": tag } }).catch(() => null);
  if (answer?.status === 304) return say("live", "live");
  if (!answer) return say("lost", "connection lost, trying again");
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (!answer.ok) return say("lost", fresh.querySelector("main p")?.textContent ?? "not readable");
  tag = answer.headers.get("ETag") ?? "";
  Idiomorph.morph(document.querySelector("main"), fresh.querySelector("main"), {
    callbacks: { beforeAttributeUpdated: (name, node) => !(name === "open" && node.nodeName === "DETAILS") },
  });
  say("live", "live");
}

async function follow() {
  clearTimeout(timer);
  if (document.hidden) return; // a hidden page asks for nothing
  await refresh();
  timer = setTimeout(follow, EVERY);
}

document.addEventListener("visibilitychange", follow);
follow();
