// The numbers behind a figure as a table; every cell is set as text.

/** Replace the content of `element` by a table of `{ head, rows }`. */
export function fill(element, { head, rows }) {
  const table = document.createElement("table");
  const top = table.createTHead().insertRow();
  for (const words of head) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = words;
    top.append(cell);
  }
  const body = table.createTBody();
  for (const [first, ...others] of rows) {
    const row = body.insertRow();
    const name = document.createElement("th");
    name.scope = "row";
    name.textContent = show(first);
    row.append(name);
    for (const value of others) {
      const cell = row.insertCell();
      cell.textContent = show(value);
      if (typeof value === "number") cell.className = "num";
    }
  }
  element.replaceChildren(table);
}

function show(value) {
  if (value === null || value === undefined) return "–";
  return typeof value === "number" ? value.toLocaleString("en", { maximumSignificantDigits: 6 }) : value;
}
