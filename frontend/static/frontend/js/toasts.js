// Messages of what was done, as toasts: read out, and dismissed by a button or after a while that nobody reads them.
"use strict";
(() => {
  const SHOWN_MS = 12000, BEFORE_READ_OUT_MS = 100;
  const box = document.getElementById("messages");
  const toasts = [...box.querySelectorAll(".toast")];
  let timer = 0;

  function plan() {
    clearTimeout(timer);
    timer = setTimeout(() => (document.hidden || box.matches(":hover, :focus-within") ? plan() : box.replaceChildren()), SHOWN_MS);
  }
  function dismiss(toast) {
    if (toast.contains(document.activeElement)) document.getElementById("main").focus();
    toast.remove();
  }
  for (const toast of toasts) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Dismiss";
    button.addEventListener("click", () => dismiss(toast));
    toast.append(button);
  }
  if (!toasts.length) return;
  for (const event of ["pointerleave", "focusout"]) box.addEventListener(event, plan);
  // A live region reads out what changes in it, not what a page came with.
  box.replaceChildren();
  setTimeout(() => box.append(...toasts), BEFORE_READ_OUT_MS);
  plan();
})();
