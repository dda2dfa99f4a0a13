// What a page gains with scripts: dialogs instead of pages, the zone of times, copy buttons, focus on errors.
"use strict";
(() => {
  const dialog = document.getElementById("dialog");
  // Settled, since htmx gives the focus to [autofocus] and connects what was swapped in only then.
  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.detail.target === dialog && !dialog.open) dialog.showModal();
  });
  dialog.addEventListener("click", (event) => {
    if (!event.target.closest("[data-close]")) return;
    event.preventDefault();
    dialog.close();
  });

  // The server shows times in this zone.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `timezone=${zone}; path=/; max-age=31536000; samesite=lax${secure}`;

  // All that the browser knows; without scripts the page suggests a few.
  const zones = document.getElementById("zones");
  if (zones && Intl.supportedValuesOf) {
    const names = new Set(["UTC", ...Intl.supportedValuesOf("timeZone")]);
    zones.replaceChildren(...[...names].map((name) => new Option(name)));
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

  // As the server says it: the two largest units. Whole minutes, so that a page does not tick.
  function inWords(minutes) {
    const units = [[Math.floor(minutes / 1440), "d"], [Math.floor(minutes / 60) % 24, "h"], [minutes % 60, "min"]];
    return units.filter(([number]) => number).slice(0, 2).map((unit) => unit.join(" ")).join(" ") || "less than 1 min";
  }
  function countDown() {
    for (const left of document.querySelectorAll("[data-countdown]")) {
      const words = `, in ${inWords(Math.max(0, Math.floor((new Date(left.dataset.countdown) - Date.now()) / 60000)))}`;
      if (left.textContent !== words) left.textContent = words;
    }
  }
  setInterval(countDown, 15000);

  const EACH = 'tbody input[type="checkbox"]';
  document.addEventListener("change", ({ target }) => {
    if (!target.matches("[data-choose-all]")) return;
    for (const box of target.closest("table").querySelectorAll(EACH)) box.checked = target.checked;
  });
  function showChooseAll(root) {
    for (const all of root.querySelectorAll("[data-choose-all]")) all.hidden = !all.closest("table").querySelector(EACH);
  }

  function enhance(root) {
    countDown();
    addCopyButtons(root);
    showChooseAll(root);
  }
  enhance(document);
  document.addEventListener("htmx:afterSwap", () => enhance(document));
  document.addEventListener("htmx:oobAfterSwap", () => enhance(document));
  document.querySelector("#errors, #refusal, #secret")?.focus();

  // A toolbar applies on change; its button is for readers without scripts. What is chosen keeps the focus.
  const applied = sessionStorage.getItem("applied");
  sessionStorage.removeItem("applied");
  if (applied) document.getElementById(applied)?.focus();
  for (const form of document.querySelectorAll("form[data-apply]")) {
    let chosenByKeys = null;  // arrow keys pass over choices: applied with Enter, or when the field is left
    let isByKeys = false;
    function apply(field) {
      sessionStorage.setItem("applied", field.id);
      form.requestSubmit();
    }
    form.addEventListener("pointerdown", () => (isByKeys = false));
    form.addEventListener("keydown", (event) => {
      isByKeys = event.key !== "Enter";
      if (event.key === "Enter" && chosenByKeys) apply(chosenByKeys);
    });
    form.addEventListener("focusout", () => chosenByKeys && apply(chosenByKeys));
    form.addEventListener("change", ({ target }) => {
      if (target.closest("details") || target.value === "custom") return;
      if (isByKeys && target.matches("select")) chosenByKeys = target;
      else apply(target);
    });
  }

  const refused = document.querySelector("[data-retry-s]");
  if (refused) setTimeout(() => location.reload(), 1000 * Number(refused.dataset.retryS));

  for (const link of document.querySelectorAll("nav [aria-current]")) {
    const scrolling = link.parentElement;  // of a phone's navigation
    scrolling.scrollLeft = link.offsetLeft - (scrolling.clientWidth - link.offsetWidth) / 2;
  }

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
