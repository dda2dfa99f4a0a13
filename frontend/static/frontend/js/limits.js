// The table of limits as a spreadsheet: arrow keys move, Enter or a digit opens a cell, Enter goes on to the next one,
// Esc takes it back, Ctrl+Enter previews all. Without scripts a cell opens on a page of its own.
"use strict";
(() => {
  const form = document.querySelector(".matrix-form");
  const template = document.getElementById("cell-form");
  if (!form || !template) return;
  const closed = new Map();  // the button of each cell that was opened here

  const cellOf = (element) => element.closest("td");
  const handle = (cell) => cell?.querySelector("button.cell, .cell-form input:not([type=hidden])");

  function open(button, text) {
    const cell = cellOf(button);
    const key = button.value;
    cell.innerHTML = template.innerHTML.replaceAll("KEY", key).replaceAll("NAME", button.querySelector(".name").textContent);
    closed.set(key, button);
    for (const name of ["nominal", "borrowing", "lending"]) {
      const input = cell.querySelector(`[name="${CSS.escape(key)}-${name}"]`);
      if (name !== "nominal" && "alone" in button.dataset) input.closest(".field").remove();
      else input.value = button.dataset[name];
    }
    const input = handle(cell);
    if (text !== undefined) input.value = text;
    input.focus();
    if (text === undefined) input.select();
  }

  // Returns whether the cell was opened here and is closed now.
  function close(cell) {
    const key = cell.querySelector(".cell-form")?.dataset.key;
    const button = closed.get(key);
    if (!button) return false;
    cell.replaceChildren(button);
    closed.delete(key);
    return true;
  }

  function isChanged(cell) {
    const button = closed.get(cell.querySelector(".cell-form").dataset.key);
    return [...cell.querySelectorAll("input:not([type=hidden])")].some(
      (input) => input.value !== button.dataset[input.name.split("-").pop()],
    );
  }

  function move(cell, down, right) {
    const row = cell.parentElement;
    const rows = [...row.parentElement.rows];
    const next = rows[rows.indexOf(row) + down]?.cells[cell.cellIndex + right];
    const target = next?.tagName === "TD" && handle(next);
    if (!target) return;
    target.focus();
    next.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  form.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    const cell = button && cellOf(button);
    if (button?.matches(".cell")) open(button);
    else if (button?.name === "close" && close(cell)) handle(cell).focus();
    else return;
    event.preventDefault();
  });
  form.addEventListener("focusout", (event) => {
    const cell = event.target.closest("td");
    const isOwn = cell?.querySelector(".cell-form") && !cell.contains(event.relatedTarget);
    if (isOwn && closed.has(cell.querySelector(".cell-form").dataset.key) && !isChanged(cell)) close(cell);
  });
  form.addEventListener("keydown", (event) => {
    const cell = event.target.closest("td");
    if (!cell) return;
    const isOpen = event.target.matches("input");
    const arrow = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit(form.querySelector("[name=preview]"));
    else if (arrow && (!isOpen || arrow[0])) move(cell, ...arrow);
    else if (isOpen && event.key === "Enter") {
      move(cell, 1, 0);
      if (cell.contains(document.activeElement)) event.target.blur();
    } else if (event.key === "Escape" && cell.querySelector(".cell-form")) {
      if (close(cell)) handle(cell).focus();
      else cell.querySelector("[name=close]").click();
    } else if (!isOpen && event.target.matches(".cell") && /^(\d|F2|Delete|Backspace)$/.test(event.key) && !event.ctrlKey) {
      open(event.target, event.key === "F2" ? undefined : /\d/.test(event.key) ? event.key : "");
    } else return;
    event.preventDefault();
  });
})();
