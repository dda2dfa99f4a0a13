// Adaptive polling: dispatches `portal:tick` on the body, which live parts of a page listen to.
// Often while someone looks or something just changed, seldom otherwise, never while the tab is hidden.
"use strict";
(() => {
  const OFTEN_MS = 2000, SELDOM_MS = 15000, TICKS_OFTEN = 30;
  const LIVE = '[hx-trigger^="portal:tick"]';
  let left = TICKS_OFTEN, timer = 0, pressed = false;

  // Swapping under someone's hands loses what they press, type, choose or mark.
  function inUse() {
    if (pressed || document.querySelector("dialog[open]")) return true;
    if (document.querySelector(`${LIVE} input:checked`)) return true;
    if (document.activeElement?.matches("input, select, textarea") && document.activeElement.closest(LIVE)) return true;
    const marked = document.getSelection();
    const place = marked && !marked.isCollapsed ? marked.anchorNode?.parentElement : null;
    return Boolean(place?.closest(LIVE));
  }
  function tick() {
    if (!document.hidden && document.querySelector(LIVE) && !inUse()) {
      document.body.dispatchEvent(new CustomEvent("portal:tick"));
    }
    left = Math.max(0, left - 1);
    plan();
  }
  function plan() {
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(tick, left ? OFTEN_MS : SELDOM_MS);
  }
  function awake() {
    const wasSlow = left === 0;
    left = TICKS_OFTEN;
    if (wasSlow) plan();
  }
  function offline(is) {
    document.getElementById("offline").hidden = !is;
  }

  for (const event of ["pointerdown", "keydown"]) addEventListener(event, () => (pressed = true), true);
  for (const event of ["pointerup", "pointercancel", "keyup", "blur"]) addEventListener(event, () => (pressed = false), true);
  // An answer may arrive after they began; the next tick asks again.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.requestConfig.triggeringEvent?.type === "portal:tick" && inUse()) event.detail.shouldSwap = false;
  });
  document.addEventListener("visibilitychange", () => (document.hidden ? plan() : tick()));
  for (const event of ["pointermove", "keydown", "htmx:afterSwap"]) document.addEventListener(event, awake);
  for (const event of ["htmx:sendError", "htmx:timeout"]) document.addEventListener(event, () => offline(true));
  document.addEventListener("htmx:beforeOnLoad", (event) => offline(event.detail.xhr.status >= 500));
  plan();
})();
