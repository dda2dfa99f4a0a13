// Keys of one letter, for whoever has not turned them off: never in a field, in a dialog or with a modifier.
"use strict";
(() => {
  const FIELDS = "input, select, textarea, [contenteditable]";
  const FILTER = ":is(input:not([type=hidden], [type=checkbox], [type=radio]), select)";
  const SEARCHES = ["main search input[type=search]", `main search ${FILTER}`, `main form.filters ${FILTER}`, `main form.costs-form ${FILTER}`];
  const KEYS = {
    n: () => {
      const address = document.body.dataset.request;
      if (address && address !== location.pathname) location.assign(address);
    },
    "/": () => {
      const fields = SEARCHES.flatMap((one) => [...document.querySelectorAll(one)]).filter((one) => one.checkVisibility());
      if (fields.length) fields[0].focus();
      else document.getElementById("open-palette").click();
    },
    "?": () => document.getElementById("open-shortcuts").click(),
  };

  document.addEventListener("keydown", (event) => {
    if (document.body.dataset.keys === "off" || event.defaultPrevented || event.repeat || event.isComposing) return;
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
    // The field of a dialog that has just closed has the focus until the next frame.
    if (event.target.closest?.(FIELDS)?.checkVisibility() || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    KEYS[event.key]();
  });
})();
