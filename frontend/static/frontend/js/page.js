// What a page gains with scripts: dialogs instead of pages, times in one's own zone, copy buttons, focus on errors.
"use strict";
(() => {
  const dialog = document.getElementById("dialog");
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target === dialog && !dialog.open) dialog.showModal();
  });
  dialog.addEventListener("click", (event) => {
    if (!event.target.closest("[data-close]")) return;
    event.preventDefault();
    dialog.close();
  });

  const STYLES = {
    minute: { dateStyle: "medium", timeStyle: "short" },
    second: { dateStyle: "medium", timeStyle: "medium" },
  };
  function showTimes(root) {
    for (const time of root.querySelectorAll("time[data-style]")) {
      time.title = time.textContent;
      time.textContent = new Intl.DateTimeFormat(undefined, STYLES[time.dataset.style]).format(new Date(time.dateTime));
      time.removeAttribute("data-style");
    }
  }

  function addCopyButtons(root) {
    if (!navigator.clipboard) return;
    for (const block of root.querySelectorAll("pre[data-copy]")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(block.textContent);
        document.getElementById("announce").textContent = button.textContent = "Copied";
        setTimeout(() => (button.textContent = "Copy"), 2000);
      });
      block.removeAttribute("data-copy");
      block.before(button);
    }
  }

  function countDown() {
    for (const left of document.querySelectorAll("[data-countdown]")) {
      const seconds = Math.max(0, Math.round((new Date(left.dataset.countdown) - Date.now()) / 1000));
      const [minutes, rest] = [Math.floor(seconds / 60), String(seconds % 60).padStart(2, "0")];
      left.textContent = seconds < 24 * 3600 ? `, in ${minutes}:${rest}` : "";
    }
  }
  setInterval(countDown, 1000);

  function enhance(root) {
    showTimes(root);
    countDown();
    addCopyButtons(root);
  }
  enhance(document);
  document.addEventListener("htmx:afterSwap", () => enhance(document));
  document.addEventListener("htmx:oobAfterSwap", () => enhance(document));
  document.querySelector("#errors, #refusal, #secret")?.focus();

  const menu = document.querySelector("details.menu");
  document.addEventListener("click", (event) => {
    if (!menu.contains(event.target)) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
})();
