// Changes one piece of the page into another without replacing what stays the same, so that focus, selection,
// scroll positions and opened details survive an update. The new HTML comes escaped from our own server and is
// parsed in a document that runs no scripts.

/** Make the children of `element` those of `html`. */
export function morph(element, html) {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  children(element, parsed.body);
}

function children(from, to) {
  const keyed = new Map();
  for (const child of from.children) {
    if (child.dataset?.key) keyed.set(child.dataset.key, child);
  }
  let place = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    let match = wanted.dataset?.key ? keyed.get(wanted.dataset.key) : place;
    if (match && !wanted.dataset?.key && match.dataset?.key) match = null;
    if (match && alike(match, wanted)) {
      if (match === place) place = place.nextSibling;
      else from.insertBefore(match, place);
      node(match, wanted);
    } else {
      from.insertBefore(document.importNode(wanted, true), place);
    }
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function alike(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName;
}

function node(from, to) {
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
    return;
  }
  const kept = from.nodeName === "DETAILS" ? ["open"] : []; // the reader's, not ours
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !kept.includes(name)) from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value && !kept.includes(name)) from.setAttribute(name, value);
  }
  children(from, to);
}
